//! Charges the running entity for the time that it ran (`update_curr`), and carries out the immediate consequences.
//!
//! EEVDF, except in the 2023 series, requests a reschedule if others wait: when the slice is used up, or when the
//! protection of the running entity is over. The group's runtime is charged too.

use super::charge::Ended;
use super::entity::EntityId;
use super::explain::Reason;
use super::queues::Queues;
use crate::decision::Function;
use crate::features::Feature;
use crate::run_times::RunTime;
use crate::Protection;
use schedlab_model::{rarely, CpuId, Nanos};

impl Queues {
    /// `update_curr` of one queue. Most calls come right after another: that test alone is inlined.
    #[inline(always)]
    pub fn update_curr(&mut self, rq: usize, now: Nanos) {
        let curr = self.arena.rqs[rq].h_curr;
        if curr.is_nil() {
            return;
        }
        let delta = now.wrapping_sub(self.arena.entities[curr].exec_start);
        if delta as i64 > 0 {
            self.charge_curr(rq, curr, delta, now);
        }
    }

    /// `update_curr_eevdf`: charges the running entity of those that compete on a queue.
    #[inline]
    pub fn update_curr_eevdf(&mut self, rq: usize, now: Nanos) {
        let curr = self.arena.rqs[rq].curr;
        if curr.is_some() {
            self.update_curr(self.arena.entities[curr].rq(), now);
        }
    }

    /// The same in the pick: where the running entity is still queued.
    #[inline(always)]
    pub fn update_running(&mut self, rq: usize, now: Nanos) {
        let Some(curr) = self.arena.rqs[rq].running_entity(&self.arena.entities) else { return };
        if rarely(self.arena.grouped) {
            return self.update_curr(curr.rq(), now);
        }
        let delta = now.wrapping_sub(curr.exec_start);
        if delta as i64 > 0 {
            self.charge_curr(rq, self.arena.rqs[rq].curr, delta, now);
        }
    }

    /// `update_curr` of the task that runs on a CPU and of the groups above it.
    pub fn update_curr_levels(&mut self, root: usize, now: Nanos) {
        let mut curr = self.arena.leaf(root);
        while curr.is_some() {
            let se = &self.arena.entities[curr];
            let (rq, parent) = (se.rq(), se.parent);
            self.update_curr(rq, now);
            curr = parent;
        }
    }

    /// The part of `update_curr` after its early exits.
    #[inline(never)]
    fn charge_curr(&mut self, rq: usize, curr: EntityId, delta: Nanos, now: Nanos) {
        let competes_on = self.arena.competes_on(rq);
        let se = &mut self.arena.entities[curr];
        if rarely(self.config.rules.flat_hierarchy) && !se.is_task() {
            se.update_se(delta, now);
            return self.charge_group(rq, delta, now);
        }
        let ended = self.arena.rqs[competes_on].charge(&mut self.arena.entities, &self.config, curr, delta, now);
        if ended.slice
            || ended.protection
            || rarely(self.pools.used)
            || self.run_times.are_on()
            || self.has_sched_cache()
        {
            self.after_charge(rq, curr, delta, ended, now);
        }
    }

    /// What follows from a charge, where anything does.
    #[inline(never)]
    fn after_charge(&mut self, rq: usize, curr: EntityId, delta: Nanos, ended: Ended, now: Nanos) {
        self.run_times.record(|| {
            let se = &self.arena.entities[curr];
            se.is_task().then(|| RunTime { task: curr.task_id(), runtime: delta, vruntime: se.vruntime.0 })
        });
        if self.has_sched_cache() {
            self.account_mm_sched(rq, curr, delta, now);
        }
        if ended.slice || ended.protection {
            self.end_turn(self.arena.competes_on(rq), curr, ended, now);
        }
        self.charge_group(rq, delta, now);
    }

    /// Whether cache-aware balancing is active.
    #[inline]
    fn has_sched_cache(&self) -> bool {
        rarely(self.sched_cache.is_some())
    }

    /// `account_mm_sched`.
    #[inline(never)]
    fn account_mm_sched(&mut self, rq: usize, curr: EntityId, delta: Nanos, now: Nanos) {
        let (se, root) = (&self.arena.entities[curr], self.arena.root_of(rq));
        if let Some(cache) = self.sched_cache.as_mut().filter(|cache| se.is_task() && !cache.follows_trace) {
            cache.account_mm_sched(CpuId(root as u32), curr.task_id(), delta, se.on_rq, now);
        }
    }

    /// The runtime of the group that the queue belongs to.
    #[inline]
    fn charge_group(&mut self, rq: usize, delta: Nanos, now: Nanos) {
        if rarely(self.pools.used) && self.arena.rqs[rq].runtime_enabled {
            self.account_cfs_rq_runtime(rq, delta, now);
        }
    }

    /// What a used-up slice or the end of protection means while others wait. A broken marker ends the turn only once
    /// the entity is not eligible either (`did_preempt_short`).
    fn end_turn(&mut self, rq: usize, curr: EntityId, ended: Ended, now: Nanos) {
        let q = &self.arena.rqs[rq];
        if q.nr_competing(&self.config) == 1 {
            return;
        }
        let ends = ended.slice
            || self.config.rules.protection != Protection::Marker
            || self.config.has(Feature::PreemptShort) && !q.entity_eligible(&self.arena.entities, curr);
        if ends && self.config.rules.expiry_reschedules {
            self.resched_curr_lazy(rq);
            self.arena.clear_buddies(rq, curr);
            if self.is_recording() {
                self.explain_expiry(rq, curr, ended, now);
            }
        }
    }

    #[cold]
    fn explain_expiry(&mut self, rq: usize, curr: EntityId, ended: Ended, now: Nanos) {
        let (rule, feature) = match self.config.rules.protection {
            _ if ended.slice => ("slice used up", None),
            Protection::Vprot { .. } => ("protection is over", Some(Feature::RunToParity)),
            _ => ("protection broken and no longer eligible", Some(Feature::PreemptShort)),
        };
        let (q, se) = (&self.arena.rqs[rq], &self.arena.entities[curr]);
        let compared = [("vruntime", q.key(se.vruntime)), ("deadline", q.key(se.deadline))];
        self.explain_end(rq, curr, Function::Usual, Reason { rule, feature, compared }, now);
    }
}
