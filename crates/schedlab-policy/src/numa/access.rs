//! The result of a use of memory: faults, migrated pages, and the move of the task.

use schedlab_model::{CpuId, TaskId};

/// The result of a task's use of its memory since the last call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Pages of 4 KiB used.
    pub pages: u64,
    /// Those of them that were on another node.
    pub remote: u64,
    /// Hinting faults.
    pub faults: u32,
    /// Those of them on a page of the CPU's node.
    pub local: u32,
    /// Faults that moved the page.
    pub migrations: u32,
    /// Pages of 4 KiB that they moved.
    pub migrated: u64,
    /// The task moves to its preferred node.
    pub moves: Option<NumaMove>,
    /// CPUs that the search for a CPU there has examined.
    pub looked_at: u32,
}

/// A task that is to move to a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NumaMove {
    /// The task, which is running.
    pub task: TaskId,
    /// Where it goes.
    pub dest: CpuId,
    /// The running task of that CPU, which goes where the first one comes from (`migrate_swap`).
    pub swap: Option<TaskId>,
}
