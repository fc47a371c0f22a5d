//! One run.

use std::sync::Arc;

use schedlab_model::Nanos;
use schedlab_policy::KernelConfig;
use schedlab_workload::Workload;

use crate::{Cgroup, Guest, Machine};

/// Everything one run depends on.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The kernel: version row, features, knobs, HZ, preemption model.
    pub kernel: KernelConfig,
    /// The workloads.
    pub workloads: Arc<Vec<Workload>>,
    /// The control groups, each after its parent.
    pub cgroups: Arc<Vec<Cgroup>>,
    /// `sched_autogroup_enabled`: each workload is a session, and its tasks outside control groups share a group.
    pub autogroup: bool,
    /// Limit of the run, warm-up included.
    pub duration: Nanos,
    /// Samples before this are dropped.
    pub warmup: Nanos,
    /// The seed of every stream.
    pub seed: u64,
    /// Whether phases, offsets and costs are drawn from the seed; without noise each has its typical value and phases are 0.
    pub noise: bool,
    /// Which draw breaks the ties that the kernel leaves to chance; without one they are broken by number.
    pub ties: Option<u64>,
    /// The guests that it hosts.
    pub guests: Arc<Vec<Guest>>,
}
