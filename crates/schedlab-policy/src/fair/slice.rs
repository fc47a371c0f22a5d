//! CFS: how long an entity may run in one period (`__sched_period`, `sched_slice`).
//!
//! Follows 6.1.192: `slice = period * w / W`, at least min_granularity (BASE_SLICE), where the period is sched_latency,
//! or `n * min_granularity` once more than `sched_nr_latency` tasks share it. In a group, that again times the group's
//! share of the level above, up to the root.

use super::entity::EntityId;
use super::Fair;
use crate::features::Feature;
use crate::weight::{calc_delta, calc_delta_fair, LoadWeight};
use schedlab_model::{Nanos, TaskId};

impl Fair {
    /// How long the task may run at once (`get_rr_interval`, unrounded): CFS's ideal slice now, EEVDF's request.
    #[must_use]
    pub fn slice_of(&self, task: TaskId) -> Nanos {
        let id = EntityId::of(task);
        if self.eevdf {
            self.se(id).slice
        } else {
            self.sched_slice(self.se(id).cfs_rq as usize, id)
        }
    }

    /// `sched_slice`: wall time. An entity that is not queued is counted as if it were.
    pub(super) fn sched_slice(&self, rq: usize, id: EntityId) -> Nanos {
        let (q, se) = (&self.rqs[rq], self.se(id));
        let knobs = &self.config.knobs;
        let alt = self.config.has(Feature::AltPeriod);
        let counted = if alt { self.rq(q.cpu).h_nr_running } else { q.nr_running } + u32::from(!se.on_rq);
        let mut slice = self.sched_period(counted);
        let mut at = id;
        while at.is_some() {
            let level = self.se(at);
            let total = self.rqs[level.cfs_rq as usize].load.weight + if level.on_rq { 0 } else { level.load.weight };
            slice = calc_delta(slice, level.load.weight, LoadWeight::of_sum(total));
            at = level.parent;
        }
        if !self.config.has(Feature::BaseSlice) {
            return slice;
        }
        let beside_others = self.rules.idle_slice_floor && se.is_idle() && !q.is_sched_idle();
        slice.max(if beside_others { knobs.idle_min_granularity } else { knobs.min_granularity })
    }

    /// `sched_vslice`: the same in the entity's virtual time.
    #[inline(never)]
    pub(super) fn sched_vslice(&self, rq: usize, id: EntityId) -> u64 {
        calc_delta_fair(self.sched_slice(rq, id), self.se(id).load)
    }

    /// `__sched_period`.
    fn sched_period(&self, running: u32) -> Nanos {
        let knobs = &self.config.knobs;
        if u64::from(running) > knobs.nr_latency {
            u64::from(running) * knobs.min_granularity
        } else {
            knobs.latency
        }
    }
}
