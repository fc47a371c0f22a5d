//! The tick (`task_tick_fair`, `entity_tick`, `check_preempt_tick`).
//!
//! CFS: the running entity is preempted when its ideal slice is used up, or when the leftmost is a whole slice behind.
//! EEVDF: the tick only charges the running entity, which detects the end of its slice; in the 2023 series it also
//! picks.

use super::entity::EntityId;
use super::explain::{Compared, Reason};
use super::fair_sched_class::Fair;
use super::queues::Queues;
use crate::decision::{During, Function};
use crate::features::Feature;
use crate::Resched;
use schedlab_model::{rarely, CpuId, Nanos};

impl Fair {
    /// `task_tick_fair` for the current task of the CPU; before it, `sched_tick` turns a lazy request into a full one.
    /// Under PREEMPT_AUTO the caller does that with the request that this tick returns.
    #[inline]
    pub fn task_tick(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        let queues = &mut self.queues;
        let (root, before) = (cpu.index(), queues.log.len());
        let mut pending = Resched::No;
        if queues.arena.rqs[root].resched == Resched::Lazy {
            if queues.config.preempt.is_auto_lazy() {
                pending = std::mem::take(&mut queues.arena.rqs[root].resched);
            } else {
                queues.resched_curr(root);
            }
        }
        let mut curr = queues.arena.leaf(root);
        while curr.is_some() {
            queues.entity_tick(curr, now);
            curr = queues.arena.entities[curr].parent;
        }
        queues.reweight_running(root);
        if queues.is_recording() {
            queues.explain_tick_over(root, before, now);
        }
        let asked = &mut queues.arena.rqs[root].resched;
        let found = *asked;
        *asked = found.max(pending);
        found
    }
}

impl Queues {
    /// `entity_tick`.
    fn entity_tick(&mut self, curr: EntityId, now: Nanos) {
        let rq = self.arena.entities[curr].rq();
        self.account_entity(rq, curr, now);
        let preempts = !self.config.rules.expiry_reschedules && self.arena.rqs[rq].nr_running > 1;
        if preempts && !self.left_to_hrtick(rq) {
            match self.config.is_eevdf() {
                true => self.pick_at_tick(rq, curr, now),
                false => self.check_preempt_tick(rq, curr, now),
            }
        }
    }

    /// The slice's own timer is running, so that the tick leaves the slice to it (`entity_tick` without DOUBLE_TICK).
    #[inline]
    fn left_to_hrtick(&self, rq: usize) -> bool {
        self.arena.rqs[self.arena.root_of(rq)].hrtick_active && !self.config.has(Feature::DoubleTick)
    }

    fn account_entity(&mut self, rq: usize, curr: EntityId, now: Nanos) {
        self.update_curr(rq, now);
        self.arena.update_load_avg(&self.config.rules.pelt, rq, curr, true, now);
        if self.arena.is_group(curr) {
            self.update_cfs_group(curr, now);
        }
    }

    /// The accounting of every tick, from a task up.
    pub fn account_levels(&mut self, mut curr: EntityId, now: Nanos) {
        while curr.is_some() {
            self.account_entity(self.arena.entities[curr].rq(), curr, now);
            curr = self.arena.entities[curr].parent;
        }
    }

    /// The end of a tick from 7.3 on: the running task takes over its present weight along the hierarchy.
    #[inline]
    pub fn reweight_running(&mut self, root: usize) {
        let curr = self.arena.rqs[root].curr;
        if rarely(self.config.rules.flat_hierarchy) && curr.is_some() && self.arena.entities[curr].on_rq {
            self.reweight_eevdf(root, curr, true);
        }
    }

    /// The 2023 series: the entity that would be picked now runs.
    fn pick_at_tick(&mut self, rq: usize, curr: EntityId, now: Nanos) {
        let (picked, rule) = self.arena.rqs[rq].pick_eevdf(&self.arena.entities, &self.config, true);
        if picked == curr {
            return;
        }
        self.resched_curr(rq);
        self.arena.clear_buddies(rq, curr);
        if self.is_recording() {
            let named = [("current deadline", curr), ("picked deadline", picked)];
            let compared = self.arena.rqs[rq].deadlines(&self.arena.entities, named);
            self.explain_tick(rq, curr, rule.text(), compared, now);
        }
    }

    /// `check_preempt_tick`, on a queue where others wait.
    fn check_preempt_tick(&mut self, rq: usize, curr: EntityId, now: Nanos) {
        let mut slice = self.arena.sched_slice(&self.config, rq, curr);
        if self.config.rules.tick_slice_cap {
            slice = slice.min(self.config.knobs.latency);
        }
        let se = &self.arena.entities[curr];
        let (ran, vruntime) = (se.sum_exec_runtime - se.prev_sum_exec_runtime, se.vruntime);
        if ran > slice {
            self.resched_curr(rq);
            // It must not be picked again as a buddy.
            self.arena.clear_buddies(rq, curr);
            self.explain_tick(rq, curr, "slice used up", [("ran", ran as i64), ("slice", slice as i64)], now);
            return;
        }
        let first = self.arena.rqs[rq].tree.first();
        if ran < self.config.knobs.min_granularity || first.is_nil() {
            return;
        }
        let lead = vruntime.since(self.arena.entities[first].vruntime);
        if lead >= 0 && lead as u64 > slice {
            self.resched_curr(rq);
            let compared = [("lead of the leftmost", lead), ("slice", slice as i64)];
            self.explain_tick(rq, curr, "leftmost is a slice behind", compared, now);
        }
    }

    #[inline]
    fn explain_tick(&mut self, rq: usize, curr: EntityId, rule: &'static str, compared: Compared, now: Nanos) {
        if self.is_recording() {
            self.explain_end(rq, curr, Function::Usual, Reason { rule, feature: None, compared }, now);
        }
    }

    /// Decisions since `before` were made by the tick; if it asked for nothing while others wait, that is recorded too.
    #[cold]
    fn explain_tick_over(&mut self, root: usize, before: usize, now: Nanos) {
        let asked = self.arena.rqs[root].resched;
        let curr = self.arena.leaf(root).task().filter(|_| self.arena.rqs[root].h_nr_running > 1);
        if let (false, Some(curr)) = (self.log.set_during(before, During::Tick, asked), curr) {
            self.explain_stay(curr, now);
            self.log.set_during(before, During::Tick, asked);
        }
    }
}
