//! Cache-aware balancing (CONFIG_SCHED_CACHE, 7.2 and later): the threads of a process are brought together under one
//! last-level cache as long as the cache has room for them.
//!
//! kernel/sched/fair.c of 7.2.13 and 7.3.4. It is active (`sched_cache_active`) on machines on which a last-level
//! cache has several CPUs, but not all, unless `llc_balancing/enabled` is 0.
//!
//! - [`account_mm_sched`](account): the run time of each process on each CPU, halved every epoch. A thread takes over
//!   the preferred cache of its process; queued threads are counted by CPU and preferred cache.
//! - [`task_cache_work`](work): once in an epoch the cache in which a process runs most becomes its preferred one.
//! - [`can_migrate_llc`](can_migrate): whether the use of two caches permits or forbids a move for the sake of a
//!   preference.
//!
//! What balancing between caches does with it: `balance/sched_cache_lb.rs`.
//!
//! Not modelled: the footprint of a process (`exceed_llc_capacity`), which the kernel compares with the cache only if
//! NUMA balancing is on, and the preferred nodes of NUMA balancing ([`crate::numa`]), which come first there.

mod account;
pub(crate) mod can_migrate;
mod epoch;
mod follow;
mod group;
mod preference;
mod process_shown;
mod work;

pub use process_shown::ProcessShown;

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId, Topology};

use crate::config::KernelConfig;
use crate::jiffies::{Jiffies, UPTIME};
use crate::pelt::series::CAPACITY_SCALE;
use epoch::CpuEpoch;
use group::Groups;

/// The number of a last-level cache (`sd_llc_id`).
pub(crate) type LlcId = u32;

/// The state of cache-aware balancing.
#[derive(Clone, Debug)]
pub(crate) struct SchedCache {
    tuning: Tuning,
    /// `sched_cache_active`.
    pub(crate) active: bool,
    /// `sd_llc_id` of each CPU.
    llc_of: Vec<LlcId>,
    llcs: Vec<Llc>,
    /// `cpu_smt_num_threads`.
    threads_per_core: u64,
    cpus: Vec<CpuEpoch>,
    /// Queued tasks by CPU and preferred cache (`sd->llc_counts` of the lowest domain).
    llc_counts: Vec<u32>,
    /// Their sum.
    preferring: u32,
    groups: Groups,
    ticks: Ticks,
    /// Charges count where a trace shows their process, not by themselves.
    pub follows_trace: bool,
}

/// The files of debugfs sched/llc_balancing.
#[derive(Clone, Copy, Debug)]
struct Tuning {
    aggr_tolerance: u64,
    epoch_period: Jiffies,
    epoch_affinity_timeout: u64,
    overaggr_pct: u64,
    imb_pct: u64,
}

/// A last-level cache (parts of `struct sched_domain_shared`).
#[derive(Clone, Debug)]
struct Llc {
    /// Its CPUs that are active.
    cpus: Vec<CpuId>,
    /// The utilisation of its CPUs at the last periodic pass that compared caches, and their capacity.
    util_avg: u64,
    capacity: u64,
}

/// The kernel's tick count as a function of the clock.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    nsec: Nanos,
    at_0: Jiffies,
    /// As a trace shows it.
    shown: Option<Jiffies>,
}

impl SchedCache {
    /// The state on a machine that has been idle for a while; `None` on kernels without it, and on machines on which it
    /// is never active.
    pub fn new(config: &KernelConfig, topology: &Topology) -> Option<Box<SchedCache>> {
        let knobs = &config.knobs;
        if !config.placement.cache_aware || knobs.llc_enabled == 0 || !has_multi_llcs(topology) {
            return None;
        }
        let mut spans: Vec<CpuMask> = Vec::new();
        let mut llc_of = Vec::new();
        for cpu in topology.cpus() {
            let span = topology.llc(cpu);
            let known = spans.iter().position(|known| known == span);
            llc_of.push(known.unwrap_or(spans.len()) as LlcId);
            if known.is_none() {
                spans.push(*span);
            }
        }
        let ticks = Ticks { nsec: config.tick_nsec(), at_0: UPTIME / config.tick_nsec(), shown: None };
        let nr_cpus = topology.nr_cpus();
        Some(Box::new(SchedCache {
            tuning: Tuning {
                aggr_tolerance: knobs.llc_aggr_tolerance,
                epoch_period: knobs.llc_epoch_period.max(1),
                epoch_affinity_timeout: knobs.llc_epoch_affinity_timeout,
                overaggr_pct: knobs.llc_overaggr_pct,
                imb_pct: knobs.llc_imb_pct,
            },
            active: true,
            llcs: spans.iter().map(Llc::idle).collect(),
            threads_per_core: topology.cpus().map(|cpu| topology.smt(cpu).count() as u64).max().unwrap_or(1),
            cpus: vec![CpuEpoch::at(ticks.at_0); nr_cpus],
            llc_counts: vec![0; nr_cpus * spans.len()],
            preferring: 0,
            groups: Groups::default(),
            llc_of,
            ticks,
            follows_trace: false,
        }))
    }

