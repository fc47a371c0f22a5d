//! What traces show of processes.

use schedlab_model::CpuId;

/// What a trace shows of a task's process where the task is charged, before the charge counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessShown {
    /// Identifies the address space; 0: the task has none.
    pub mm: u64,
    /// The number of threads (`signal->nr_threads`).
    pub nr_threads: u64,
    /// `preferred_llc` of the task.
    pub preferred_llc: Option<u32>,
    /// The CPU in whose cache the process prefers to run (`sched_cache_grp->cpu`).
    pub cpu: Option<CpuId>,
    /// The tick count.
    pub jiffies: Option<u64>,
}
