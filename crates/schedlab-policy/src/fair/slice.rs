//! CFS: how long an entity may run in one period (`__sched_period`, `sched_slice`).
//!
//! Follows 6.1.192: `slice = period * w / W`, at least min_granularity (BASE_SLICE), where the period is sched_latency,
//! or `n * min_granularity` once more than `sched_nr_latency` tasks share it.

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
            self.sched_slice(self.se(id).cpu.index(), id)
        }
    }

    /// `sched_slice`: wall time. An entity that is not queued is counted as if it were.
    pub(super) fn sched_slice(&self, rq: usize, id: EntityId) -> Nanos {
        let (q, se) = (&self.rqs[rq], self.se(id));
        let knobs = &self.config.knobs;
        let mut load = q.load;
        let mut counted = if self.config.has(Feature::AltPeriod) { q.h_nr_running } else { q.nr_running };
        if !se.on_rq {
            load = LoadWeight::of_sum(load.weight + se.load.weight);
            counted += 1;
        }
        let slice = calc_delta(self.sched_period(counted), se.load.weight, load);
        if !self.config.has(Feature::BaseSlice) {
            return slice;
        }
        let beside_others = self.rules.idle_slice_floor && se.is_idle() && !q.is_sched_idle();
        slice.max(if beside_others { knobs.idle_min_granularity } else { knobs.min_granularity })
    }

    /// `sched_vslice`: the same in the entity's virtual time.
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
