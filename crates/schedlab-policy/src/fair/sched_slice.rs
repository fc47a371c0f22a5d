//! CFS: how long an entity may run in one period (`__sched_period`, `sched_slice`).
//!
//! Follows 6.1.192: `slice = period * w / W`, at least min_granularity (BASE_SLICE), where the period is sched_latency,
//! or `n * min_granularity` once more than `sched_nr_latency` tasks share it. In a group, that again times the group's
//! share of the level above, up to the root.

use super::arena::Arena;
use super::entity::EntityId;
use crate::features::Feature;
use crate::weight::{calc_delta, calc_delta_fair, LoadWeight};
use crate::KernelConfig;
use schedlab_model::Nanos;

impl Arena {
    /// `sched_slice`: wall time. An entity that is not queued on `rq` is counted as if it were.
    pub fn sched_slice(&self, config: &KernelConfig, rq: usize, id: EntityId) -> Nanos {
        let (q, se) = (&self.rqs[rq], &self.entities[id]);
        let alt = config.has(Feature::AltPeriod);
        let queued = if alt { self.rqs[q.cpu.index()].h_nr_running } else { q.nr_running };
        let mut slice = __sched_period(config, queued + u32::from(!se.on_rq));
        let mut at = id;
        while at.is_some() {
            let level = &self.entities[at];
            let total = self.rqs[level.rq()].load.weight + if level.on_rq { 0 } else { level.load.weight };
            slice = calc_delta(slice, level.load.weight, &LoadWeight::of_sum(total));
            at = level.parent;
        }
        if !config.has(Feature::BaseSlice) {
            return slice;
        }
        let beside_others = config.rules.idle_slice_floor && se.is_idle() && !q.is_sched_idle();
        slice.max(if beside_others { config.knobs.idle_min_granularity } else { config.knobs.min_granularity })
    }

    /// `sched_vslice`: the same in the entity's virtual time.
    #[inline(never)]
    pub fn sched_vslice(&self, config: &KernelConfig, rq: usize, id: EntityId) -> u64 {
        calc_delta_fair(self.sched_slice(config, rq, id), &self.entities[id].h_load)
    }
}

/// `__sched_period`.
fn __sched_period(config: &KernelConfig, running: u32) -> Nanos {
    let knobs = &config.knobs;
    if u64::from(running) > knobs.nr_latency {
        u64::from(running) * knobs.min_granularity
    } else {
        knobs.latency
    }
}
