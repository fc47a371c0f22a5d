//! A new task's entity (`__sched_fork`), and the slices that tasks may have of their own.

use super::entity::{Entity, EntityId};
use super::Fair;
use crate::pelt::sched_avg::SchedAvg;
use crate::weight::LoadWeight;
use crate::{FairPolicy, KernelConfig, SliceSource, TaskAttr};
use schedlab_model::{Nanos, TaskId};

/// Shortest and longest slice a task may request.
pub(super) const SLICE_RANGE: (Nanos, Nanos) = (100_000, 100_000_000);

impl Entity {
    /// A task's entity as `__sched_fork` leaves it: no lag, vruntime 0 relative to its CPU's queue.
    pub(super) fn of_task(attr: &TaskAttr, config: &KernelConfig) -> Entity {
        let own = own_slice(attr, config);
        let mut entity = Entity::blank(attr.cpu, config);
        entity.set_load(LoadWeight::of_task(attr.nice, attr.policy).dividing(config.rules.delta_divides));
        entity.slice = own.unwrap_or(config.knobs.base_slice);
        entity.avg.init_entity_runnable_average(entity.load, &config.rules.pelt);
        entity.nice = attr.nice.clamp(-20, 19);
        entity.prio = entity.nice;
        entity.latency_nice = attr.latency_nice.clamp(-20, 19);
        entity.policy = attr.policy;
        entity.custom_slice = own.is_some();
        entity
    }
}

impl Fair {
    /// The task, not yet queued, is old and has slept for so long that nothing is left of its averages.
    pub fn forget_load(&mut self, task: TaskId) {
        self.queues.arena.entities[EntityId::of(task)].avg = SchedAvg::default();
    }
}

/// The slice that a task keeps whatever base_slice becomes.
fn own_slice(attr: &TaskAttr, config: &KernelConfig) -> Option<Nanos> {
    match config.rules.slice {
        SliceSource::Base => None,
        SliceSource::LatencyNice => Some(latency_slice(config.knobs.base_slice, attr.latency_nice)),
        SliceSource::Custom => {
            attr.slice.filter(|slice| *slice > 0).map(|slice| slice.clamp(SLICE_RANGE.0, SLICE_RANGE.1))
        }
    }
}

/// The slice that a latency-nice value means (`set_latency_fair`); it reads the table of nice weights.
pub(super) fn latency_slice(base_slice: Nanos, latency_nice: i8) -> Nanos {
    (base_slice << 10) / LoadWeight::of_task(latency_nice, FairPolicy::Normal).scaled()
}

#[cfg(test)]
mod tests {
    use super::latency_slice;

    #[test]
    fn slices_of_latency_nice() {
        for (latency_nice, slice) in [
            (-20, 34_609),
            (-10, 321_742),
            (-5, 984_299),
            (0, 3_000_000),
            (5, 9_170_149),
            (10, 27_927_272),
            (19, 204_800_000),
        ] {
            assert_eq!(latency_slice(3_000_000, latency_nice), slice, "{latency_nice}");
        }
        assert_eq!(latency_slice(750_000, 19), 51_200_000);
    }
}
