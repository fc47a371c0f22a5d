//! The state of a CPU when `__schedule` begins.

use schedlab_model::{CpuId, Nanos, TaskId};

/// Why the running task does not stay runnable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaving {
    /// It sleeps.
    Sleeps,
    /// It has exited.
    Exits,
}

/// What `__schedule` finds on its CPU.
#[derive(Clone, Copy, Default, Debug)]
pub struct Schedule {
    /// The running task leaves; `None`: it stays runnable.
    pub leaving: Option<Leaving>,
    /// The stopper moves this task of the CPU to another one, where alone it may run (`migration_cpu_stop`).
    pub migrate: Option<(TaskId, CpuId)>,
    /// How long after its beginning the last wakeup check read the clock: a skipped update leaves what it read.
    pub clock_read: Nanos,
    /// How long ago `__schedule` began and read the clock: the time of the pick.
    pub began: Nanos,
}
