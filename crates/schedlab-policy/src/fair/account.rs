//! Charging the running entity for the time it ran (`update_curr`), and what follows from it at once.
//!
//! CFS: `v += delta * 1024 / w`, then min_vruntime. EEVDF 6.12.0: also a new deadline when the old one is reached, and
//! a resched wish if others wait.

use super::entity::{Entity, EntityId};
use super::{CfsRq, Fair};
use crate::decision::Verdict;
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use schedlab_model::{CpuId, Nanos, Vruntime};

impl Fair {
    /// Accounts the running task of a CPU up to `now`.
    pub fn update_curr(&mut self, cpu: CpuId, now: Nanos) {
        self.update_curr_rq(cpu.index(), now);
    }

    /// Accounts exactly `ran` more nanoseconds to the running task, however its clock stood.
    pub fn update_curr_by(&mut self, cpu: CpuId, ran: Nanos) {
        let curr = self.rqs[cpu.index()].curr;
        if curr.is_some() {
            let now = self.se(curr).exec_start.wrapping_add(ran);
            self.update_curr_rq(cpu.index(), now);
        }
    }

    /// `update_curr` of one queue.
    #[inline]
    pub(super) fn update_curr_rq(&mut self, rq: usize, now: Nanos) {
        let curr = self.rqs[rq].curr;
        if curr.is_nil() {
            return;
        }
        let delta = now.wrapping_sub(self.entities[curr.index()].exec_start);
        if delta as i64 > 0 {
            self.charge(rq, curr, delta, now);
        }
    }

    /// The part of `update_curr` after its early exits.
    fn charge(&mut self, rq: usize, curr: EntityId, delta: Nanos, now: Nanos) {
        let q = &mut self.rqs[rq];
        let se = &mut self.entities[curr.index()];
        se.exec_start = now;
        se.sum_exec_runtime += delta;
        se.vruntime = se.vruntime.plus(calc_delta_fair(delta, se.load) as i64);
        let running = se.on_rq.then_some(se.vruntime);
        if !self.eevdf {
            q.update_min_vruntime(running, q.tree.min_value(&self.nodes));
            return;
        }
        let expired = se.update_deadline(self.config.knobs.base_slice);
        let broken = !se.marked();
        q.update_min_vruntime(running, q.tree.min_value(&self.nodes));
        if (expired || broken) && q.nr_running != 1 && (expired || self.did_preempt_short(rq, curr)) {
            self.resched_curr(rq);
            self.rqs[rq].clear_buddies(curr);
            if self.decisions.is_some() {
                self.explain_expiry(rq, curr, expired, now);
            }
        }
    }

    /// [`CfsRq::update_min_vruntime`] with whoever runs and waits now.
    #[inline]
    pub(super) fn update_min_vruntime(&mut self, rq: usize) {
        let running = self.running(rq).map(|curr| self.se(curr).vruntime);
        let q = &mut self.rqs[rq];
        q.update_min_vruntime(running, q.tree.min_value(&self.nodes));
    }

    /// `did_preempt_short`: the running entity, its protection broken, is no longer eligible.
    #[inline]
    fn did_preempt_short(&self, rq: usize, curr: EntityId) -> bool {
        self.config.has(Feature::PreemptShort) && !self.entity_eligible(rq, curr)
    }

    #[cold]
    fn explain_expiry(&mut self, rq: usize, curr: EntityId, expired: bool, now: Nanos) {
        let (rule, feature) = if expired {
            ("slice used up", None)
        } else {
            ("protection broken and no longer eligible", Some(Feature::PreemptShort))
        };
        let (v, d) = (self.se(curr).vruntime, self.se(curr).deadline);
        let key = |at| self.rqs[rq].key(at);
        let compared = [("vruntime", key(v)), ("deadline", key(d))];
        self.explain(rq, now, Verdict::Expire(curr.task_id()), rule, feature, compared);
    }
}

impl CfsRq {
    /// `update_min_vruntime`: the smallest vruntime of running and queued entities, if that is further right.
    #[inline]
    fn update_min_vruntime(&mut self, running: Option<Vruntime>, queued: Option<Vruntime>) {
        match (running, queued) {
            (Some(a), Some(b)) => self.raise_min_vruntime(a.min(b)),
            (Some(v), None) | (None, Some(v)) => self.raise_min_vruntime(v),
            (None, None) => {}
        }
    }
}

impl Entity {
    /// `update_deadline`: a new request once the old one is served. Whether that happened.
    #[inline]
    fn update_deadline(&mut self, base_slice: Nanos) -> bool {
        if self.vruntime.before(self.deadline) {
            return false;
        }
        if !self.custom_slice {
            self.slice = base_slice;
        }
        self.deadline = self.vruntime.plus(calc_delta_fair(self.slice, self.load) as i64);
        true
    }
}
