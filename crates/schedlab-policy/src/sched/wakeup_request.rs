//! The state of a wakeup that is passed between its procedures.

use schedlab_model::{CpuId, TaskId};

/// A wakeup of a sleeping task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wakeup {
    /// The task that wakes.
    pub task: TaskId,
    /// The CPU that executes the wakeup and is charged its cost.
    pub waker_cpu: CpuId,
    /// The waker is about to sleep (WF_SYNC).
    pub sync: bool,
    /// The task should go to the waker's CPU (WF_CURRENT_CPU).
    pub here: bool,
    /// The running task makes it, not an interrupt (`in_task()`).
    pub in_task: bool,
}
