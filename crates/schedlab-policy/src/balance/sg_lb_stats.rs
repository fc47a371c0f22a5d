//! The statistics of a group of CPUs that balancing and forks compare (`update_sg_lb_stats`, `update_sg_wakeup_stats`,
//! `group_classify`, kernel/sched/fair.c 5.5 and later).
//!
//! overloaded: nr > weight and (cap*100 < util*pct or cap*pct < runnable*100); imbalanced: affinity blocked a lower
//! level; smt_balance (6.6+): an idle puller and an SMT core with several tasks; misfit_task (6.0+): an idle puller
//! and a CPU with one task whose capacity others use; has_spare: nr < weight, or cap*pct >=
//! runnable*100 and cap*100 > util*pct; else fully_busy. Capacities: [`super::capacity`].

use schedlab_model::{CpuId, TaskId};

use crate::core::domains::Group;
use crate::fair::class::FairClass;
use crate::pelt::series::CAPACITY_SCALE;

/// How urgently tasks should be pulled from a group, least urgent first (`enum group_type`; misfit tasks on CPUs with
/// reduced capacity: 6.0 and later; tasks that prefer the
/// cache of the pulling CPU, [`crate::sched_cache`]: 7.2 and later).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum GroupType {
    HasSpare,
    FullyBusy,
    MisfitTask,
    SmtBalance,
    Imbalanced,
    LlcBalance,
    Overloaded,
}

/// `struct sg_lb_stats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupStats {
    pub kind: GroupType,
    pub load: u64,
    pub util: u64,
    pub runnable: u64,
    pub nr_running: u32,
    /// Tasks of the fair class.
    pub h_nr_running: u32,
    pub idle_cpus: u32,
    pub weight: u32,
    /// The capacity of its CPUs for the fair class.
    pub capacity: u64,
    /// The largest load of a single task on a CPU with reduced capacity (`group_misfit_task_load`).
    pub misfit_load: u64,
    /// Tasks that prefer the cache of the pulling CPU.
    pub nr_pref_dst_llc: u32,
    /// Load per capacity; 0 where the kernel does not compute it.
    pub avg_load: u64,
    /// One of its CPUs is used more than four fifths (`group_overutilized`); only where capacities differ.
    pub overutilized: bool,
}

impl GroupStats {
    /// Load per capacity.
    pub fn relative_load(&self) -> u64 {
        self.load * CAPACITY_SCALE / self.capacity
    }

    /// `group_classify`.
    fn group_classify(&mut self, pct: u32, imbalance: bool, smt_balance: bool, may_overload: bool) {
        let (capacity, pct) = (self.capacity, u64::from(pct));
        let waiting = capacity * pct < self.runnable * 100;
        let used = self.util * pct;
        self.kind = if may_overload && self.nr_running > self.weight && (capacity * 100 < used || waiting) {
            GroupType::Overloaded
        } else if imbalance {
            GroupType::Imbalanced
        } else if smt_balance {
            GroupType::SmtBalance
        } else if self.misfit_load > 0 {
            GroupType::MisfitTask
        } else if self.nr_running >= self.weight && (waiting || capacity * 100 <= used) {
            GroupType::FullyBusy
        } else {
            GroupType::HasSpare
        };
    }
}

/// What `update_sg_lb_stats` looks for in a group other than that of the balancing CPU.
#[derive(Clone, Copy, Default)]
pub(crate) struct Watched {
    /// Two tasks on the threads of one core (`smt_balance`).
    pub smt_balance: bool,
    /// Tasks on a CPU whose capacity other classes and interrupts reduce.
    pub pressed: bool,
    /// Tasks that do not fit their CPU, where CPUs differ in capacity.
    pub misfits: bool,
}

