//! Charging the running entity for the time it ran (`update_curr`), and what follows from it at once.
//!
//! CFS: `v += delta * 1024 / w`, then min_vruntime. EEVDF: also a new deadline when the old one is reached and, except in
//! the 2023 series, a resched wish if others wait: then, or when the protection of the running entity is over.

use super::entity::{Entity, EntityId};
use super::tree::Node;
use super::{CfsRq, Fair};
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use crate::{Protection, TreeKey, ZeroPoint};
use schedlab_model::{CpuId, Nanos, Vruntime};

impl Fair {
    /// Accounts the running task of a CPU up to `now`.
    pub fn update_curr(&mut self, cpu: CpuId, now: Nanos) {
        let mut curr = self.leaf(cpu.index());
        while curr.is_some() {
            let se = self.se(curr);
            let (rq, parent) = (se.cfs_rq as usize, se.parent);
            self.update_curr_rq(rq, now);
            curr = parent;
        }
    }

    /// Accounts exactly `ran` more nanoseconds to the running task, however its clock stood.
    pub fn update_curr_by(&mut self, cpu: CpuId, ran: Nanos) {
        let curr = self.leaf(cpu.index());
        if curr.is_some() {
            let now = self.se(curr).exec_start.wrapping_add(ran);
            self.update_curr(cpu, now);
        }
    }

    /// The same on the task's own queue alone: the groups above are charged when the kernel next looks at their queues.
    pub fn update_curr_leaf_by(&mut self, cpu: CpuId, ran: Nanos) {
        let curr = self.leaf(cpu.index());
        if curr.is_some() {
            let se = self.se(curr);
            let (rq, now) = (se.cfs_rq as usize, se.exec_start.wrapping_add(ran));
            self.update_curr_rq(rq, now);
        }
    }

    /// `update_curr` of one queue. Most calls come right after another: that test alone is inlined.
    #[inline(always)]
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
    #[inline(never)]
    fn charge(&mut self, rq: usize, curr: EntityId, delta: Nanos, now: Nanos) {
        self.charge_entity(rq, curr, delta, now);
        if self.bandwidth_used && self.rqs[rq].runtime_enabled {
            self.account_cfs_rq_runtime(rq, delta, now);
        }
    }

    #[inline(always)]
    fn charge_entity(&mut self, rq: usize, curr: EntityId, delta: Nanos, now: Nanos) {
        let q = &mut self.rqs[rq];
        let se = &mut self.entities[curr.index()];
        se.exec_start = now;
        se.sum_exec_runtime += delta;
        se.vruntime = se.vruntime.plus(calc_delta_fair(delta, se.load) as i64);
        let running = se.on_rq.then_some(se.vruntime);
        if !self.eevdf {
            q.update_min_vruntime(running, queued_minimum(q, &self.entities, &self.nodes, TreeKey::Vruntime));
            return;
        }
        let expired = se.update_deadline(self.config.knobs.base_slice);
        let exposed = match self.rules.protection {
            Protection::None => false,
            Protection::Marker => !se.marked(),
            Protection::Vprot { in_vlag, .. } => !se.before_vprot(in_vlag),
        };
        if self.rules.zero == ZeroPoint::Minimum && !self.config.has(Feature::MinimalVa) {
            q.update_min_vruntime(running, queued_minimum(q, &self.entities, &self.nodes, self.rules.tree_key));
        } else if expired || self.rules.zero == ZeroPoint::Minimum {
            self.update_zero(rq);
        }
        if expired || exposed {
            self.end_turn(rq, curr, expired, now);
        }
    }

    /// What a used-up slice or the end of protection means while others wait. A broken marker ends the turn only once the
    /// entity is not eligible either (`did_preempt_short`).
    #[inline(never)]
    fn end_turn(&mut self, rq: usize, curr: EntityId, expired: bool, now: Nanos) {
        if self.rqs[rq].nr_running == 1 {
            return;
        }
        let ends = expired
            || self.rules.protection != Protection::Marker
            || self.config.has(Feature::PreemptShort) && !self.entity_eligible(rq, curr);
        if ends && self.rules.expiry_reschedules {
            self.resched_curr_lazy(rq);
            self.clear_buddies(rq, curr);
            if self.decisions.is_some() {
                self.explain_expiry(rq, curr, expired, now);
            }
        }
    }

    /// [`CfsRq::update_min_vruntime`] with whoever runs and waits now.
    #[inline]
    pub(super) fn update_min_vruntime(&mut self, rq: usize) {
        if self.rules.zero == ZeroPoint::Average || self.config.has(Feature::MinimalVa) {
            return self.update_zero(rq);
        }
        let running = self.running(rq).map(|curr| self.se(curr).vruntime);
        let q = &mut self.rqs[rq];
        q.update_min_vruntime(running, queued_minimum(q, &self.entities, &self.nodes, self.rules.tree_key));
    }

    /// v0 where it is not simply the minimum: V after a new deadline (`zero_vruntime`), or always (MINIMAL_VA).
    #[inline(never)]
    fn update_zero(&mut self, rq: usize) {
        if self.rules.zero == ZeroPoint::Minimum && !self.config.has(Feature::MinimalVa) {
            return self.update_min_vruntime(rq);
        }
        let v = self.average(rq).vruntime();
        let q = &mut self.rqs[rq];
        q.move_zero(v.since(q.min_vruntime));
    }

    #[cold]
    fn explain_expiry(&mut self, rq: usize, curr: EntityId, expired: bool, now: Nanos) {
        let (rule, feature) = match self.rules.protection {
            _ if expired => ("slice used up", None),
            Protection::Vprot { .. } => ("protection is over", Some(Feature::RunToParity)),
            _ => ("protection broken and no longer eligible", Some(Feature::PreemptShort)),
        };
        let (v, d) = (self.se(curr).vruntime, self.se(curr).deadline);
        let key = |at| self.rqs[rq].key(at);
        let compared = [("vruntime", key(v)), ("deadline", key(d))];
        self.explain_end(rq, curr, (rule, feature), compared, now);
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

/// The smallest vruntime in the tree, if it has any node.
#[inline]
fn queued_minimum(q: &CfsRq, entities: &[Entity], nodes: &[Node], key: TreeKey) -> Option<Vruntime> {
    match key {
        TreeKey::Deadline => q.tree.min_value(nodes),
        TreeKey::Vruntime => q.tree.first().is_some().then(|| entities[q.tree.first().index()].vruntime),
    }
}

impl Entity {
    /// `update_deadline`: a new request once the old one is served. Whether that happened.
    #[inline]
    pub(super) fn update_deadline(&mut self, base_slice: Nanos) -> bool {
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
