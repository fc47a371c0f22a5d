//! The group and the CPU to pull from, and how much (`sched_balance_find_src_group`, `calculate_imbalance`,
//! `sched_balance_find_src_rq`, kernel/sched/fair.c; `find_busiest_group` and `find_busiest_queue` up to 6.9).
//!
//! Read in 5.7 to 7.2; the differences are [`crate::PlacementRules`], and up to 5.4 groups are compared by load
//! ([`super::find_busiest_group_by_load`]). Where CPUs differ in capacity, tasks that are too big for their CPU come
//! first, small CPUs do not pull from big ones that have no more than a task each, and with an energy model only an
//! overutilized machine is balanced otherwise. Left out: asymmetric packing.

use schedlab_model::CpuId;

use super::sg_lb_stats::{GroupStats, GroupType, Watched};
use super::{CpuIdle, Env, Migrate};
use crate::core::fits_capacity::capacity_greater;
use crate::core::types::Moves;
use crate::fair::class::FairClass;
use crate::features::Feature;
use crate::numa::Fbq;
use crate::pelt::series::CAPACITY_SCALE;
use crate::version::placement::{GroupsBy, NumaSlack};

/// `NUMA_IMBALANCE_MIN`.
const NUMA_IMBALANCE_MIN: u64 = 2;

/// The statistics of a domain (`struct sd_lb_stats`).
struct DomainStats {
    local: GroupStats,
    local_group: usize,
    busiest: Option<(usize, GroupStats)>,
    total_load: u64,
    total_capacity: u64,
}

impl DomainStats {
    /// Before any group was examined.
    fn of(local_group: usize) -> Self {
        DomainStats { local: GroupStats::of(0), local_group, busiest: None, total_load: 0, total_capacity: 0 }
    }

    fn avg_load(&self) -> u64 {
        self.total_load * CAPACITY_SCALE / self.total_capacity.max(1)
    }
}

