//! NUMA balancing (CONFIG_NUMA_BALANCING): tasks are brought to the node of their memory, and pages to the node of the
//! tasks that use them.
//!
//! kernel/sched/fair.c of 6.1.192, 6.12.107 and 7.2.13, and `do_numa_page` of mm/memory.c. It acts on the memory that
//! the caller states ([`NumaMemory`]), on machines with several nodes. With `kernel.numa_balancing` = 0 pages and tasks
//! stay where they are.
//!
//! - [`memory`]: the pages of each address space. A page is on the node of the CPU that uses it first.
//! - [`scan`]: at ticks a task makes the next part of its address space inaccessible (`task_tick_numa`,
//!   `task_numa_work`).
//! - [`stats`]: faults are counted by node, and the node with most of them is preferred (`task_numa_placement`). Tasks
//!   that use the same pages form a group.
//!
//! The next use of such a page is a hinting fault, which may migrate the page and the task: [`crate::task_numa`].
//!
//! Simplified: all nodes are equally far from each other (NUMA_DIRECT). Not modelled: memory tiering, cpusets of nodes,
//! memory that several processes share, migrations that fail, nodes that run out of memory.

pub(crate) mod access;
mod fbq;
pub(crate) mod memory;
pub(crate) mod scan;
pub(crate) mod stats;

pub use access::{Access, NumaMove};
pub(crate) use fbq::Fbq;
pub use memory::NumaMemory;

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, TaskId, Topology};

use crate::config::KernelConfig;
use crate::jiffies::Jiffies;
use crate::version::placement::PlacementRules;
use memory::{Mm, Use};
use stats::{Faults, Group};

/// The number of a node.
pub(crate) type Node = usize;

/// The state of NUMA balancing.
#[derive(Clone, Debug)]
pub(crate) struct Numa {
    /// `sched_numa_balancing`: address spaces are scanned.
    pub(crate) active: bool,
    pub(crate) tuning: Tuning,
    pub(crate) rules: PlacementRules,
    pub(crate) nodes: usize,
    pub(crate) node_of: Vec<Node>,
    /// By number. A task without one has no stated memory.
    pub(crate) mms: BTreeMap<u64, Mm>,
    pub(crate) tasks: Vec<NumaTask>,
    pub(crate) groups: Vec<Group>,
    /// CPUs that a task is on its way to (`rq->numa_migrate_on`): its birth, and until when the CPU is kept for it.
    pub(crate) migrate_on: Vec<(u64, Nanos)>,
    pub(crate) tick_nsec: Nanos,
}

/// `sysctl_numa_balancing_*`: times in ms, the size in MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    pub(crate) scan_delay: u64,
    pub(crate) scan_period_min: u64,
    pub(crate) scan_period_max: u64,
    pub(crate) scan_size: u64,
}

/// The fields of `struct task_struct`.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumaTask {
    pub(crate) mm: Option<u64>,
    /// The memory that it uses.
    pub(crate) uses: Option<Use>,
    pub(crate) node_stamp: Nanos,
    pub(crate) scan_seq: u64,
    /// In ms.
    pub(crate) scan_period: u64,
    pub(crate) migrate_retry: Jiffies,
    /// `numa_work` is pending.
    pub(crate) work: bool,
    pub(crate) faults: Option<Faults>,
    pub(crate) group: Option<usize>,
    /// `last_task_numa_placement` and `last_sum_exec_runtime`.
    pub(crate) last_placement: Nanos,
    pub(crate) last_runtime: Nanos,
}

impl Numa {
    /// `None` on one node.
    pub fn new(config: &KernelConfig, topology: &Topology) -> Option<Box<Numa>> {
        let node_of: Vec<Node> = topology.cpus().map(|cpu| topology.place(cpu).node as Node).collect();
        let nodes = node_of.iter().max().map_or(0, |last| last + 1);
        let knobs = &config.knobs;
        if nodes < 2 {
            return None;
        }
        Some(Box::new(Numa {
            active: knobs.numa_balancing != 0,
            tuning: Tuning {
                scan_delay: knobs.numa_scan_delay,
                scan_period_min: knobs.numa_scan_period_min,
                scan_period_max: knobs.numa_scan_period_max,
                scan_size: knobs.numa_scan_size,
            },
            rules: config.placement,
            nodes,
            migrate_on: vec![(0, 0); node_of.len()],
            node_of,
            mms: BTreeMap::new(),
            tasks: Vec::new(),
            groups: Vec::new(),
            tick_nsec: config.tick_nsec(),
        }))
    }