impl FairClass<'_> {
    /// `update_sg_lb_stats`. `considers` excludes CPUs whose tasks were all found to be pinned.
    #[inline(always)]
    pub(crate) fn update_sg_lb_stats(
        &self,
        group: &Group,
        pct: u32,
        watched: Watched,
        considers: impl Fn(CpuId) -> bool,
    ) -> GroupStats {
        let mut stats = self.sum_group(group, &considers);
        if watched.misfits {
            stats.misfit_load = self.max_misfit_load(group, considers);
        } else if watched.pressed {
            stats.misfit_load = self.max_load_of_reduced_capacity(group, pct, considers);
        }
        let smt_balance = watched.smt_balance && group.smt && stats.h_nr_running > 1;
        stats.overutilized = self.core.asym.is_some() && group.cpus.iter().any(|cpu| self.cpu_overutilized(*cpu));
        let may_overload = !self.core.overload_needs_energy() || stats.overutilized;
        stats.group_classify(pct, group.imbalance, smt_balance, may_overload);
        if stats.kind == GroupType::Overloaded {
            stats.avg_load = stats.relative_load();
        }
        stats
    }

    /// The largest load of a task that is too big for its CPU (`rq->misfit_task_load`).
    fn max_misfit_load(&self, group: &Group, considers: impl Fn(CpuId) -> bool) -> u64 {
        let Some(asym) = &self.core.asym else { return 0 };
        let busy = |cpu: &CpuId| considers(*cpu) && self.core.rqs[cpu.index()].nr_running > 0;
        group.cpus.iter().copied().filter(busy).map(|cpu| asym.misfit_load(cpu)).max().unwrap_or(0)
    }

    /// Tasks of the fair class on the CPU (`cfs.h_nr_running`), from 6.14 on without delayed ones
    /// (`cfs.h_nr_runnable`).
    #[inline(always)]
    pub(crate) fn h_nr_runnable(&self, cpu: CpuId) -> u32 {
        let rq = self.fair.rq(cpu);
        match self.core.rules.delayed_do_not_count {
            true => rq.h_nr_running.saturating_sub(rq.h_nr_delayed),
            false => rq.h_nr_running,
        }
    }

    #[inline(always)]
    fn sum_group(&self, group: &Group, considers: impl Fn(CpuId) -> bool) -> GroupStats {
        let mut stats = GroupStats { capacity: group.capacity, ..GroupStats::of(group.cpus.len() as u32) };
        for &cpu in group.cpus.iter().filter(|cpu| considers(**cpu)) {
            let nr_running = self.core.rqs[cpu.index()].nr_running;
            stats.idle_cpus += u32::from(nr_running == 0 && self.core.is_idle(cpu));
            stats.nr_running += nr_running;
            stats.h_nr_running += self.h_nr_runnable(cpu);
            stats.load += self.fair.cpu_load(cpu);
            stats.util += self.fair.cpu_util_cfs(cpu);
            stats.runnable += self.fair.cpu_runnable(cpu);
        }
        stats
    }

    /// `update_sg_wakeup_stats`: the group without `task` and its load (`own`), which matters only at exec, since a new
    /// task is not queued yet.
    pub(crate) fn update_sg_wakeup_stats(
        &self,
        group: &Group,
        pct: u32,
        asym: bool,
        task: TaskId,
        own: u64,
    ) -> GroupStats {
        let minds_affinity = self.core.rules.wakeup_stats_mind_affinity;
        let considers = |cpu: CpuId| !minds_affinity || self.core.allows(task, cpu);
        let mut stats = self.sum_group(group, considers);
        if asym {
            let fits = |cpu: &CpuId| considers(*cpu) && self.task_fits_cpu(task, *cpu);
            stats.misfit_load = u64::from(!group.cpus.iter().any(fits));
        }
        let (home, entity) = (self.core.tasks[task.index()].cpu, self.fair.entity(task));
        if entity.on_rq && group.mask.has(home) && considers(home) {
            // A damaged trace may have the task on a queue that is empty.
            stats.nr_running = stats.nr_running.saturating_sub(1);
            stats.h_nr_running = stats.h_nr_running.saturating_sub(1);
            stats.load = stats.load.saturating_sub(own);
            stats.util = stats.util.saturating_sub(u64::from(entity.avg.util_avg));
            stats.runnable = stats.runnable.saturating_sub(entity.avg.runnable_avg);
            stats.idle_cpus += u32::from(self.core.rqs[home.index()].nr_running == 1);
        }
        stats.group_classify(pct, group.imbalance, false, !self.core.overload_needs_energy());
        if matches!(stats.kind, GroupType::FullyBusy | GroupType::Overloaded) {
            stats.avg_load = stats.relative_load();
        }
        stats
    }
}

impl GroupStats {
    /// The empty statistics of that many CPUs.
    pub fn of(weight: u32) -> GroupStats {
        let kind = GroupType::HasSpare;
        let capacity = u64::from(weight) * CAPACITY_SCALE;
        GroupStats {
            kind,
            load: 0,
            util: 0,
            runnable: 0,
            nr_running: 0,
            h_nr_running: 0,
            idle_cpus: 0,
            weight,
            capacity,
            misfit_load: 0,
            nr_pref_dst_llc: 0,
            avg_load: 0,
            overutilized: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schedlab_model::{Topology, MSEC};

    use super::*;
    use crate::rt::RtPolicy;
    use crate::{KernelConfig, Sched, TaskAttr, Version, WakeKind};

    /// `smt_balance` counts tasks of the fair class.
    #[test]
    fn a_real_time_task_is_no_reason_to_relieve_a_core() {
        for (rt, expected) in [(true, GroupType::HasSpare), (false, GroupType::SmtBalance)] {
            let config = KernelConfig::new(Version::find("6.12.107").unwrap(), 4, 250);
            let mut sched = Sched::new(config, Arc::new(Topology::regular(1, 1, 2, 2, true).unwrap()));
            for cpu in [CpuId(0), CpuId(1)] {
                let policy = (rt && cpu.0 == 0).then_some(RtPolicy { priority: 10, round_robin: false });
                let task = sched.add_task(&TaskAttr { cpu, rt: policy, ..TaskAttr::default() });
                sched.activate(task, cpu, WakeKind::Fork, MSEC);
                sched.pick_next_task(cpu, MSEC);
            }
            let (core, fair) = (&mut sched.core, &mut sched.classes.fair);
            let level = core.domains.depth(CpuId(2)) - 1;
            let group = core.domains.at(CpuId(2), level).groups.iter().find(|group| group.mask.has(CpuId(0)));
            let group = group.unwrap().clone();
            let watched = Watched { smt_balance: true, ..Watched::default() };
            let stats = fair.with(core).update_sg_lb_stats(&group, 117, watched, |_| true);
            assert_eq!((stats.kind, stats.nr_running), (expected, 2), "{rt}");
        }
    }

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
            let runnable = u64::from(nr_running) * CAPACITY_SCALE;
            let mut stats = GroupStats { nr_running, util, runnable, ..GroupStats::of(weight) };
            stats.group_classify(117, imbalance, smt, true);
            assert_eq!(stats.kind, expected, "{nr_running} tasks on {weight} CPUs at {util}");
        }
    }
}