impl FairClass<'_> {
    /// `sched_balance_find_src_group`: the index of the group to pull from; the imbalance is stored in `env`.
    pub(super) fn sched_balance_find_src_group(&mut self, env: &mut Env, moves: &mut Moves) -> Option<usize> {
        if self.core.rules.groups_by == GroupsBy::Load {
            return self.find_busiest_group_by_load(env, moves);
        }
        let stats = self.update_sd_lb_stats(env, moves);
        let (group, busiest) = stats.busiest?;
        env.imbalance = 0;
        if self.core.numa.is_some() && self.core.domains.at(env.this, env.level).is_numa() {
            let cpus = &self.core.domains.at(env.this, env.level).groups[group].cpus;
            env.fbq = self.fbq_classify_group(cpus, busiest.h_nr_running);
        }
        if self.core.asym.is_some() && self.saves_energy(&busiest) {
            return None;
        }
        if self.is_imbalanced(env, &stats, group, &busiest) {
            self.calculate_imbalance(env, &stats, group, &busiest);
        }
        (env.imbalance > 0).then_some(group)
    }

    /// Placement goes by energy, so that nothing is balanced but tasks that are too big.
    fn saves_energy(&self, busiest: &GroupStats) -> bool {
        let overutilized = self.core.asym.as_ref().is_none_or(|asym| asym.is_rd_overutilized());
        busiest.kind != GroupType::MisfitTask && !overutilized
    }

    /// `update_sd_lb_stats`, with its side effects: the overload flag at the highest level, the scan budget at that of
    /// the cache.
    fn update_sd_lb_stats(&mut self, env: &Env, moves: &mut Moves) -> DomainStats {
        self.update_group_capacity(env);
        let domain = self.core.domains.at(env.this, env.level);
        let (count, pct) = (domain.groups.len(), domain.imbalance_pct);
        let local_group = self.core.domains.local_group(env.this, env.level);
        let smt_balance = self.core.rules.smt_balance && env.idle != CpuIdle::Not;
        let pressed = self.core.has_pressed_cpus() && self.core.rules.reduced_capacity && env.idle != CpuIdle::Not;
        moves.looked_at += domain.weight;
        let considers = |cpu: CpuId| env.considers(cpu);
        let (asym, mut overutilized, mut misfits) = (domain.asym, false, false);
        let mut stats = DomainStats::of(local_group);
        let mut index = local_group;
        for nth in 0..count {
            let is_local = nth == 0;
            let watched = if is_local { Watched::default() } else { Watched { smt_balance, pressed, misfits: asym } };
            let domain = self.core.domains.at(env.this, env.level);
            let mut group = self.update_sg_lb_stats(&domain.groups[index], pct, watched, considers);
            self.update_sg_llc_stats(env, index, &mut group);
            overutilized |= group.overutilized;
            misfits |= asym && group.misfit_load > 0;
            stats.total_load += group.load;
            stats.total_capacity += group.capacity;
            if is_local {
                stats.local = group;
            } else if self.update_sd_pick_busiest(env, &stats, index, &group) {
                stats.busiest = Some((index, group));
            }
            index = if index + 1 == count { 0 } else { index + 1 };
        }
        let highest = env.level + 1 == self.core.domains.depth(env.this);
        if highest {
            let overload = self.core.domains.at(env.this, env.level).overloaded > 0 || misfits;
            self.core.domains.set_overload(overload);
        }
        if let Some(state) = self.core.asym.as_mut().filter(|_| highest || overutilized) {
            state.set_rd_overutilized(overutilized);
        }
        self.update_idle_cpu_scan(env);
        stats
    }

    /// `update_sd_pick_busiest`.
    fn update_sd_pick_busiest(&self, env: &Env, stats: &DomainStats, index: usize, group: &GroupStats) -> bool {
        if group.h_nr_running == 0
            || self.core.domains.at(env.this, env.level).asym && !self.helps(env, stats, index, group)
        {
            return false;
        }
        let Some((chosen, busiest)) = stats.busiest else { return true };
        if group.kind != busiest.kind {
            return group.kind > busiest.kind;
        }
        let groups = &self.core.domains.at(env.this, env.level).groups;
        let more_tasks = group.idle_cpus == busiest.idle_cpus && group.nr_running > busiest.nr_running;
        let fewer_idle = group.idle_cpus < busiest.idle_cpus || more_tasks;
        let last_wins = self.core.rules.last_fully_busy && !groups[chosen].smt;
        match group.kind {
            GroupType::Overloaded => group.avg_load > busiest.avg_load,
            GroupType::LlcBalance => group.nr_pref_dst_llc > busiest.nr_pref_dst_llc,
            GroupType::Imbalanced => false,
            GroupType::MisfitTask if self.core.rules.last_misfit => group.misfit_load >= busiest.misfit_load,
            GroupType::MisfitTask => group.misfit_load > busiest.misfit_load,
            GroupType::SmtBalance if group.idle_cpus == 0 && busiest.idle_cpus == 0 => last_wins,
            GroupType::SmtBalance => fewer_idle,
            // The kernel never computes avg_load of such groups, so they all tie.
            GroupType::FullyBusy => last_wins,
            GroupType::HasSpare if self.core.rules.smt_balance && groups[chosen].smt != groups[index].smt => {
                !(groups[index].smt && group.h_nr_running <= 1)
            }
            GroupType::HasSpare => fewer_idle,
        }
    }

    /// Where capacities differ: a bigger CPU pulls tasks that are too big, and a smaller one pulls nothing from CPUs
    /// that have no more than a task each.
    fn helps(&self, env: &Env, stats: &DomainStats, index: usize, group: &GroupStats) -> bool {
        let (least, most) = self.capacity_range(&self.core.domains.at(env.this, env.level).groups[index].cpus);
        let own = self.capacity_of(env.dst);
        match group.kind {
            GroupType::MisfitTask => capacity_greater(own, most) && stats.local.kind == GroupType::HasSpare,
            GroupType::HasSpare | GroupType::FullyBusy => !capacity_greater(least, own),
            _ => true,
        }
    }

    /// The tests of `sched_balance_find_src_group`; the first match decides.
    fn is_imbalanced(&self, env: &Env, stats: &DomainStats, group: usize, busiest: &GroupStats) -> bool {
        let (domain, local) = (self.core.domains.at(env.this, env.level), &stats.local);
        if matches!(busiest.kind, GroupType::Imbalanced | GroupType::MisfitTask) {
            return true;
        }
        if local.kind > busiest.kind {
            return false;
        }
        if local.kind == GroupType::Overloaded
            && (local.avg_load >= busiest.avg_load
                || local.avg_load >= stats.avg_load()
                || 100 * busiest.avg_load <= u64::from(domain.imbalance_pct) * local.avg_load)
        {
            return false;
        }
        if self.prefers_sibling(env)
            && local.kind == GroupType::HasSpare
            && (busiest.kind == GroupType::LlcBalance || self.sibling_imbalance(env, stats, group, busiest) > 1)
        {
            return true;
        }
        if busiest.kind == GroupType::Overloaded {
            return true;
        }
        if env.idle == CpuIdle::Not {
            return false;
        }
        let smt_differs = domain.groups[group].smt != domain.groups[stats.local_group].smt;
        if busiest.kind == GroupType::SmtBalance && smt_differs {
            return true;
        }
        let even = busiest.weight > 1 && local.idle_cpus <= busiest.idle_cpus + 1;
        !even && busiest.h_nr_running != 1
    }

    /// SD_PREFER_SIBLING of the child domain: every level sets it except NUMA and those below CPUs of different
    /// capacity, and every level but the lowest has a child.
    fn prefers_sibling(&self, env: &Env) -> bool {
        env.level > 0 && !self.core.domains.at(env.this, env.level).asym
    }

    /// By how many tasks the busiest group exceeds the local one; per core from 6.6 on.
    fn sibling_imbalance(&self, env: &Env, stats: &DomainStats, group: usize, busiest: &GroupStats) -> u64 {
        let (theirs, ours) = (u64::from(busiest.nr_running), u64::from(stats.local.nr_running));
        if !self.core.rules.sibling_imbalance {
            return theirs.saturating_sub(ours);
        }
        if env.idle == CpuIdle::Not {
            return 0;
        }
        let groups = &self.core.domains.at(env.this, env.level).groups;
        let their_cores = u64::from(groups[group].cores);
        let our_cores = u64::from(groups[stats.local_group].cores);
        if their_cores == our_cores {
            return theirs.saturating_sub(ours);
        }
        let excess = (our_cores * theirs).saturating_sub(their_cores * ours);
        let rounded = (2 * excess + our_cores + their_cores) / (our_cores + their_cores);
        if rounded <= 1 && ours == 0 && theirs > 1 {
            2
        } else {
            rounded
        }
    }

    /// `calculate_imbalance`.
    fn calculate_imbalance(&self, env: &mut Env, stats: &DomainStats, group: usize, busiest: &GroupStats) {
        let domain = self.core.domains.at(env.this, env.level);
        let local = &stats.local;
        if busiest.kind == GroupType::MisfitTask && domain.asym {
            (env.migrate, env.imbalance) = (Migrate::Misfit, 1);
            return;
        }
        if busiest.kind == GroupType::MisfitTask {
            (env.migrate, env.imbalance) = (Migrate::Load, busiest.misfit_load);
            return;
        }
        if matches!(busiest.kind, GroupType::SmtBalance | GroupType::Imbalanced) {
            (env.migrate, env.imbalance) = (Migrate::Task, 1);
            return;
        }
        if busiest.kind == GroupType::LlcBalance {
            (env.migrate, env.imbalance) = (Migrate::LlcTask, 1);
            return;
        }
        if local.kind == GroupType::HasSpare {
            if busiest.kind > GroupType::FullyBusy && !(self.core.rules.tasks_in_llc && domain.shares_llc()) {
                let util = local.util;
                (env.migrate, env.imbalance) = (Migrate::Util, local.capacity.saturating_sub(util));
                if env.idle != CpuIdle::Not && env.imbalance == 0 {
                    (env.migrate, env.imbalance) = (Migrate::Task, 1);
                }
                return;
            }
            env.migrate = Migrate::Task;
            env.imbalance = if busiest.weight == 1 || self.prefers_sibling(env) {
                self.sibling_imbalance(env, stats, group, busiest)
            } else {
                u64::from(local.idle_cpus.saturating_sub(busiest.idle_cpus))
            };
            env.imbalance = match domain.is_numa() {
                true => self.allowed_between_nodes(env.imbalance, local, busiest, domain.imb_numa_nr),
                false => env.imbalance >> 1,
            };
            return;
        }
        env.migrate = Migrate::Load;
        env.imbalance = load_imbalance(stats, busiest, self.core.rules.stops_at_average);
    }

    /// Half of the difference, or nothing while NUMA nodes may be that uneven.
    fn allowed_between_nodes(&self, difference: u64, local: &GroupStats, busiest: &GroupStats, nr: u32) -> u64 {
        let half = difference >> 1;
        let lightly_used = match self.core.rules.numa_slack {
            NumaSlack::None => false,
            NumaSlack::Pair => u64::from(busiest.nr_running) <= NUMA_IMBALANCE_MIN,
            NumaSlack::Quarter => busiest.nr_running < busiest.weight / 4 && half <= NUMA_IMBALANCE_MIN,
            NumaSlack::PerNode => adjust_numa_imbalance(difference, local.nr_running + 1, nr) == 0,
        };
        if lightly_used {
            0
        } else {
            half
        }
    }

    /// `update_idle_cpu_scan`: how many CPUs of the cache a wakeup may test from now on.
    pub(super) fn update_idle_cpu_scan(&mut self, env: &Env) {
        if env.idle == CpuIdle::Newly || !self.fair.config.has(Feature::SisUtil) {
            return;
        }
        let domain = self.core.domains.at(env.this, env.level);
        let llc = self.core.idle.llc_of(env.this);
        let width = self.core.idle.llc(llc).cpus.len();
        if self.core.domains.asym_level(env.this) == Some(env.level) {
            let cpus = domain.span.iter().filter(|cpu| env.considers(*cpu));
            let sum: u64 = cpus.map(|cpu| self.fair.cpu_util_cfs(cpu)).sum();
            let allowed = nr_idle_scan(sum, u64::from(domain.weight), u64::from(domain.imbalance_pct));
            if let Some(asym) = &mut self.core.asym {
                asym.nr_idle_scan = allowed;
            }
        }
        let domain = self.core.domains.at(env.this, env.level);
        if domain.weight as usize != width {
            return;
        }
        // `sum_util` of `update_sd_lb_stats`, without CPUs whose tasks were all found to be pinned.
        let cpus = self.core.idle.llc(llc).cpus.iter().filter(|cpu| env.considers(**cpu));
        let sum: u64 = cpus.map(|cpu| self.fair.cpu_util_cfs(*cpu)).sum();
        self.core.idle.llc_mut(llc).nr_idle_scan = nr_idle_scan(sum, width as u64, u64::from(domain.imbalance_pct));
    }

    /// `sched_balance_find_src_rq`: the CPU of the group to take tasks from.
    pub(super) fn sched_balance_find_src_rq(&self, env: &Env, group: usize) -> Option<CpuId> {
        let domain = self.core.domains.at(env.this, env.level);
        let (group, pct, asym) = (&domain.groups[group], domain.imbalance_pct, domain.asym);
        let (mut busiest, mut busiest_capacity) = ((None, 0), 1);
        for &cpu in &group.cpus {
            let nr_running = self.h_nr_runnable(cpu);
            if nr_running == 0 || !env.considers(cpu) || env.fbq < Fbq::All && self.fbq_classify_rq(cpu) > env.fbq {
                continue;
            }
            // What would end in pushing a task from a big CPU to a small one is not begun.
            if asym && nr_running == 1 && !capacity_greater(self.capacity_of(env.dst), self.capacity_of(cpu)) {
                continue;
            }
            let mut capacity = 1;
            let measure = match env.migrate {
                Migrate::Task => u64::from(nr_running),
                Migrate::Misfit => self.core.asym.as_ref().map_or(0, |asym| asym.misfit_load(cpu)),
                Migrate::LlcTask => u64::from(self.fair.llc_count(cpu, env.dst)),
                Migrate::Util if nr_running <= 1 => continue,
                Migrate::Util if self.core.rules.runnable_boost => self.fair.cpu_util_cfs_boost(cpu),
                Migrate::Util => self.fair.cpu_util_cfs(cpu),
                Migrate::Load => {
                    let load = self.fair.cpu_load(cpu);
                    if nr_running == 1 && load > env.imbalance && !self.check_cpu_capacity(cpu, pct) {
                        continue;
                    }
                    capacity = self.capacity_of(cpu);
                    load
                }
            };
            // Load is compared per capacity.
            if measure * busiest_capacity > busiest.1 * capacity {
                (busiest, busiest_capacity) = ((Some(cpu), measure), capacity);
            }
        }
        busiest.0
    }
}