    /// The scheduling domains were built anew for the CPUs that are active. The counts of the domains start from zero,
    /// as in the kernel, and are right again once every task has been queued anew.
    pub fn rebuild(&mut self, active: &Topology) {
        self.active = has_multi_llcs(active);
        for (index, llc) in self.llcs.iter_mut().enumerate() {
            let active_here = active.all().iter().filter(|cpu| self.llc_of[cpu.index()] as usize == index);
            llc.cpus = active_here.collect();
            llc.capacity = llc.cpus.len() as u64 * CAPACITY_SCALE;
        }
        self.llc_counts.fill(0);
        self.preferring = 0;
    }

    /// `llc_id`.
    pub fn llc_id(&self, cpu: CpuId) -> LlcId {
        self.llc_of[cpu.index()]
    }

    /// The cache that the task prefers, by its first CPU.
    pub fn preferred_llc(&self, task: TaskId) -> Option<CpuId> {
        let llc = self.groups.task(task).preferred_llc?;
        self.llc_of.iter().position(|of| *of == llc).map(|cpu| CpuId(cpu as u32))
    }

    fn llc(&self, cpu: CpuId) -> &Llc {
        &self.llcs[self.llc_of[cpu.index()] as usize]
    }

    /// The number of CPUs in the cache of this one (`sd_llc_size`).
    fn llc_size(&self, cpu: CpuId) -> u64 {
        self.llc(cpu).cpus.len() as u64
    }

    fn jiffies(&self, now: Nanos) -> Jiffies {
        self.ticks.shown.unwrap_or(self.ticks.at_0 + now / self.ticks.nsec)
    }
}

impl Llc {
    fn idle(span: &CpuMask) -> Llc {
        let cpus: Vec<CpuId> = span.iter().collect();
        Llc { util_avg: 0, capacity: cpus.len() as u64 * CAPACITY_SCALE, cpus }
    }
}

/// `has_multi_llcs` of `build_sched_domains`: some cache has several CPUs, and there are CPUs outside of it.
fn has_multi_llcs(topology: &Topology) -> bool {
    let all = topology.all().count();
    topology.all().iter().map(|cpu| topology.llc(cpu).count()).any(|size| size > 1 && size < all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    #[test]
    fn it_is_active_from_7_2_on_between_caches_of_several_cpus() {
        for (row, shape, enabled, expected) in [
            ("7.1", (1, 2, 2, 1), 1, None),
            ("7.2", (1, 2, 2, 1), 1, Some(vec![0, 0, 1, 1])),
            ("7.3", (2, 1, 2, 1), 1, Some(vec![0, 0, 1, 1])),
            ("7.2", (1, 2, 2, 1), 0, None),
            ("7.2", (1, 1, 4, 1), 1, None),
            ("7.2", (1, 4, 1, 1), 1, None),
            ("7.2", (1, 2, 1, 2), 1, Some(vec![0, 0, 1, 1])),
        ] {
            let (nodes, llcs, cores, threads) = shape;
            let topology = Topology::regular(nodes, llcs, cores, threads, true).unwrap();
            let mut config = KernelConfig::new(Version::find(row).unwrap(), topology.nr_cpus(), 250);
            config.knobs.llc_enabled = enabled;
            let ids = SchedCache::new(&config, &topology).map(|cache| cache.llc_of);
            assert_eq!(ids, expected, "{row} {shape:?} enabled {enabled}");
        }
    }
}
