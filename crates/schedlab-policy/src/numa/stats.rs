//! Hinting faults by node: of tasks, and of the groups of tasks that use the same pages (`numa_faults`, `struct
//! numa_group`).
//!
//! Each time an address space has been scanned once, the averages become half of what they were plus the faults since
//! then.

use schedlab_model::TaskId;

use super::{Node, Numa};

/// Which statistic (`enum numa_faults_stats`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stat {
    /// By the node of the page.
    Mem,
    /// By the node of the CPU, weighted by the use of it.
    Cpu,
    /// The faults since the last pass, by the node of the page.
    MemBuf,
    /// The same by the node of the CPU.
    CpuBuf,
}

/// `ACTIVE_NODE_FRACTION`.
pub(crate) const ACTIVE_NODE_FRACTION: i64 = 3;

/// `p->numa_faults` and its sums.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    counts: Vec<i64>,
    nodes: usize,
    /// `total_numa_faults`.
    pub total: i64,
    /// `numa_faults_locality`: remote, local.
    pub locality: [i64; 2],
}

/// `struct numa_group`: tasks that use the same pages.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    counts: Vec<i64>,
    nodes: usize,
    pub nr_tasks: u64,
    pub total: i64,
    pub active_nodes: u32,
    max_faults_cpu: i64,
}

/// `task_faults_idx`; shared faults come first.
fn task_faults_idx(nodes: usize, stat: Stat, node: Node, private: bool) -> usize {
    2 * (stat as usize * nodes + node) + usize::from(private)
}

impl Faults {
    pub fn new(nodes: usize) -> Faults {
        Faults { counts: vec![0; 8 * nodes], nodes, total: 0, locality: [0; 2] }
    }

    pub fn get(&self, stat: Stat, node: Node, private: bool) -> i64 {
        self.counts[task_faults_idx(self.nodes, stat, node, private)]
    }

    pub fn at(&mut self, stat: Stat, node: Node, private: bool) -> &mut i64 {
        &mut self.counts[task_faults_idx(self.nodes, stat, node, private)]
    }

    /// `task_faults`.
    pub fn task_faults(&self, node: Node) -> i64 {
        self.get(Stat::Mem, node, false) + self.get(Stat::Mem, node, true)
    }
}

impl Group {
    /// A group with one task.
    pub fn of(faults: &Faults) -> Group {
        Group {
            counts: faults.counts[..4 * faults.nodes].to_vec(),
            nodes: faults.nodes,
            nr_tasks: 1,
            total: faults.total,
            active_nodes: 1,
            max_faults_cpu: 0,
        }
    }

    pub fn at(&mut self, stat: Stat, node: Node, private: bool) -> &mut i64 {
        &mut self.counts[task_faults_idx(self.nodes, stat, node, private)]
    }

    fn sum(&self, stat: Stat, node: Node) -> i64 {
        [false, true].map(|private| self.counts[task_faults_idx(self.nodes, stat, node, private)]).iter().sum()
    }

    /// `group_faults`.
    pub fn group_faults(&self, node: Node) -> i64 {
        self.sum(Stat::Mem, node)
    }

    /// `group_faults_cpu`.
    pub fn group_faults_cpu(&self, node: Node) -> i64 {
        self.sum(Stat::Cpu, node)
    }

    /// `group_faults_shared` and `group_faults_priv`.
    pub fn by_kind(&self, private: bool) -> i64 {
        (0..self.nodes).map(|node| self.counts[task_faults_idx(self.nodes, Stat::Mem, node, private)]).sum()
    }

    pub fn join(&mut self, faults: &Faults) {
        self.counts.iter_mut().zip(&faults.counts).for_each(|(sum, own)| *sum += own);
        self.total += faults.total;
        self.nr_tasks += 1;
    }

    pub fn leave(&mut self, faults: &Faults) {
        self.counts.iter_mut().zip(&faults.counts).for_each(|(sum, own)| *sum -= own);
        self.total -= faults.total;
        self.nr_tasks -= 1;
    }

    /// `numa_group_count_active_nodes`.
    pub fn numa_group_count_active_nodes(&mut self) {
        let max = (0..self.nodes).map(|node| self.group_faults_cpu(node)).max().unwrap_or(0).max(0);
        let active = |node: &Node| self.group_faults_cpu(*node) * ACTIVE_NODE_FRACTION > max;
        self.active_nodes = (0..self.nodes).filter(active).count() as u32;
        self.max_faults_cpu = max;
    }

    /// `numa_is_active_node`.
    pub fn numa_is_active_node(&self, node: Node) -> bool {
        self.group_faults_cpu(node) * ACTIVE_NODE_FRACTION > self.max_faults_cpu
    }
}

impl Numa {
    /// `task_weight`: the share of the task's faults that is on the node, in thousandths.
    pub(crate) fn task_weight(&self, task: TaskId, node: Node) -> i64 {
        let faults = self.task(task).and_then(|state| state.faults.as_ref()).filter(|faults| faults.total > 0);
        faults.map_or(0, |faults| 1000 * faults.task_faults(node) / faults.total)
    }

    /// `group_weight`: the same of its group.
    pub(crate) fn group_weight(&self, task: TaskId, node: Node) -> i64 {
        let group = self.group(task).filter(|group| group.total > 0);
        group.map_or(0, |group| 1000 * group.group_faults(node) / group.total)
    }

    /// `p->numa_group`.
    pub(crate) fn group(&self, task: TaskId) -> Option<&Group> {
        self.groups.get(self.task(task)?.group?)
    }
}
