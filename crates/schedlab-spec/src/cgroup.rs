//! A control group as its `cpu.*` files describe it.

use schedlab_model::{CpuMask, Nanos};
use schedlab_policy::fair::GroupShares;

/// A control group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cgroup {
    /// Path from the root, e.g. `/web/fast`. Its parent group precedes it in the list.
    pub path: String,
    /// `cpu.weight`, `cpu.weight.nice` or `cpu.shares`; `None` = 1024 shares.
    pub shares: Option<GroupShares>,
    /// `cpu.idle`.
    pub idle: bool,
    /// `cpu.latency.nice`, where the kernel has it.
    pub latency_nice: i8,
    /// `cpu.max` and `cpu.max.burst`; `None` = unlimited.
    pub bandwidth: Option<CpuMax>,
    /// `cpuset.cpus`; `None` = its parent's.
    pub cpus: Option<CpuMask>,
    /// When they change, and to what.
    pub cpus_later: Vec<(Nanos, CpuMask)>,
    /// Its `cpu.stat` is among the run's metrics, limited or not.
    pub counted: bool,
}

/// The CPU time that a group may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuMax {
    /// CPU time per period.
    pub quota: Nanos,
    /// Length of the period.
    pub period: Nanos,
    /// Unused quota that may accumulate beyond `quota`.
    pub burst: Nanos,
}
