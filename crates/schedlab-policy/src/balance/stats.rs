//! What a balancing pass or a fork sees of a group of CPUs (`update_sg_lb_stats`, `update_sg_wakeup_stats`,
//! `group_classify`, kernel/sched/fair.c 5.5 and later).
//!
//! overloaded: nr > weight and (cap*100 < util*pct or cap*pct < runnable*100); imbalanced: affinity blocked a lower
//! level; smt_balance (6.6+): an idle puller and an SMT core with several tasks; has_spare: nr < weight, or cap*pct >=
//! runnable*100 and cap*100 > util*pct; else fully_busy. Every CPU has the full capacity 1024. The utilisation is read
//! only where it matters.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::domains::Group;
use crate::placement::load::{cpu_load, runnable, task_load, CAPACITY_SCALE};
use crate::Sched;

/// How much a group needs somebody to pull from it, least first (`enum group_type`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum GroupType {
    HasSpare,
    FullyBusy,
    SmtBalance,
    Imbalanced,
    Overloaded,
}

/// `struct sg_lb_stats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupStats {
    pub kind: GroupType,
    pub load: u64,
    /// `None` = not read.
    pub util: Option<u64>,
    pub nr_running: u32,
    pub idle_cpus: u32,
    pub weight: u32,
    /// Load per capacity, where the kernel computes it, else 0.
    pub avg_load: u64,
}

impl GroupStats {
    pub fn capacity(&self) -> u64 {
        u64::from(self.weight) * CAPACITY_SCALE
    }

    /// Load per capacity.
    pub fn relative_load(&self) -> u64 {
        self.load * CAPACITY_SCALE / self.capacity()
    }

    /// `group_classify`. `util` is called only if the answer depends on it.
    fn classify(&mut self, pct: u32, imbalance: bool, smt_balance: bool, util: impl FnOnce() -> u64) {
        let (capacity, pct) = (self.capacity(), u64::from(pct));
        let waiting = runnable(self.nr_running) * 100 > capacity * pct;
        if self.nr_running >= self.weight && self.util.is_none() {
            self.util = Some(util());
        }
        let used = self.util.unwrap_or(0) * pct;
        let full = self.nr_running >= self.weight;
        self.kind = if self.nr_running > self.weight && (capacity * 100 < used || waiting) {
            GroupType::Overloaded
        } else if imbalance {
            GroupType::Imbalanced
        } else if smt_balance {
            GroupType::SmtBalance
        } else if full && (waiting || capacity * 100 <= used) {
            GroupType::FullyBusy
        } else {
            GroupType::HasSpare
        };
    }
}

impl Sched {
    /// Utilisation of a group.
    pub(crate) fn group_util(&self, group: &Group, now: Nanos) -> u64 {
        group.cpus.iter().map(|cpu| self.util.of(*cpu, now)).sum()
    }

    /// `update_sg_lb_stats`. `considers` leaves out CPUs already found to be pinned.
    pub(crate) fn group_stats(
        &self,
        group: &Group,
        pct: u32,
        smt_balance: bool,
        considers: impl Fn(CpuId) -> bool,
        now: Nanos,
    ) -> GroupStats {
        let mut stats = self.sum_group(group, considers);
        let smt_balance = smt_balance && group.smt && stats.nr_running > 1;
        stats.classify(pct, group.imbalance, smt_balance, || self.group_util(group, now));
        if stats.kind == GroupType::Overloaded {
            stats.avg_load = stats.relative_load();
        }
        stats
    }

    fn sum_group(&self, group: &Group, considers: impl Fn(CpuId) -> bool) -> GroupStats {
        let weight = group.cpus.len() as u32;
        let kind = GroupType::HasSpare;
        let mut stats = GroupStats { kind, load: 0, util: None, nr_running: 0, idle_cpus: 0, weight, avg_load: 0 };
        for &cpu in group.cpus.iter().filter(|cpu| considers(**cpu)) {
            let nr_running = self.rqs[cpu.index()].nr_running;
            if nr_running == 0 {
                stats.idle_cpus += u32::from(self.idle.is_idle(cpu));
            } else {
                stats.nr_running += nr_running;
                stats.load += cpu_load(&self.fair, cpu);
            }
        }
        stats
    }

    /// `update_sg_wakeup_stats`: the group without `task`, which is queued on its CPU only at exec.
    pub(crate) fn group_stats_without(&self, group: &Group, pct: u32, task: TaskId, now: Nanos) -> GroupStats {
        let mut stats = self.sum_group(group, |_| true);
        let home = self.tasks[task.index()].cpu;
        if self.fair.entity(task).on_rq && group.mask.has(home) {
            stats.nr_running -= 1;
            stats.load = stats.load.saturating_sub(task_load(&self.fair, task));
            stats.idle_cpus += u32::from(self.rqs[home.index()].nr_running == 1);
        }
        stats.util = Some(self.group_util(group, now));
        stats.classify(pct, group.imbalance, false, || 0);
        if matches!(stats.kind, GroupType::FullyBusy | GroupType::Overloaded) {
            stats.avg_load = stats.relative_load();
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_classified_by_tasks_then_use() {
        use GroupType::*;
        // weight, tasks, utilisation, imbalance mark, smt balance
        for (weight, nr_running, util, imbalance, smt, expected) in [
            (4, 3, 4096, false, false, HasSpare),
            (4, 4, 1000, false, false, HasSpare),
            (4, 4, 3600, false, false, FullyBusy),
            (4, 5, 1000, false, false, Overloaded),
            (8, 9, 9000, false, false, Overloaded),
            (8, 9, 7000, false, false, HasSpare),
            (4, 5, 3600, false, false, Overloaded),
            (1, 2, 100, false, false, Overloaded),
            (4, 3, 100, true, false, Imbalanced),
            (2, 2, 100, false, true, SmtBalance),
            (2, 3, 2048, true, true, Overloaded),
        ] {
            let kind = HasSpare;
            let mut stats = GroupStats { kind, load: 0, util: None, nr_running, idle_cpus: 0, weight, avg_load: 0 };
            stats.classify(117, imbalance, smt, || util);
            assert_eq!(stats.kind, expected, "{nr_running} tasks on {weight} CPUs at {util}");
        }
    }
}
