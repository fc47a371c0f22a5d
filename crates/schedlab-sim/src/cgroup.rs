//! The task groups of a run: made before anything starts, in one tree for all workloads.

use std::collections::BTreeMap;

use schedlab_policy::fair::{Fair, GroupId, GroupShares};

/// A control group as its files say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cgroup {
    /// Path from the root, e.g. `/web/fast`. The group above is in the list before it.
    pub path: String,
    /// `cpu.weight`, `cpu.weight.nice` or `cpu.shares`; `None` = 1024 shares.
    pub shares: Option<GroupShares>,
    /// `cpu.idle`.
    pub idle: bool,
    /// `cpu.latency.nice`, where the kernel has it.
    pub latency_nice: i8,
}

/// Which group a path names; a workload's tasks outside of all are in `autogroups`, if the kernel makes those.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    named: BTreeMap<String, GroupId>,
    autogroups: Vec<GroupId>,
}

impl Cgroups {
    /// Makes the groups; with `autogroup` also one for each of so many workloads.
    pub fn new(fair: &mut Fair, cgroups: &[Cgroup], autogroup: bool, workloads: usize) -> Self {
        let mut all = Cgroups::default();
        for cgroup in cgroups {
            let above = cgroup.path.rsplit_once('/').map_or("", |(above, _)| above);
            let group = fair.create_group(all.named.get(above).copied().unwrap_or_default());
            if let Some(shares) = cgroup.shares {
                fair.set_shares(group, shares, 0);
            }
            fair.set_group_idle(group, cgroup.idle, 0);
            if cgroup.latency_nice != 0 {
                fair.set_group_latency_nice(group, cgroup.latency_nice);
            }
            all.named.insert(cgroup.path.clone(), group);
        }
        if autogroup {
            all.autogroups = (0..workloads).map(|_| fair.create_group(GroupId::ROOT)).collect();
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

    /// Whether an exiting task leaves its autogroup (`sched_autogroup_exit_task`).
    pub fn is_autogroup(&self, group: GroupId) -> bool {
        self.autogroups.contains(&group)
    }
}
