//! Charging the running entity for the time it ran (`update_curr`), and what follows from it at once.
//!
//! CFS: `v += delta * 1024 / w`, then min_vruntime. EEVDF 6.12.0: also a new deadline when the old one is reached, and
//! a resched wish if others wait.

use super::entity::EntityId;
use super::Fair;
use crate::decision::Verdict;
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use schedlab_model::{CpuId, Nanos};

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
        let se = self.se_mut(curr);
        let delta = now.wrapping_sub(se.exec_start);
        if delta as i64 <= 0 {
            return;
        }
        se.exec_start = now;
        se.sum_exec_runtime += delta;
        se.vruntime = se.vruntime.plus(calc_delta_fair(delta, se.load) as i64);
        if !self.eevdf {
            self.update_min_vruntime(rq);
            return;
        }
        let expired = self.update_deadline(curr);
        self.update_min_vruntime(rq);
        if self.rqs[rq].nr_running == 1 {
            return;
        }
        if expired || self.did_preempt_short(rq, curr) {
            self.resched_curr(rq);
            self.rqs[rq].clear_buddies(curr);
            if self.decisions.is_some() {
                self.explain_expiry(rq, curr, expired, now);
            }
        }
    }

    /// `update_min_vruntime`: the smallest vruntime of running and queued entities, if that is further right.
    #[inline]
    pub(super) fn update_min_vruntime(&mut self, rq: usize) {
        let q = &self.rqs[rq];
        let queued = if self.eevdf {
            q.tree.min_value(&self.nodes)
        } else {
            let first = q.tree.first();
            first.is_some().then(|| self.se(first).vruntime)
        };
        let running = self.running(rq).map(|curr| self.se(curr).vruntime);
        let smallest = match (running, queued) {
            (Some(a), Some(b)) => a.min(b),
            (Some(v), None) | (None, Some(v)) => v,
            (None, None) => return,
        };
        self.rqs[rq].raise_min_vruntime(smallest);
    }

    /// `update_deadline`: a new request once the old one is served. Whether that happened.
    #[inline]
    fn update_deadline(&mut self, id: EntityId) -> bool {
        let base_slice = self.config.knobs.base_slice;
        let se = self.se_mut(id);
        if se.vruntime.before(se.deadline) {
            return false;
        }
        if !se.custom_slice {
            se.slice = base_slice;
        }
        se.deadline = se.vruntime.plus(calc_delta_fair(se.slice, se.load) as i64);
        true
    }

    /// `did_preempt_short`: the running entity lost its protection and is no longer eligible.
    #[inline]
    fn did_preempt_short(&self, rq: usize, curr: EntityId) -> bool {
        self.config.has(Feature::PreemptShort) && !self.se(curr).marked() && !self.entity_eligible(rq, curr)
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
