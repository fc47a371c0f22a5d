//! The parameters of a real-time task, and how a row limits the class.

use super::array::MAX_RT_PRIO;

/// A policy of the class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtPolicy {
    /// `sched_priority`, 1..=99, 99 the best.
    pub priority: u8,
    /// SCHED_RR instead of SCHED_FIFO.
    pub round_robin: bool,
}

impl RtPolicy {
    /// The kernel's order of priorities, 0 the best (`task_struct.prio`).
    #[inline]
    #[must_use]
    pub fn prio(self) -> u8 {
        MAX_RT_PRIO - 1 - self.priority.clamp(1, 99)
    }
}

/// How a version limits the class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtLimit {
    /// `sched_rt_runtime_us` of every `sched_rt_period_us`.
    Throttling,
    /// The deadline server of the fair class.
    FairServer,
}
