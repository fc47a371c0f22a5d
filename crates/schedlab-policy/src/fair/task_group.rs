//! Task groups (`struct task_group`): per CPU each owns a queue and, but for the root, the entity that stands for that
//! queue one level up.

use crate::group_id::GroupId;
use crate::pelt::group::GroupLoad;
use crate::weight::NICE_0_LOAD;

/// What is known of a group as a whole.
#[derive(Clone, Debug)]
pub struct TaskGroup {
    /// The group above; the root is its own.
    pub parent: GroupId,
    /// Weight at full resolution, to be divided among CPUs.
    pub shares: u64,
    /// `cpu.idle`.
    pub idle: bool,
    /// `cpu.latency.nice` (2023 series).
    pub latency_nice: i8,
    /// Sum of its queues' contributions.
    pub load: GroupLoad,
    /// The number of CPUs in its cpuset (`cpuset_num_cpus`), if the kernel has cpusets.
    pub cpus: Option<usize>,
}

impl TaskGroup {
    pub(super) fn root() -> Self {
        TaskGroup {
            parent: GroupId::ROOT,
            shares: NICE_0_LOAD,
            idle: false,
            latency_nice: 0,
            load: GroupLoad::default(),
            cpus: None,
        }
    }
}