    pub fn node(&self, cpu: CpuId) -> Node {
        self.node_of[cpu.index()]
    }

    pub(crate) fn task(&self, task: TaskId) -> Option<&NumaTask> {
        self.tasks.get(task.index())
    }

    pub(crate) fn task_mut(&mut self, task: TaskId) -> &mut NumaTask {
        if self.tasks.len() <= task.index() {
            self.tasks.resize_with(task.index() + 1, NumaTask::default);
        }
        &mut self.tasks[task.index()]
    }

    /// `msecs_to_jiffies`.
    pub(crate) fn msecs_to_jiffies(&self, ms: u64) -> Jiffies {
        (ms * 1_000_000).div_ceil(self.tick_nsec)
    }

    /// `init_numa_balancing` of a task that has this memory in the address space `mm`.
    pub fn init_numa_balancing(&mut self, task: TaskId, birth: u64, mm: u64, memory: &NumaMemory, jiffies: Jiffies) {
        self.task_numa_free(task);
        let first = jiffies + self.msecs_to_jiffies(self.tuning.scan_delay);
        let space = self.mms.entry(mm).or_insert_with(|| Mm::new(first));
        space.users += 1;
        let (users, scan_seq) = (space.users, space.scan_seq);
        let uses = space.map(memory, birth, self.nodes);
        let (delay, tick) = (self.tuning.scan_delay, self.tick_nsec);
        let scan_max = self.task_scan_max(Some(mm), None);
        // The kernel compares ms with ns, so that the threads of a process hardly begin at different times.
        let stagger = scan_max.min(delay * u64::from(users) * 1_000_000);
        *self.task_mut(task) = NumaTask {
            mm: Some(mm),
            uses: Some(uses),
            node_stamp: if users > 1 { stagger + 2 * tick } else { 0 },
            scan_seq,
            scan_period: delay,
            ..NumaTask::default()
        };
    }

    /// `task_numa_free`, and `exit_mm`: the task has no memory any more.
    pub fn task_numa_free(&mut self, task: TaskId) {
        let Some(state) = self.tasks.get_mut(task.index()).map(std::mem::take) else { return };
        if let (Some(group), Some(faults)) = (state.group, &state.faults) {
            self.groups[group].leave(faults);
        }
        let Some(mm) = state.mm else { return };
        let Some(space) = self.mms.get_mut(&mm) else { return };
        space.users -= 1;
        if space.users == 0 {
            self.mms.remove(&mm);
        } else if let Some(uses) = &state.uses {
            space.unmap(uses);
        }
    }

    /// How many pages of 4 KiB each node has of the task's address space.
    pub fn pages_by_node(&self, task: TaskId) -> Vec<u64> {
        let mm = self.task(task).and_then(|state| self.mms.get(&state.mm?));
        mm.map_or(vec![0; self.nodes], |mm| mm.pages_by_node(self.nodes))
    }

    /// `update_scan_period`: a task whose faults were counted moves to another node, away from its memory or early in
    /// its life.
    pub fn update_scan_period(&mut self, task: TaskId, preferred: Option<u32>, from: CpuId, to: CpuId) {
        let (src, dst) = (self.node(from), self.node(to));
        let Some(state) = self.task(task).filter(|state| src != dst && state.faults.is_some()) else { return };
        let preferred = preferred.map(|node| node as Node);
        if state.scan_seq > 0 && (preferred == Some(dst) || preferred.is_some_and(|node| node != src)) {
            return;
        }
        let period = self.task_scan_start(state.mm, state.group);
        self.task_mut(task).scan_period = period;
    }
}

impl Numa {
    /// `rq->numa_migrate_on`.
    pub fn is_claimed(&self, cpu: CpuId, now: Nanos) -> bool {
        now < self.migrate_on[cpu.index()].1
    }

    /// The task has arrived at the CPU, or at another.
    pub fn migrated(&mut self, birth: u64) {
        if let Some(claim) = self.migrate_on.iter_mut().find(|claim| claim.0 == birth) {
            *claim = (0, 0);
        }
    }
}
