//! The least loaded CPU for a new task or a new image (`sched_balance_find_dst_cpu`, `sched_balance_find_dst_group`,
//! `sched_balance_find_dst_group_cpu`, kernel/sched/fair.c 5.5 and later; `find_idlest_cpu` and so on up to 6.9).
//!
//! From the highest domain downwards: the idlest group other than the local one if it is idle enough to justify the
//! move, and in it the CPU that became idle last, or else the least loaded one. The search continues in that CPU's next
//! smaller domain. Up to 5.4 groups are compared by load ([`super::find_idlest_group_by_load`]). Not modelled: exit
//! latencies of idle states, which are not part of the policy, misfit tasks, core scheduling.

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::balance::sched_balance_find_src_group::adjust_numa_imbalance;
use crate::balance::sg_lb_stats::{GroupStats, GroupType};
use crate::candidate::{Candidate, Role};
use crate::core::types::{Tested, WakeKind};
use crate::fair::class::FairClass;
use crate::jiffies::Jiffies;
use crate::pelt::series::CAPACITY_SCALE;
use crate::version::placement::{GroupsBy, NumaSlack};

/// The number of groups that a record names besides the local and the chosen one.
const GROUPS_RECORDED: usize = 6;

impl FairClass<'_> {
    /// `sched_balance_find_dst_cpu`, from the highest domain of `cpu`, which has one.
    pub(super) fn sched_balance_find_dst_cpu(
        &mut self,
        task: TaskId,
        kind: WakeKind,
        mut cpu: CpuId,
        prev: CpuId,
        tested: &mut Tested,
    ) -> CpuId {
        let jiffies = self.core.jiffies_shown;
        let mut below = self.core.domains.depth(cpu);
        let allowed = self.core.tasks[task.index()].affinity.as_deref();
        if below == 0 || allowed.is_some_and(|mask| !mask.intersects(&self.core.domains.at(cpu, below - 1).span)) {
            return prev;
        }
        if kind == WakeKind::Exec {
            self.fair.sync_entity_load_avg(task);
        }
        while below > 0 {
            let level = below - 1;
            let found = match self.core.rules.groups_by {
                GroupsBy::Type => self.sched_balance_find_dst_group(task, cpu, level, tested, jiffies),
                GroupsBy::Load => self.find_idlest_group_by_load(task, kind, cpu, level, tested),
            };
            if tested.is_recording() {
                self.group_candidates(cpu, level, found)
                    .into_iter()
                    .for_each(|candidate| tested.consider(|| candidate));
            }
            let new = found.map(|group| self.sched_balance_find_dst_group_cpu(task, cpu, level, group, tested));
            match new {
                Some(new) if new != cpu => {
                    let weight = self.core.domains.at(cpu, level).weight;
                    cpu = new;
                    below = (0..self.core.domains.depth(cpu))
                        .filter(|l| self.core.domains.at(cpu, *l).weight < weight)
                        .count();
                }
                _ => below = level,
            }
        }
        cpu
    }

    /// The candidates of `sched_balance_find_dst_group`: the local group, some others, and the chosen one last.
    #[cold]
    fn group_candidates(&self, cpu: CpuId, level: usize, found: Option<usize>) -> Vec<Candidate> {
        let (domain, function) = (self.core.domains.at(cpu, level), self.fair.config.version.names.idlest_group);
        let (local, count) = (self.core.domains.local_group(cpu, level), domain.groups.len());
        let candidate = |group: usize, answer| {
            let role = if group == local { Role::LocalGroup } else { Role::OtherGroup };
            Candidate::of(function, cpu, role, answer).about(&domain.groups[group].cpus)
        };
        let chosen = found.unwrap_or(local);
        let others = (1..count).map(|offset| (local + offset) % count).filter(|group| *group != chosen);
        let own = found.map(|_| candidate(local, "another is less busy"));
        let last =
            candidate(chosen, if found.is_some() { "least busy: goes there" } else { "none is better: stays there" });
        own.into_iter()
            .chain(others.take(GROUPS_RECORDED).map(|group| candidate(group, "not chosen")))
            .chain([last])
            .collect()
    }

    /// `sched_balance_find_dst_group`: a group other than the CPU's own, or `None` to stay.
    fn sched_balance_find_dst_group(
        &mut self,
        task: TaskId,
        cpu: CpuId,
        level: usize,
        tested: &mut Tested,
        jiffies: Option<Jiffies>,
    ) -> Option<usize> {
        // The CPU that the task is on is in one of the groups, which are compared without its load.
        let own = if self.fair.entity(task).on_rq { self.fair.task_h_load(task, jiffies) } else { 0 };
        let domain = self.core.domains.at(cpu, level);
        let local_group = self.core.domains.local_group(cpu, level);
        let affinity = self.core.tasks[task.index()].affinity.as_deref();
        let (mut local, mut idlest) = (None::<GroupStats>, None::<(usize, GroupStats)>);
        for step in 0..domain.groups.len() {
            let index = (local_group + step) % domain.groups.len();
            let group = &domain.groups[index];
            if affinity.is_some_and(|mask| !mask.intersects(&group.mask)) {
                continue;
            }
            group.cpus.iter().for_each(|cpu| tested.add_load(&self.core.topology, *cpu));
            let stats = self.update_sg_wakeup_stats(group, domain.imbalance_pct, domain.asym, task, own);
            let by_util = self.core.rules.idlest_by_util;
            let better = |(chosen, best): (usize, GroupStats)| match (stats.kind, best.kind) {
                (GroupType::MisfitTask, GroupType::MisfitTask) => {
                    self.capacity_range(&group.cpus).1 > self.capacity_range(&domain.groups[chosen].cpus).1
                }
                _ => update_pick_idlest(&best, &stats, by_util),
            };
            if index == local_group {
                local = Some(stats);
            } else if idlest.is_none_or(better) {
                idlest = Some((index, stats));
            }
        }
        let (index, idlest) = idlest?;
        let Some(local) = local else { return Some(index) };
        let go = match local.kind.cmp(&idlest.kind) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal if local.kind == GroupType::MisfitTask => {
                let groups = &domain.groups;
                self.capacity_range(&groups[index].cpus).1 > self.capacity_range(&groups[local_group].cpus).1
            }
            std::cmp::Ordering::Equal => self.is_worth_it(task, cpu, level, &local, index, &idlest),
        };
        go.then_some(index)
    }

    /// For groups of the same type: whether the other one is sufficiently better.
    fn is_worth_it(
        &self,
        task: TaskId,
        cpu: CpuId,
        level: usize,
        local: &GroupStats,
        other: usize,
        idlest: &GroupStats,
    ) -> bool {
        let domain = self.core.domains.at(cpu, level);
        let pct = u64::from(domain.imbalance_pct);
        match local.kind {
            GroupType::Overloaded | GroupType::FullyBusy => {
                let imbalance = CAPACITY_SCALE * (pct - 100) / 100;
                let stay_on_node = domain.is_numa() && idlest.avg_load + imbalance >= local.avg_load;
                !(stay_on_node
                    || idlest.avg_load >= local.avg_load + imbalance
                    || 100 * local.avg_load <= pct * idlest.avg_load)
            }
            GroupType::LlcBalance | GroupType::Imbalanced | GroupType::SmtBalance | GroupType::MisfitTask => false,
            GroupType::HasSpare => {
                let preferred = domain.is_numa().then(|| self.is_preferred(task, cpu, level, other)).flatten();
                let stays = domain.is_numa() && self.stays_on_node(task, cpu, level, local, idlest);
                preferred.unwrap_or(!stays && local.idle_cpus < idlest.idle_cpus)
            }
        }
    }

    /// Whether the other group's node is the one that the task prefers; `None`: neither that nor its own is.
    fn is_preferred(&self, task: TaskId, cpu: CpuId, level: usize, other: usize) -> Option<bool> {
        let preferred = self.core.tasks[task.index()].preferred_node?;
        let is_on = |cpu: CpuId| self.core.topology.place(cpu).node == preferred;
        let first = self.core.domains.at(cpu, level).groups[other].cpus.first()?;
        if is_on(cpu) {
            return Some(false);
        }
        is_on(*first).then_some(true)
    }

    /// Whether the imbalance that is tolerated between NUMA nodes keeps the task on its node.
    fn stays_on_node(&self, task: TaskId, cpu: CpuId, level: usize, local: &GroupStats, idlest: &GroupStats) -> bool {
        let domain = self.core.domains.at(cpu, level);
        match self.core.rules.numa_slack {
            NumaSlack::None => false,
            NumaSlack::Pair => local.idle_cpus > 0,
            NumaSlack::Quarter => local.nr_running < domain.weight / 4,
            NumaSlack::PerNode => {
                let group = &domain.groups[self.core.domains.local_group(cpu, level)];
                let usable = self.core.tasks[task.index()].affinity.as_ref().map(|mask| mask.and(&group.mask).count());
                let allowed = usable.map_or(domain.imb_numa_nr, |n| domain.imb_numa_nr.min(n as u32));
                let difference = u64::from(local.idle_cpus.abs_diff(idlest.idle_cpus));
                adjust_numa_imbalance(difference, local.nr_running + 1, allowed) == 0
            }
        }
    }

    /// `sched_balance_find_dst_group_cpu`.
    fn sched_balance_find_dst_group_cpu(
        &self,
        task: TaskId,
        this: CpuId,
        level: usize,
        group: usize,
        tested: &mut Tested,
    ) -> CpuId {
        let cpus = &self.core.domains.at(this, level).groups[group].cpus;
        if cpus.len() == 1 {
            return cpus[0];
        }
        let (mut latest_idle, mut least_loaded) = (None::<(Nanos, CpuId)>, None::<(u64, CpuId)>);
        for &cpu in cpus.iter().filter(|cpu| self.core.tasks[task.index()].allows(**cpu)) {
            tested.add(&self.core.topology, cpu);
            let idle = self.core.idle.is_idle(cpu);
            if !idle && self.choose_idle_cpu(task, cpu) {
                let function = self.fair.config.version.names.idlest_group_cpu;
                tested.consider(|| Candidate::of(function, cpu, Role::OfGroup, "nothing but SCHED_IDLE there: chosen"));
                return cpu;
            }
            if idle {
                let stamp = self.core.rqs[cpu.index()].idle_stamp;
                if latest_idle.is_none_or(|(latest, _)| stamp > latest) {
                    latest_idle = Some((stamp, cpu));
                }
            } else if latest_idle.is_none() {
                let load = self.fair.cpu_load(cpu);
                if least_loaded.is_none_or(|(least, _)| load < least) {
                    least_loaded = Some((load, cpu));
                }
            }
        }
        let function = self.fair.config.version.names.idlest_group_cpu;
        let answer = if latest_idle.is_some() { "most recently idle: chosen" } else { "least load: chosen" };
        let chosen = latest_idle.or(least_loaded).map_or(this, |(_, cpu)| cpu);
        tested.consider(|| Candidate::of(function, chosen, Role::OfGroup, answer));
        chosen
    }
}

/// `update_pick_idlest`: whether `group` is a better choice than `best`.
fn update_pick_idlest(best: &GroupStats, group: &GroupStats, by_util: bool) -> bool {
    if group.kind != best.kind {
        return group.kind < best.kind;
    }
    match group.kind {
        GroupType::Overloaded | GroupType::FullyBusy => group.avg_load < best.avg_load,
        GroupType::LlcBalance | GroupType::Imbalanced | GroupType::SmtBalance | GroupType::MisfitTask => false,
        GroupType::HasSpare => {
            let used_less = by_util && group.idle_cpus == best.idle_cpus && group.util < best.util;
            group.idle_cpus > best.idle_cpus || used_less
        }
    }
}
