//! NUMA balancing as the caller drives it: the memory of tasks, their use of it, and the scan ([`crate::numa`]). Every
//! call does nothing where NUMA balancing is not active.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::Sched;
use crate::class::ClassList;
use crate::config::KernelConfig;
use crate::numa::{Access, Numa, NumaMemory};

impl<L: ClassList> Sched<L> {
    /// Tasks with memory will follow. False: on this machine it makes no difference where their memory is.
    pub fn init_numa(&mut self, config: &KernelConfig) -> bool {
        self.core.numa = Numa::new(config, &self.core.possible);
        self.core.numa.is_some()
    }

    /// A new task has this memory in the address space of this number (`init_numa_balancing`).
    pub fn init_numa_balancing(&mut self, task: TaskId, mm: u64, memory: &NumaMemory, now: Nanos) {
        let (birth, jiffies) = (self.core.tasks[task.index()].birth, self.core.jiffies(now));
        if let Some(numa) = &mut self.core.numa {
            numa.init_numa_balancing(task, birth, mm, memory, jiffies);
        }
    }

    /// A child with an address space of its own prefers no node yet.
    pub fn forget_preferred_nid(&mut self, child: TaskId) {
        self.core.tasks[child.index()].preferred_node = None;
    }

    /// The task has no memory any more: it exits or replaces its program (`task_numa_free`).
    pub fn task_numa_free(&mut self, task: TaskId) {
        if let Some(numa) = &mut self.core.numa {
            numa.task_numa_free(task);
        }
    }

    /// The task has run on its CPU in user mode for so long since the last call, and has used the next part of its
    /// memory. `may_move`: it runs on, and may move to its preferred node.
    pub fn numa_access(&mut self, cpu: CpuId, task: TaskId, user: Nanos, may_move: bool, now: Nanos) -> Access {
        self.class(Self::LOWEST).numa_access(cpu, task, user, may_move, now)
    }

    /// Whether the task has to call [`Sched::task_numa_work`] before it runs in user mode again.
    #[inline]
    #[must_use]
    pub fn has_numa_work(&self, task: TaskId) -> bool {
        self.core.numa.as_ref().is_some_and(|numa| numa.has_work(task))
    }

    /// `task_numa_work` of the running task: how many entries of page tables it looked at. They will have cost
    /// `per_entry` each.
    pub fn task_numa_work(&mut self, task: TaskId, per_entry: Nanos, now: Nanos) -> u64 {
        let (birth, jiffies) = (self.core.tasks[task.index()].birth, self.core.jiffies(now));
        let cpu = self.core.cpu_of(task);
        let Some(numa) = &mut self.core.numa else { return 0 };
        numa.task_numa_work(task, cpu, birth, per_entry, jiffies)
    }

    /// How many pages of 4 KiB of the task's process each node has.
    #[must_use]
    pub fn numa_pages(&self, task: TaskId) -> Vec<u64> {
        self.core.numa.as_ref().map_or(Vec::new(), |numa| numa.pages_by_node(task))
    }

    /// `numa_preferred_nid`.
    #[must_use]
    pub fn numa_preferred_nid(&self, task: TaskId) -> Option<u32> {
        self.core.tasks[task.index()].preferred_node
    }
}
