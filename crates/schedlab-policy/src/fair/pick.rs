//! Who runs next (`pick_next_entity`, `pick_eevdf`) and the switch to it (`put_prev_entity`, `set_next_entity`).
//!
//! CFS: the smallest vruntime, unless a buddy is within wakeup granularity of it.
//! EEVDF: the earliest deadline among the eligible; the running entity stays while RUN_TO_PARITY protects it, and loses
//! ties otherwise. 6.6 and the 2023 series search a tree sorted by vruntime (`search`), with ties of their own.

use super::average::Average;
use super::entity::EntityId;
use super::search::{pick_6_6, pick_rfc, Running};
use super::Fair;
use crate::features::Feature;
use crate::{Resched, SearchRule, TreeKey};
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// `pick_next_task_fair`: picks and switches to the next task of the CPU. A task picked again is neither put nor set
    /// (FAIR_GROUP_SCHED builds), so its run goes on. `None`: the queue is empty and nobody is current any more.
    #[inline]
    pub fn pick_next_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let root = cpu.index();
        let picked = self.pick_task_fair(root, now);
        let prev = self.leaf(root);
        if self.rules.pick_clears_buddies {
            self.forget_buddies(picked);
        }
        if picked != prev {
            self.switch(root, prev, picked, now);
        }
        if picked.is_some() && (picked != prev || !self.eevdf) {
            self.list_move_front(root, picked);
        }
        self.rqs[root].resched = Resched::No;
        picked.task()
    }

    /// Whoever is picked is nobody's buddy any more, at any level, even if it runs already.
    pub(super) fn forget_buddies(&mut self, mut picked: EntityId) {
        while picked.is_some() {
            self.clear_buddies(self.se(picked).cfs_rq as usize, picked);
            picked = self.se(picked).parent;
        }
    }

    /// The pick alone (`pick_task_fair`): accounts, dequeues delayed entities on the way, switches nothing.
    pub fn pick_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        self.pick_task_fair(cpu.index(), now).task()
    }

    /// `put_prev_task_fair`: the current task leaves the CPU, back into the queue if it is still runnable.
    pub fn put_prev_task(&mut self, cpu: CpuId, now: Nanos) {
        let curr = self.leaf(cpu.index());
        self.switch(cpu.index(), curr, EntityId::NIL, now);
    }

    /// `set_next_task_fair`: the task gets the CPU, which must have no current task.
    pub fn set_next_task(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        let id = EntityId::of(task);
        self.set_next_task_fair(id, true, now);
        if self.se(id).on_rq {
            self.list_move_front(cpu.index(), id);
        }
    }

    /// `set_next_task_fair` without its list; `first`: picked, not merely requeued while it runs.
    pub(super) fn set_next_task_fair(&mut self, task: EntityId, first: bool, now: Nanos) {
        let (mut id, mut throttled) = (task, false);
        while id.is_some() {
            let rq = self.se(id).cfs_rq as usize;
            self.set_next_entity(rq, id, first, now);
            throttled |= self.lacks_bandwidth(rq, now);
            id = self.se(id).parent;
        }
        if throttled {
            self.task_throttle_setup_work(task);
        }
    }

    /// Puts one task and sets another, either of which may be nobody, at every level where they differ: a group that
    /// both are in stays current (the end of `pick_next_task_fair`).
    #[inline]
    pub(super) fn switch(&mut self, root: usize, prev: EntityId, next: EntityId, now: Nanos) {
        if self.grouped {
            return self.switch_levels(prev, next, now);
        }
        if prev.is_some() {
            self.put_prev_entity(root, prev, now);
        }
        if next.is_some() {
            self.set_next_entity(root, next, true, now);
        }
    }

    #[inline(never)]
    fn switch_levels(&mut self, mut prev: EntityId, task: EntityId, now: Nanos) {
        let (mut next, mut throttled) = (task, false);
        while prev.is_some() || next.is_some() {
            let (from, to) = (self.level(prev), self.level(next));
            if from.depth >= to.depth && prev.is_some() {
                self.put_prev_entity(from.rq, prev, now);
                prev = from.parent;
            }
            if to.depth >= from.depth && next.is_some() {
                self.set_next_entity(to.rq, next, true, now);
                // 7.x; earlier, the pick has seen to it.
                throttled |= self.rules.throttles_at_once() && self.lacks_bandwidth(to.rq, now);
                next = to.parent;
            }
            if prev == next {
                break;
            }
        }
        if throttled {
            self.task_throttle_setup_work(task);
        }
    }

    /// Where an entity is; nobody is above the root.
    #[inline]
    fn level(&self, id: EntityId) -> Level {
        if id.is_nil() {
            return Level { rq: 0, depth: -1, parent: id };
        }
        let se = self.se(id);
        Level { rq: se.cfs_rq as usize, depth: i32::from(se.depth), parent: se.parent }
    }

    #[inline]
    fn pick_task_fair(&mut self, root: usize, now: Nanos) -> EntityId {
        let (mut rq, mut throttled) = (root, false);
        loop {
            if self.rqs[rq].nr_running == 0 {
                return EntityId::NIL;
            }
            if self.running(rq).is_some() {
                self.update_curr_rq(rq, now);
            }
            if self.bandwidth_used && !self.rules.throttles_at_once() && self.check_cfs_rq_runtime(rq, now) {
                if !self.rules.throttles_tasks() {
                    rq = root;
                    continue;
                }
                throttled = true;
            }
            let picked = if self.eevdf {
                let picked = self.pick_next_entity_eevdf(rq, true, now);
                if self.se(picked).sched_delayed {
                    self.finish_delayed_dequeue(picked, now);
                    (rq, throttled) = (root, false);
                    continue;
                }
                picked
            } else {
                self.pick_next_entity_cfs(rq, now)
            };
            if !self.grouped {
                return picked;
            }
            match self.se(picked).my_q {
                None => {
                    if throttled {
                        self.task_throttle_setup_work(picked);
                    }
                    return picked;
                }
                Some(below) => rq = below as usize,
            }
        }
    }

    /// `pick_next_entity` of CFS, on a queue that is not empty.
    #[inline]
    fn pick_next_entity_cfs(&mut self, rq: usize, now: Nanos) -> EntityId {
        let curr = self.running(rq).unwrap_or(EntityId::NIL);
        let first = self.rqs[rq].tree.first();
        let left = self.leftmost_of(first, curr);
        let q = &self.rqs[rq];
        let (next, last, skip) = (q.next, q.last, q.skip);
        let (mut picked, mut rule, mut feature) = (left, "smallest vruntime", None);
        if skip == left {
            let second = if left == curr { first } else { self.leftmost_of(q.tree.next(&self.nodes, left), curr) };
            if second.is_some() && self.near(second, left) {
                (picked, rule) = (second, "leftmost yielded, second is near");
            }
        }
        if next.is_some() && self.near(next, left) {
            (picked, rule) = (next, "next buddy is near the leftmost");
        } else if last.is_some() && self.near(last, left) {
            (picked, rule, feature) = (last, "last buddy is near the leftmost", Some(Feature::LastBuddy));
        }
        if self.decisions.is_some() {
            let compared = self.vruntimes(rq, ("picked vruntime", picked), ("leftmost vruntime", left));
            self.explain_pick(rq, picked, (rule, feature), compared, now);
        }
        picked
    }

    /// The one further left; the first, if there is one, on a tie.
    #[inline]
    fn leftmost_of(&self, first: EntityId, curr: EntityId) -> EntityId {
        let curr_before = || curr.is_some() && self.se(curr).vruntime.before(self.se(first).vruntime);
        if first.is_nil() || curr_before() {
            curr
        } else {
            first
        }
    }

    /// Whether `id` is at most one wakeup granularity right of `left` (`wakeup_preempt_entity(id, left) < 1`).
    #[inline]
    fn near(&self, id: EntityId, left: EntityId) -> bool {
        self.wakeup_preempt_entity(id, left) < 1
    }

    /// `pick_next_entity` of EEVDF, on a queue that is not empty; without `protect` neither the running entity's
    /// protection nor the next buddy counts.
    #[inline(always)]
    pub(super) fn pick_next_entity_eevdf(&mut self, rq: usize, protect: bool, now: Nanos) -> EntityId {
        let (next, feature) = (self.rqs[rq].next, self.rules.buddy_feature);
        if next.is_some() && protect && self.config.has(feature) && self.entity_eligible(rq, next) {
            if self.decisions.is_some() {
                let compared = self.deadlines(rq, ("next deadline", next), ("current deadline", self.rqs[rq].curr));
                self.explain_pick(rq, next, ("next buddy is eligible", Some(feature)), compared, now);
            }
            return next;
        }
        let (picked, rule) = self.pick_eevdf(rq, protect);
        if self.decisions.is_some() {
            let feature = (rule == PROTECTED).then_some(Feature::RunToParity);
            let compared = self.deadlines(rq, ("picked deadline", picked), ("current deadline", self.rqs[rq].curr));
            self.explain_pick(rq, picked, (rule, feature), compared, now);
        }
        picked
    }

    /// `pick_eevdf` and the rule that decided.
    #[inline(always)]
    pub(super) fn pick_eevdf(&self, rq: usize, protect: bool) -> (EntityId, &'static str) {
        let q = &self.rqs[rq];
        let first = q.tree.first();
        if q.nr_running == 1 {
            return (self.running(rq).unwrap_or(first), "only one");
        }
        let average = q.average(&self.entities);
        let curr = q.curr.is_some().then(|| &self.entities[q.curr.index()]);
        let curr = curr.filter(|curr| curr.on_rq && average.eligible(curr.vruntime));
        if protect && curr.is_some_and(|curr| self.is_protected(curr)) {
            return (q.curr, PROTECTED);
        }
        if self.rules.tree_key == TreeKey::Vruntime {
            let found = self.search_by_vruntime(rq, curr.map(|curr| (q.curr, curr.deadline)), average);
            return if found.is_some() {
                (found, EARLIEST)
            } else {
                (first, "nobody eligible was found: the leftmost")
            };
        }
        let best = q.tree.first_eligible(&self.nodes, |v| average.eligible(v));
        if best.is_nil() {
            // Someone is always at or left of V; an overflow of the sums could still hide everybody.
            return (self.running(rq).unwrap_or(first), "only eligible one");
        }
        match curr {
            Some(curr) if curr.deadline.before(self.se(best).deadline) => (q.curr, EARLIEST),
            _ => (best, EARLIEST),
        }
    }

    #[inline(never)]
    fn search_by_vruntime(&self, rq: usize, running: Running, average: Average) -> EntityId {
        let tree = &self.rqs[rq].tree;
        match self.rules.search {
            SearchRule::OnePass => pick_rfc(tree, &self.nodes, running, |v| average.eligible(v)),
            SearchRule::Remembers => pick_6_6(tree, &self.nodes, running, |v| average.eligible(v)),
        }
    }

    /// `put_prev_entity`.
    #[inline(always)]
    pub(super) fn put_prev_entity(&mut self, rq: usize, prev: EntityId, now: Nanos) {
        if self.se(prev).on_rq {
            self.update_curr_rq(rq, now);
            self.tree_insert(rq, prev);
            self.update_load_avg(rq, prev, false, now);
        }
        if self.bandwidth_used && !self.rules.throttles_at_once() {
            self.check_cfs_rq_runtime(rq, now);
        }
        self.rqs[rq].curr = EntityId::NIL;
    }

    /// `set_next_entity`; `first`: picked, not merely requeued while it runs.
    #[inline(always)]
    pub(super) fn set_next_entity(&mut self, rq: usize, id: EntityId, first: bool, now: Nanos) {
        self.clear_buddies(rq, id);
        let queued = self.se(id).on_rq;
        if queued {
            self.tree_erase(rq, id);
            self.update_load_avg(rq, id, true, now);
            self.set_protect_slice(rq, id, first);
        }
        let se = self.se_mut(id);
        se.exec_start = now;
        se.prev_sum_exec_runtime = se.sum_exec_runtime;
        self.rqs[rq].curr = id;
    }
}

/// One level of the hierarchy, as seen from an entity on it.
#[derive(Clone, Copy)]
struct Level {
    rq: usize,
    depth: i32,
    parent: EntityId,
}

/// Names of rules.
pub(super) const PROTECTED: &str = "protected until parity or slice end";
const EARLIEST: &str = "earliest eligible deadline";
