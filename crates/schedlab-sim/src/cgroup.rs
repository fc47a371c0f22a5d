//! The task groups of a run: made before anything starts, in one tree for all workloads.

use std::collections::BTreeMap;

use schedlab_model::CpuId;
use schedlab_policy::fair::{BandwidthStats, Fair, GroupId};
use schedlab_policy::Resched;
use schedlab_spec::Cgroup;
use schedlab_trace::{Kind, Sink};
use schedlab_workload::cpu_stat::CPU_STATS;

use crate::engine::{Engine, Source};
use crate::task::Mode;

impl<S: Sink> Engine<'_, S> {
    /// Follows the timers of the groups' pools, which start and stop with their use.
    #[inline(always)]
    pub fn arm_bandwidth(&mut self) {
        if self.bandwidth {
            self.follow_pools();
        }
    }

    #[inline(never)]
    fn follow_pools(&mut self) {
        match self.sched.fair.next_bandwidth_timer() {
            Some(due) => self.set_event(Source::BANDWIDTH, CpuId(0), due.max(self.now)),
            None => self.events.cancel(self.source(Source::BANDWIDTH, CpuId(0))),
        }
    }

    /// A period or the slack of a pool has ended. The timers themselves cost nothing.
    pub fn on_bandwidth(&mut self) {
        for cpu in self.sched.bandwidth_timers(self.now) {
            self.request_resched(cpu, Resched::Full, cpu);
        }
        self.count_bandwidth();
        self.arm_bandwidth();
    }

    /// Tells what the timers have added to each group's `cpu.stat`; nothing else does.
    fn count_bandwidth(&mut self) {
        for (nth, (group, told)) in self.cgroups.counted.clone().into_iter().enumerate() {
            let stats = self.sched.fair.bandwidth(group).unwrap_or_default();
            let values = |stats: &BandwidthStats| {
                [stats.nr_periods, stats.nr_throttled, stats.throttled_time, stats.nr_bursts, stats.burst_time]
            };
            for (place, (now, before)) in values(&stats).into_iter().zip(values(&told)).enumerate() {
                if now > before {
                    let metric = self.metrics_of_groups + (nth * CPU_STATS + place) as u16;
                    self.emit(CpuId(0), Kind::Count { pid: 0, metric, count: now - before });
                }
            }
            self.cgroups.counted[nth].1 = stats;
        }
    }

    /// The current task of the CPU is about to run in user mode, and nothing asks it to reschedule
    /// (`resume_user_mode_work`): if it is throttled it leaves its queue, and reschedules for that (6.18 and later).
    #[inline]
    pub fn resume_user_mode(&mut self, cpu: CpuId) {
        if self.bandwidth {
            self.work_before_user_mode(cpu);
        }
    }

    #[inline(never)]
    fn work_before_user_mode(&mut self, cpu: CpuId) {
        let c = &self.cpus[cpu.index()];
        let Some(task) = c.curr.filter(|_| c.leaving_for.is_none()) else { return };
        let in_user = self.tasks[task.index()].mode != Mode::Kernel;
        if !in_user || c.need_resched || c.need_resched_lazy || !self.sched.fair.has_throttle_work(task) {
            return;
        }
        self.progress(cpu);
        self.checks.fair.changed(cpu, self.now);
        if self.sched.throttle_work(task, self.now) {
            let c = &mut self.cpus[cpu.index()];
            (c.need_resched, c.resched_seen) = (true, true);
            self.arm_bandwidth();
        }
    }
}

/// Which group a path names; a workload's tasks outside of all are in `autogroups`, if the kernel makes those.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    named: BTreeMap<String, GroupId>,
    autogroups: Vec<GroupId>,
    /// The groups whose `cpu.stat` is told, in the order of their metrics, and what has been told.
    counted: Vec<(GroupId, BandwidthStats)>,
}

impl Cgroups {
    /// Makes the groups; with `autogroup` also one for each of so many workloads.
    pub fn new(fair: &mut Fair, cgroups: &[Cgroup], autogroup: bool, workloads: usize) -> Self {
        let mut all = Cgroups::default();
        for cgroup in cgroups {
            let above = cgroup.path.rsplit_once('/').map_or("", |(above, _)| above);
            let group = fair.sched_create_group(all.named.get(above).copied().unwrap_or_default());
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
                all.counted.push((group, BandwidthStats::default()));
            }
            all.named.insert(cgroup.path.clone(), group);
        }
        if autogroup {
            all.autogroups = (0..workloads).map(|_| fair.sched_create_group(GroupId::ROOT)).collect();
        }
        all
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
        let stats = |(path, group): (&String, &GroupId)| Some((path.clone(), fair.bandwidth(*group)?));
        self.named.iter().filter_map(stats).collect()
    }

    /// Whether an exiting task leaves its autogroup (`sched_autogroup_exit_task`).
    pub fn is_autogroup(&self, group: GroupId) -> bool {
        self.autogroups.contains(&group)
    }
}
