//! What a trace can show of the class's state.

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
