//! The task groups of a run: made before anything starts, in one tree for all workloads.

use std::collections::BTreeMap;

use schedlab_policy::fair::{BandwidthStats, Fair, GroupId};
use schedlab_spec::{Cgroup, RunSpec};
use schedlab_workload::cpu_stat::CPU_STATS;

/// Which group a path names, and the groups that autogroup makes for tasks outside of all paths.
#[derive(Debug, Default)]
pub struct Cgroups {
    named: BTreeMap<String, GroupId>,
    /// By workload; empty without autogroup.
    autogroups: Vec<GroupId>,
    /// The groups whose `cpu.stat` is among the metrics, in the order of their metrics, each with what has been
    /// emitted.
    counted: Vec<(GroupId, BandwidthStats)>,
    /// Where their metrics begin, after the workloads'.
    first_metric: u16,
}

impl Cgroups {
    /// Makes the groups of the run; with autogroup also one for each workload.
    pub fn new(fair: &mut Fair, spec: &RunSpec) -> Self {
        let metrics: usize = spec.workloads.iter().map(|workload| workload.metrics.len()).sum();
        let mut all = Cgroups { first_metric: metrics as u16, ..Cgroups::default() };
        for cgroup in spec.cgroups.iter() {
            all.create(fair, cgroup);
        }
        if spec.autogroup {
            all.autogroups = spec.workloads.iter().map(|_| fair.sched_create_group(GroupId::ROOT)).collect();
        }
        all
    }

    fn create(&mut self, fair: &mut Fair, cgroup: &Cgroup) {
        let parent = cgroup.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let group = fair.sched_create_group(self.named.get(parent).copied().unwrap_or_default());
        if let Some(shares) = cgroup.shares {
            fair.sched_group_set_shares(group, shares, 0);
        }
        fair.sched_group_set_idle(group, cgroup.idle, 0);
        if cgroup.latency_nice != 0 {
            fair.sched_group_set_latency(group, cgroup.latency_nice);
        }
        if let Some(max) = cgroup.bandwidth {
            fair.tg_set_cfs_bandwidth(group, max.quota, max.period, max.burst, 0);
        }
        if cgroup.counted {
            self.counted.push((group, BandwidthStats::default()));
        }
        self.named.insert(cgroup.path.clone(), group);
    }

    /// The group of a workload's task with this path, or without one.
    pub fn of(&self, path: Option<&str>, workload: usize) -> GroupId {
        match path {
            Some(path) => self.named.get(path).copied().unwrap_or_default(),
            None => self.autogroups.get(workload).copied().unwrap_or_default(),
        }
    }

    /// Every group by its number; `workload` names one by its place.
    pub fn names<'a>(&'a self, workload: impl Fn(usize) -> &'a str + 'a) -> impl Iterator<Item = (u32, String)> + 'a {
        let named = self.named.iter().map(|(path, group)| (group.0, path.clone()));
        let sessions = self.autogroups.iter().enumerate();
        named.chain(sessions.map(move |(index, group)| (group.0, format!("/autogroup-{}", workload(index)))))
    }

    /// How the quotas were used, by path.
    pub fn bandwidth(&self, fair: &Fair) -> Vec<(String, BandwidthStats)> {
        let stats = |(path, group): (&String, &GroupId)| Some((path.clone(), fair.view().bandwidth(*group)?));
        self.named.iter().filter_map(stats).collect()
    }

    /// What the pools' timers have added to each group's `cpu.stat` since the last call, by metric; nothing else adds
    /// to it.
    pub fn count_bandwidth(&mut self, fair: &Fair) -> Vec<(u16, u64)> {
        let mut added = Vec::new();
        for (nth, (group, emitted)) in self.counted.iter_mut().enumerate() {
            let stats = fair.view().bandwidth(*group).unwrap_or_default();
            for (place, (now, before)) in values(&stats).into_iter().zip(values(emitted)).enumerate() {
                if now > before {
                    added.push((self.first_metric + (nth * CPU_STATS + place) as u16, now - before));
                }
            }
            *emitted = stats;
        }
        added
    }

    /// Whether an exiting task leaves its autogroup (`sched_autogroup_exit_task`).
    pub fn is_autogroup(&self, group: GroupId) -> bool {
        self.autogroups.contains(&group)
    }
}

fn values(stats: &BandwidthStats) -> [u64; CPU_STATS] {
    [stats.nr_periods, stats.nr_throttled, stats.throttled_time, stats.nr_bursts, stats.burst_time]
}
