//! The cache lines and locks of the scheduler's own structures.

use crate::machine::{Lines, Lock};

/// The lines of a task.
#[derive(Clone, Copy, Default, Debug)]
pub struct TaskLines {
    /// What a waker changes before the enqueue.
    pub wake: Lines,
    pub entity: Lines,
    /// What the CPU that runs the task changes.
    pub body: Lines,
}

/// The lines and the lock of a CPU's runqueue.
#[derive(Clone, Copy, Default, Debug)]
pub struct RunqueueLines {
    pub lines: Lines,
    pub wakelist: Lines,
    pub lock: Lock,
}
