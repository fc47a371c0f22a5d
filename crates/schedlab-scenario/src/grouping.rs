//! How the tasks of a scenario are grouped, and the other way to group them.
//!
//! Whether services and sessions are groups changes what the scheduler compares, and decides many comparisons. The
//! groups that nothing is set on (sessions, and control groups as the kernel makes them) are there or not there
//! depending on the distribution and on what starts the tasks; groups with a weight, a quota or CPUs of their own are
//! meant, and stay.

use schedlab_spec::Cgroup;
use schedlab_workload::Workload;

use crate::variant::Draft;

/// Another grouping of the tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grouping {
    /// No sessions, and no groups but those with settings of their own.
    None,
    /// The tasks of each workload that are outside of control groups are a session (autogroup).
    Sessions,
}

impl Grouping {
    const NAMES: [(&'static str, Grouping); 2] = [("none", Grouping::None), ("sessions", Grouping::Sessions)];

    /// The grouping of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Grouping> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, grouping)| *grouping)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// The grouping with which a comparison is to be repeated: without groups if it has some that nothing is set on,
    /// otherwise with sessions. None if the variants differ in their groups, or if there are no two workloads.
    pub(crate) fn other(variants: &[Draft], workloads: &[&Workload]) -> Option<Grouping> {
        let autogroup = variants.first()?.autogroup;
        if workloads.len() < 2 || variants.iter().any(|variant| variant.autogroup != autogroup) {
            return None;
        }
        let places: Vec<Option<&str>> = workloads.iter().flat_map(|workload| places(workload)).collect();
        let outside = places.contains(&None);
        let plain = places.iter().flatten().any(|path| kept(variants, path) != Some(*path));
        match (autogroup && outside) || plain {
            true => Some(Grouping::None),
            false => outside.then_some(Grouping::Sessions),
        }
    }

    /// Groups the tasks in this way.
    pub(crate) fn apply(self, variants: &mut [Draft], workloads: &mut [Workload]) {
        for variant in variants.iter_mut() {
            variant.autogroup = self == Grouping::Sessions;
        }
        if self == Grouping::None {
            for workload in workloads {
                for task in &mut workload.tasks {
                    task.cgroup = task.cgroup.as_deref().and_then(|path| kept(variants, path)).map(str::to_owned);
                }
                for path in &mut workload.cgroups {
                    *path = kept(variants, path).unwrap_or("/").to_owned();
                }
            }
        }
    }
}

/// The groups of a workload's tasks, by path; none: outside of control groups.
pub(crate) fn places(workload: &Workload) -> impl Iterator<Item = Option<&str>> {
    let moved = workload.cgroups.iter().map(|path| Some(path.as_str()).filter(|path| *path != "/"));
    workload.tasks.iter().map(|task| task.cgroup.as_deref()).chain(moved)
}

/// The nearest group, from `path` upwards, on which a variant sets something.
fn kept<'p>(variants: &[Draft], path: &'p str) -> Option<&'p str> {
    let set = |path: &str| {
        variants.iter().flat_map(|variant| &variant.cgroups).any(|group| group.path == path && is_set(group))
    };
    let upwards = std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(parent, _)| parent));
    upwards.take_while(|path| !path.is_empty()).find(|path| set(path))
}

/// Whether anything is set on a group.
fn is_set(group: &Cgroup) -> bool {
    let Cgroup { path, counted, .. } = group.clone();
    *group != Cgroup { path, counted, ..Cgroup::default() }
}
