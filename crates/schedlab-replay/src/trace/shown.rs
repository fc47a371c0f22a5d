//! What single records show as a whole.

use schedlab_model::{Nanos, Pid};

/// A task as it starts in a simulated trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    pub pid: Pid,
    /// Its policy's number in user space.
    pub policy: u32,
    pub nice: i8,
    /// 0: none of its own.
    pub slice: Nanos,
    pub latency_nice: i8,
    /// The number of its group: 0 the root, then those of the header in their order, then autogroups.
    pub group: u32,
}

/// What a group's queues on other CPUs had reported when `calc_group_shares` read the sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OthersLoad {
    /// `tg->load_avg` less `tg_load_avg_contrib`.
    pub load: i64,
    /// `tg->runnable_avg` less `tg_runnable_avg_contrib`.
    pub runnable: i64,
}
