//! The state of a task that placement uses (parts of `struct task_struct`).

use schedlab_model::{CpuId, CpuMask, Topology};

use super::class_id::ClassId;
use super::types::TaskAttr;
use crate::jiffies::Jiffies;

/// A task's history as a waker, which `wake_wide` judges by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakee {
    /// Birth number of the task it woke last; 0: none yet.
    pub last: u64,
    /// How often that changed, halved once a second.
    pub flips: u32,
    /// When it was last halved.
    pub decayed: Jiffies,
}

/// Per-task state.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Its number among all tasks ever added, from 1: ids are given out again, this is not.
    pub birth: u64,
    /// Its scheduling class.
    pub class: ClassId,
    /// `task_cpu`.
    pub cpu: CpuId,
    /// `cpus_ptr` where it is not all CPUs.
    pub affinity: Option<Box<CpuMask>>,
    /// The CPU before the last.
    pub recent_used_cpu: CpuId,
    /// `numa_preferred_nid`: the node of most of its NUMA hinting faults.
    pub preferred_node: Option<u32>,
    /// Its CPU has changed in the wakeup that is in progress (WF_MIGRATED).
    pub wake_migrated: bool,
    /// It is on its way out (PF_EXITING).
    pub exiting: bool,
    /// Wakeup history.
    pub wakee: Wakee,
    /// What a child inherits in `sched_fork`; `affinity` and `cpu` are kept above.
    pub attr: TaskAttr,
}

impl Task {
    pub fn new(attr: &TaskAttr, topology: &Topology) -> Self {
        let cpu = if attr.cpu.index() < topology.nr_cpus() { attr.cpu } else { CpuId(0) };
        let attr = TaskAttr { affinity: None, cpu, ..attr.clone() };
        Task {
            birth: 0,
            class: ClassId::default(),
            cpu,
            affinity: None,
            recent_used_cpu: cpu,
            preferred_node: None,
            wake_migrated: false,
            exiting: false,
            wakee: Wakee::default(),
            attr,
        }
    }

    /// Whether the task may run on the CPU.
    #[inline]
    pub fn allows(&self, cpu: CpuId) -> bool {
        self.affinity.as_ref().is_none_or(|mask| mask.has(cpu))
    }

    /// Stores an affinity: all CPUs is stored as none, and so is a set without any CPU (`sched_setaffinity` refuses
    /// it).
    pub fn set_affinity(&mut self, affinity: Option<&CpuMask>, topology: &Topology) {
        let mask = affinity.map(|mask| mask.and(topology.all()));
        self.affinity = mask.filter(|mask| !mask.is_empty() && mask != topology.all()).map(Box::new);
    }
}
