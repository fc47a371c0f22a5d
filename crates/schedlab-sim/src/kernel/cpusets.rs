//! The CPUs that each control group allows: the masks of `cpuset.cpus`, and the affinities that tasks requested.
//! [`cpuset`](super::cpuset) has the rules and applies them.

use std::collections::BTreeMap;

use schedlab_model::{CpuMask, Nanos, TaskId};
use schedlab_policy::fair::{Fair, GroupId};
use schedlab_spec::RunSpec;

use super::cgroup::Cgroups;

/// The cpusets of a run.
#[derive(Debug)]
pub struct Cpusets {
    all: CpuMask,
    /// The groups and their parents, a parent first.
    parents: Vec<(GroupId, GroupId)>,
    /// The CPUs that groups state themselves.
    pub own: BTreeMap<GroupId, CpuMask>,
    /// Future changes, the next one last.
    pub later: Vec<(Nanos, GroupId, CpuMask)>,
    /// The affinity that each task requested (`user_cpus_ptr`).
    asked: Vec<Option<CpuMask>>,
    /// Requested affinities survive a change of the group: 6.2 and later.
    pub keeps_asked: bool,
    /// Tasks that could not be moved yet.
    pub waiting: Vec<TaskId>,
}

impl Cpusets {
    /// The cpusets of the run's groups; `None` if no group states its CPUs.
    pub fn new(spec: &RunSpec, groups: &Cgroups) -> Option<Box<Cpusets>> {
        if spec.cgroups.iter().all(|cgroup| cgroup.cpus.is_none() && cgroup.cpus_later.is_empty()) {
            return None;
        }
        let of = |path: &str| groups.of(Some(path), 0);
        let mut sets = Cpusets {
            all: *spec.machine.topology.all(),
            parents: Vec::new(),
            own: BTreeMap::new(),
            later: Vec::new(),
            asked: Vec::new(),
            keeps_asked: spec.kernel.placement.cpuset_keeps_affinity,
            waiting: Vec::new(),
        };
        for cgroup in spec.cgroups.iter() {
            let parent = cgroup.path.rsplit_once('/').map_or("", |(parent, _)| parent);
            sets.parents.push((of(&cgroup.path), if parent.is_empty() { GroupId::ROOT } else { of(parent) }));
            if let Some(cpus) = cgroup.cpus {
                sets.own.insert(of(&cgroup.path), cpus);
            }
            sets.later.extend(cgroup.cpus_later.iter().map(|(at, cpus)| (*at, of(&cgroup.path), *cpus)));
        }
        sets.later.sort_by_key(|change| std::cmp::Reverse(change.0));
        Some(Box::new(sets))
    }

    /// `effective_cpus` of a group.
    pub fn effective(&self, group: GroupId) -> CpuMask {
        let Some((_, parent)) = self.parents.iter().find(|(known, _)| *known == group) else { return self.all };
        let above = self.effective(*parent);
        let own = self.own.get(&group).map_or(above, |own| own.and(&above));
        if own.is_empty() {
            above
        } else {
            own
        }
    }

    /// The weights of groups depend on the number of their CPUs (`cpuset_num_cpus`, 7.3).
    pub fn count_cpus(&self, fair: &mut Fair) {
        for (group, _) in &self.parents {
            fair.set_cpuset_num_cpus(*group, self.effective(*group).count());
        }
    }

    /// The active CPUs change: the groups whose CPUs change with them (`cpuset_hotplug_workfn`).
    pub fn set_active(&mut self, active: CpuMask) -> Vec<GroupId> {
        let groups: Vec<GroupId> = self.parents.iter().map(|(group, _)| *group).collect();
        let before: Vec<CpuMask> = groups.iter().map(|group| self.effective(*group)).collect();
        self.all = active;
        groups
            .into_iter()
            .zip(before)
            .filter(|(group, before)| self.effective(*group) != *before)
            .map(|(g, _)| g)
            .collect()
    }

    /// The group is the ancestor, or below it.
    pub fn is_within(&self, group: GroupId, ancestor: GroupId) -> bool {
        let parent = |group| self.parents.iter().find(|(known, _)| *known == group).map(|(_, parent)| *parent);
        std::iter::successors(Some(group), |group| parent(*group)).any(|group| group == ancestor)
    }

    /// The CPUs that a task of this group may use if it requested these.
    pub fn allowed(&self, group: GroupId, asked: Option<&CpuMask>) -> CpuMask {
        let effective = self.effective(group);
        let both = asked.map_or(effective, |asked| asked.and(&effective));
        if both.is_empty() {
            effective
        } else {
            both
        }
    }

    /// `user_cpus_ptr` of a task.
    pub fn asked(&self, task: TaskId) -> Option<CpuMask> {
        self.asked.get(task.index()).copied().flatten()
    }

    /// Sets `user_cpus_ptr` of a task.
    pub fn ask(&mut self, task: TaskId, cpus: Option<CpuMask>) {
        if self.asked.len() <= task.index() {
            self.asked.resize(task.index() + 1, None);
        }
        self.asked[task.index()] = cpus;
    }
}
