//! What load balancing does with preferred nodes (`migrate_degrades_locality`, `fbq_classify_group`,
//! `fbq_classify_rq`).
//!
//! A task is not moved away from its preferred node as long as its queue has others that are not at theirs, and is
//! moved to it even if it is cache hot. Between nodes tasks are taken from CPUs with tasks that prefer no node, else
//! from CPUs with tasks that prefer another one.

use schedlab_model::{CpuId, TaskId};

use crate::balance::CpuIdle;
use crate::fair::class::FairClass;
use crate::numa::Fbq;
use crate::numa::Node;

impl FairClass<'_> {
    /// `migrate_degrades_locality` of a move in a domain of nodes. `Some(true)`: locality would be worse;
    /// `Some(false)`: the task comes to its preferred node.
    pub(crate) fn migrate_degrades_locality(
        &self,
        task: TaskId,
        src: CpuId,
        dst: CpuId,
        idle: CpuIdle,
    ) -> Option<bool> {
        let numa = self.core.numa.as_ref()?;
        numa.task(task)?.faults.as_ref()?;
        let (src_nid, dst_nid) = (numa.node(src), numa.node(dst));
        let preferred = self.core.tasks[task.index()].preferred_node.map(|node| node as Node);
        if src_nid == dst_nid {
            return None;
        }
        if preferred == Some(src_nid) {
            let (_, at_home) = self.numa_counts(src);
            return (self.core.nr_running(src) > at_home).then_some(true);
        }
        if preferred == Some(dst_nid) {
            return Some(false);
        }
        if idle == CpuIdle::Idle {
            return None;
        }
        let weight = |node| match numa.group(task) {
            Some(_) => numa.group_weight(task, node),
            None => numa.task_weight(task, node),
        };
        let (src_weight, dst_weight) = (weight(src_nid), weight(dst_nid));
        if self.core.rules.numa_equal_is_neutral && src_weight == dst_weight {
            return None;
        }
        Some(dst_weight < src_weight)
    }

    /// `rq->nr_numa_running` and `rq->nr_preferred_running`: tasks that prefer a node, and those of them that are
    /// there.
    fn numa_counts(&self, cpu: CpuId) -> (u32, u32) {
        let Some(numa) = &self.core.numa else { return (0, 0) };
        let here = numa.node(cpu) as u32;
        let preferred = self.fair.cfs_tasks(cpu).filter_map(|task| self.core.tasks[task.index()].preferred_node);
        preferred.fold((0, 0), |(all, home), node| (all + 1, home + u32::from(node == here)))
    }

    /// `fbq_classify_group` of the busiest group in a domain of nodes.
    pub(crate) fn fbq_classify_group(&self, cpus: &[CpuId], h_nr_running: u32) -> Fbq {
        let counts = cpus.iter().map(|cpu| self.numa_counts(*cpu));
        let (numa, preferred) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        classify(h_nr_running, numa, preferred)
    }

    /// `fbq_classify_rq`.
    pub(crate) fn fbq_classify_rq(&self, cpu: CpuId) -> Fbq {
        let (numa, preferred) = self.numa_counts(cpu);
        classify(self.core.nr_running(cpu), numa, preferred)
    }
}

fn classify(running: u32, numa: u32, preferred: u32) -> Fbq {
    if running > numa {
        Fbq::Regular
    } else if running > preferred {
        Fbq::Remote
    } else {
        Fbq::All
    }
}