/// The last part of `calculate_imbalance`: bring both groups to the domain's average.
fn load_imbalance(stats: &DomainStats, busiest: &GroupStats, stops_at_average: bool) -> u64 {
    let (local, avg) = (stats.local.relative_load(), stats.avg_load());
    if stats.local.kind < GroupType::Overloaded && (local >= busiest.avg_load || (stops_at_average && local >= avg)) {
        return 0;
    }
    // A side that is negative wraps in the kernel, and then the other one counts.
    let spare = avg.checked_sub(local).map_or(u64::MAX, |under| under * stats.local.capacity);
    let excess = busiest.avg_load.checked_sub(avg).map_or(u64::MAX, |over| over * busiest.capacity);
    spare.min(excess) / CAPACITY_SCALE
}

/// `adjust_numa_imbalance`: a pair of communicating tasks may stay on one node while it is nearly empty.
pub(crate) fn adjust_numa_imbalance(imbalance: u64, dst_running: u32, imb_numa_nr: u32) -> u64 {
    if dst_running <= imb_numa_nr && imbalance <= NUMA_IMBALANCE_MIN {
        0
    } else {
        imbalance
    }
}

/// SIS_UTIL: x = sum / W; y = 1024 - min(1024, x^2 pct^2 / (10000 * 1024)); W y / 1024.
fn nr_idle_scan(sum_util: u64, width: u64, pct: u64) -> u32 {
    let x = sum_util / width;
    let used = (x * x * pct * pct / (10_000 * CAPACITY_SCALE)).min(CAPACITY_SCALE);
    ((CAPACITY_SCALE - used) * width / CAPACITY_SCALE) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_budget_shrinks_with_the_square_of_the_load() {
        // Published floors for caches of 16, 64 and 128 CPUs at 0, 25, 50, 60, 70, 75, 80, 85 percent.
        for (width, floors) in [
            (16, [16, 14, 10, 8, 5, 3, 2, 0]),
            (64, [64, 58, 42, 32, 21, 14, 8, 0]),
            (128, [128, 117, 84, 65, 42, 29, 16, 1]),
        ] {
            for (percent, floor) in [0, 25, 50, 60, 70, 75, 80, 85].into_iter().zip(floors) {
                let sum = width * (1024 * percent / 100);
                assert_eq!(nr_idle_scan(sum, width, 117), floor, "{width} CPUs at {percent} %");
            }
        }
    }

    #[test]
    fn a_lightly_loaded_node_keeps_a_pair() {
        for (imbalance, running, nr, expected) in [(2, 3, 7, 0), (2, 8, 7, 2), (3, 1, 7, 3), (1, 7, 7, 0)] {
            assert_eq!(adjust_numa_imbalance(imbalance, running, nr), expected);
        }
    }
}
