//! The cache lines and locks of the scheduler's own structures.

use crate::machine::{Changed, Lines, Lock};

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

/// The lines of one group.
#[derive(Clone, Debug)]
pub struct GroupLines {
    /// `tg->load_avg`.
    pub load_avg: Changed,
    /// The queue of the group on each CPU, with the entity that stands for it one level up.
    pub queues: Vec<Lines>,
}

impl GroupLines {
    /// Lines that no CPU has touched, of every group.
    pub fn of_all(nr_groups: usize, nr_cpus: usize) -> Vec<GroupLines> {
        vec![GroupLines { load_avg: Changed::default(), queues: vec![Lines::default(); nr_cpus] }; nr_groups]
    }
}
