//! The pick over all levels and the switch to what was picked (`pick_task_fair`, `put_prev_entity`, `set_next_entity`).

use super::arena::Arena;
use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use super::explain::Reason;
use super::pick_eevdf::CfsPick;
use super::queues::Queues;
use crate::{KernelConfig, Resched};
use schedlab_model::{rarely, Nanos};

impl Queues {
    /// `pick_task_fair`: accounts, dequeues delayed entities on the way, switches nothing.
    #[inline(always)]
    pub fn pick_task_fair(&mut self, root: usize, now: Nanos) -> EntityId {
        let (mut rq, mut throttled) = (root, false);
        loop {
            if self.arena.rqs[rq].nr_competing(&self.config) == 0 {
                return EntityId::NIL;
            }
            self.update_running(rq, now);
            if rarely(self.pools.used) && !self.config.rules.throttles_at_once() && self.check_cfs_rq_runtime(rq, now) {
                if !self.config.rules.throttles_tasks() {
                    rq = root;
                    continue;
                }
                throttled = true;
            }
            let picked = self.pick_next_entity(rq, now);
            if self.arena.entities[picked].sched_delayed {
                self.finish_delayed_dequeue(picked, now);
                (rq, throttled) = (root, false);
                continue;
            }
            if !rarely(self.arena.grouped) {
                return picked;
            }
            match self.arena.entities[picked].my_q {
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

    /// `pick_next_entity` on a queue that is not empty.
    #[inline(always)]
    fn pick_next_entity(&mut self, rq: usize, now: Nanos) -> EntityId {
        let (q, entities) = (&self.arena.rqs[rq], &self.arena.entities);
        if self.config.is_eevdf() {
            let (picked, rule) = q.pick_next_entity(entities, &self.config, true);
            if self.is_recording() {
                let compared = q.deadlines(entities, [(rule.compares(), picked), ("current deadline", q.curr)]);
                let reason = Reason { rule: rule.text(), feature: rule.feature(&self.config), compared };
                self.explain_pick(rq, picked, reason, now);
            }
            return picked;
        }
        let CfsPick { picked, left, rule } = q.pick_next_entity_cfs(entities, &self.config);
        if self.is_recording() {
            let compared = q.vruntimes(entities, [("picked vruntime", picked), ("leftmost vruntime", left)]);
            let reason = Reason { rule: rule.text(), feature: rule.feature(&self.config), compared };
            self.explain_pick(rq, picked, reason, now);
        }
        picked
    }

    /// `set_next_task_fair` without its list; `first`: picked, not merely requeued while it runs.
    pub fn set_next_task_fair(&mut self, task: EntityId, first: bool, now: Nanos) {
        if rarely(self.config.rules.flat_hierarchy) {
            return self.set_next_flat(self.arena.root_of(self.arena.entities[task].rq()), task, first, now);
        }
        let (mut id, mut throttled) = (task, false);
        while id.is_some() {
            let rq = self.arena.entities[id].rq();
            self.set_next_entity(rq, id, first, now);
            throttled |= self.lacks_bandwidth(rq, now);
            id = self.arena.entities[id].parent;
        }
        if throttled {
            self.task_throttle_setup_work(task);
        }
    }

    /// The end of `pick_next_task_fair`: switches to the task that was picked, or none. A task picked again is neither
    /// put nor set (FAIR_GROUP_SCHED builds), so its run continues.
    #[inline(always)]
    pub fn switch_to_picked(&mut self, root: usize, picked: EntityId, now: Nanos) {
        if rarely(self.arena.grouped) || self.config.rules.flat_hierarchy {
            return self.switch_levels_to_picked(root, picked, now);
        }
        let prev = self.arena.rqs[root].curr;
        let at = if picked != prev { self.clock_of_switch(root, prev, picked, now) } else { 0 };
        let (q, entities, config) = (&mut self.arena.rqs[root], &mut self.arena.entities, &*self.config);
        if config.rules.pick_clears_buddies && picked.is_some() {
            q.clear_own_buddies(picked);
        }
        if picked != prev {
            q.switch(entities, config, (prev, picked), at, now);
        }
        q.finish_pick(entities, config, prev, picked);
    }

    /// The clock by which a switch updates the averages of tasks on the queue. It is advanced only for them, since on a
    /// CPU of scaled capacity each step is rounded down; 0 where there is none.
    #[inline(always)]
    fn clock_of_switch(&mut self, root: usize, prev: EntityId, next: EntityId, now: Nanos) -> Nanos {
        if next.is_some() || prev.is_some() && self.arena.entities[prev].on_rq {
            self.arena.cfs_rq_clock_pelt(root, now)
        } else {
            0
        }
    }

    /// The same through all levels.
    #[inline(never)]
    fn switch_levels_to_picked(&mut self, root: usize, picked: EntityId, now: Nanos) {
        let prev = self.arena.leaf(root);
        if self.config.rules.pick_clears_buddies {
            self.arena.clear_buddies_upwards(picked);
        }
        if picked != prev {
            self.switch(root, prev, picked, now);
        }
        self.arena.rqs[root].finish_pick(&mut self.arena.entities, &self.config, prev, picked);
    }

    /// Puts one task and sets another, either of which may be none, at every level where they differ: a group that
    /// both are in stays current (the end of `pick_next_task_fair`).
    pub fn switch(&mut self, root: usize, prev: EntityId, next: EntityId, now: Nanos) {
        if rarely(self.config.rules.flat_hierarchy) {
            if prev.is_some() {
                self.put_prev_flat(root, prev, next, now);
            }
            if next.is_some() {
                self.set_next_flat(root, next, true, now);
            }
            return;
        }
        if rarely(self.arena.grouped) {
            return self.switch_levels(prev, next, now);
        }
        self.update_running(root, now);
        let at = self.clock_of_switch(root, prev, next, now);
        self.arena.rqs[root].switch(&mut self.arena.entities, &self.config, (prev, next), at, now);
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
                // 7.x; earlier, the pick has done it.
                throttled |= self.config.rules.throttles_at_once() && self.lacks_bandwidth(to.rq, now);
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

    /// The level of an entity; NIL is above the root.
    #[inline]
    fn level(&self, id: EntityId) -> Level {
        if id.is_nil() {
            return Level { rq: 0, depth: -1, parent: id };
        }
        let se = &self.arena.entities[id];
        Level { rq: se.rq(), depth: i32::from(se.depth), parent: se.parent }
    }

    /// `put_prev_entity` at one level of the hierarchy.
    #[inline(always)]
    pub(super) fn put_prev_entity(&mut self, rq: usize, prev: EntityId, now: Nanos) {
        let (queued, competes) = (self.arena.entities[prev].on_rq, !self.config.rules.flat_hierarchy);
        if queued {
            self.update_curr(rq, now);
        }
        if rarely(self.pools.used) && !self.config.rules.throttles_at_once() {
            self.check_cfs_rq_runtime(rq, now);
        }
        let at = if queued { self.arena.cfs_rq_clock_pelt(rq, now) } else { 0 };
        let (q, entities) = (&mut self.arena.rqs[rq], &mut self.arena.entities);
        let changed = q.put_prev_entity(entities, &self.config, prev, competes, at);
        if queued {
            self.arena.update_load_avg_of_groups(&self.config.rules.pelt, rq, prev, false, changed, now);
        }
    }

    /// `set_next_entity` at one level of the hierarchy; `first`: picked, not merely requeued while it runs.
    #[inline(always)]
    pub(super) fn set_next_entity(&mut self, rq: usize, id: EntityId, first: bool, now: Nanos) {
        let (queued, competes) = (self.arena.entities[id].on_rq, !self.config.rules.flat_hierarchy);
        if competes {
            self.arena.clear_buddies(rq, id);
        }
        let at = if queued { self.arena.cfs_rq_clock_pelt(rq, now) } else { 0 };
        let (q, entities) = (&mut self.arena.rqs[rq], &mut self.arena.entities);
        let changed = match competes {
            true => q.set_next_competing(entities, &self.config, id, first, at, now),
            false => q.set_next_entity(entities, &self.config, id, at, now),
        };
        if queued {
            self.arena.update_load_avg_of_groups(&self.config.rules.pelt, rq, id, true, changed, now);
        }
    }
}

impl Entity {
    /// The part of `set_next_entity` that concerns its run times.
    #[inline]
    fn runs_from(&mut self, now: Nanos) {
        self.exec_start = now;
        self.prev_sum_exec_runtime = self.sum_exec_runtime;
    }
}

/// The part of a switch that concerns one queue; where there are no groups, all of it.
impl CfsRq {
    /// Puts one task, which must have been charged up to `now`, and sets another; either may be none. `at`: now, by the
    /// clock of load tracking.
    #[inline(always)]
    fn switch(
        &mut self,
        entities: &mut Entities,
        config: &KernelConfig,
        (prev, next): (EntityId, EntityId),
        at: Nanos,
        now: Nanos,
    ) {
        if prev.is_some() {
            self.put_prev_entity(entities, config, prev, true, at);
        }
        if next.is_some() {
            self.set_next_competing(entities, config, next, true, at, now);
        }
    }

    /// The picked task moves to the front of the list of tasks, and the request to reschedule is served.
    #[inline(always)]
    fn finish_pick(&mut self, entities: &mut Entities, config: &KernelConfig, prev: EntityId, picked: EntityId) {
        if picked.is_some() && (picked != prev || !config.is_eevdf()) {
            self.list_move(&mut entities.neighbours, picked);
        }
        self.resched = Resched::No;
    }

    /// `put_prev_entity`. `competes`: the entity competes on this queue, as always up to 7.2. Returns whether the
    /// queue's averages changed.
    #[inline(always)]
    fn put_prev_entity(
        &mut self,
        entities: &mut Entities,
        config: &KernelConfig,
        prev: EntityId,
        competes: bool,
        at: Nanos,
    ) -> bool {
        let (se, nodes) = entities.with_nodes(prev);
        let mut changed = false;
        if se.on_rq {
            if competes {
                self.join_tree(se, nodes, config, prev);
            }
            changed = self.update_load_avg(se, prev, at, &config.rules.pelt);
            if competes {
                self.tree_changed(entities, config);
            }
        }
        self.h_curr = EntityId::NIL;
        if competes {
            self.curr = EntityId::NIL;
        }
        changed
    }

    /// `set_next_entity` up to 7.2. `first`: the entity was picked, not requeued while it runs. Returns whether the
    /// queue's averages changed.
    #[inline(always)]
    fn set_next_competing(
        &mut self,
        entities: &mut Entities,
        config: &KernelConfig,
        id: EntityId,
        first: bool,
        at: Nanos,
        now: Nanos,
    ) -> bool {
        self.clear_own_buddies(id);
        let (se, nodes) = entities.with_nodes(id);
        let on_rq = se.on_rq;
        if on_rq {
            self.leave_tree(se, nodes, config, id);
        }
        let changed = self.set_next_entity(entities, config, id, at, now);
        if on_rq {
            self.tree_changed(entities, config);
            self.set_protect_slice(entities, config, id, first);
        }
        self.curr = id;
        changed
    }

    /// The part of `set_next_entity` that does not concern the competition, all of it from 7.3 on.
    #[inline(always)]
    fn set_next_entity(
        &mut self,
        entities: &mut Entities,
        config: &KernelConfig,
        id: EntityId,
        at: Nanos,
        now: Nanos,
    ) -> bool {
        let se = &mut entities[id];
        let changed = se.on_rq && self.update_load_avg(se, id, at, &config.rules.pelt);
        se.runs_from(now);
        self.h_curr = id;
        changed
    }
}

impl Arena {
    /// A pick from an empty queue without groups: clears the running task, which has left the queue already. Returns
    /// false if the queue is not empty or there are groups.
    #[inline(always)]
    pub(super) fn leave_empty(&mut self, root: usize) -> bool {
        let q = &mut self.rqs[root];
        let empty = !rarely(self.grouped) && q.nr_running == 0;
        if empty {
            (q.curr, q.h_curr, q.resched) = (EntityId::NIL, EntityId::NIL, Resched::No);
        }
        empty
    }
}

/// One level of the hierarchy, as seen from an entity on it.
#[derive(Clone, Copy)]
struct Level {
    rq: usize,
    depth: i32,
    parent: EntityId,
}
