//! The parameters of a real-time task.

/// Priorities of the real-time class, 0 first; priority p of the system calls is 99 - p here (`MAX_RT_PRIO`).
pub const MAX_RT_PRIO: u8 = 100;

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
