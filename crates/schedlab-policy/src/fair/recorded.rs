//! The parts of the class's state that a trace can contain.

use super::entity::Entity;
use super::load_avg::BOOT;
use crate::pelt::sched_avg::SchedAvg;
use schedlab_model::{Nanos, Vruntime};

/// What a trace can show of an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskState {
    /// `se.vruntime`.
    pub vruntime: Vruntime,
    /// `se.deadline`.
    pub deadline: Vruntime,
    /// `se.vlag`.
    pub vlag: i64,
    /// `se.slice`.
    pub slice: Nanos,
}

/// What a trace can show of a load average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadState {
    /// `avg.load_avg`.
    pub load_avg: u64,
    /// `avg.load_sum`.
    pub load_sum: u64,
    /// `avg.last_update_time`.
    pub last_update_time: Nanos,
    /// `avg.period_contrib`.
    pub period_contrib: u32,
}

/// What a trace can show of the averages of a CPU's own queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuAverages {
    /// `cfs_rq->avg.load_avg`.
    pub load_avg: u64,
    /// `cfs_rq->avg.runnable_avg`.
    pub runnable_avg: u64,
    /// `cfs_rq->avg.util_avg`.
    pub util_avg: u32,
    /// `cfs_rq->avg.util_est`.
    pub util_est: u32,
    /// `cfs_rq->avg.period_contrib`.
    pub period_contrib: u32,
}

impl CpuAverages {
    /// `last_update_time`, where a trace shows it only by the position in the segment: a queue of a CPU begins at 0, so
    /// that
    ///
    /// ```text
    /// period_contrib = last_update_time / 1024 mod 1024
    /// ```
    ///
    /// and the last update is the latest time up to `now` of which that is true.
    #[must_use]
    pub fn last_update_time(&self, now: Nanos) -> Nanos {
        let units = now >> 10;
        let since = units.wrapping_sub(u64::from(self.period_contrib)) % 1024;
        units.saturating_sub(since) << 10
    }

    /// `period_contrib` after an update at that time.
    #[must_use]
    pub fn period_contrib_at(last_update_time: Nanos) -> u32 {
        (last_update_time >> 10) as u32 % 1024
    }
}

impl LoadState {
    pub(super) fn write_to(self, avg: &mut SchedAvg) {
        (avg.load_avg, avg.load_sum) = (self.load_avg, self.load_sum);
        // 0: on no queue.
        let attached = self.last_update_time != 0;
        avg.last_update_time = if attached { self.last_update_time + BOOT } else { 0 };
        avg.period_contrib = self.period_contrib;
    }
}

/// What a trace can show of the entity that stands for a group on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupState {
    /// As of a task, up to 7.2, where it competes.
    pub state: Option<TaskState>,
    /// `se.load.weight`.
    pub weight: u64,
    /// `se.exec_start`, if known.
    pub exec_start: Option<Nanos>,
}

/// What a trace can show of a queue's contribution to the load of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contribution {
    /// `cfs_rq->tg_load_avg_contrib`.
    pub tg_load_avg_contrib: u64,
    /// `cfs_rq->last_update_tg_load_avg`.
    pub last_update_tg_load_avg: Nanos,
    /// `tg->load_avg`, over all CPUs.
    pub load_avg: i64,
}

impl TaskState {
    pub(super) fn write_to(self, se: &mut Entity) {
        (se.vruntime, se.deadline, se.vlag, se.slice) = (self.vruntime, self.deadline, self.vlag, self.slice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_update_of_a_cpus_queue_follows_from_its_position_in_the_segment() {
        for (last, age) in [(0, 0), (1023, 1), (1024, 1023), (3_682_266, 27), (3_682_266, 1023)] {
            let averages =
                |period_contrib| CpuAverages { load_avg: 0, runnable_avg: 0, util_avg: 0, util_est: 0, period_contrib };
            let now = ((last + age) << 10) + 700;
            assert_eq!(averages((last % 1024) as u32).last_update_time(now), last << 10, "{last} {age}");
        }
    }
}
