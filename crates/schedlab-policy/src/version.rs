//! Which kernel is modelled: one row of data per version, never a fork of the code.
//!
//! A row names a [`Series`] (the column of the feature and knob tables) and the rules its `kernel/sched/fair.c`
//! follows. Code asks a row for a rule; it never compares version names.

use crate::config::PreemptModel;
use crate::features::FeatureSet;
use crate::nearest::nearest;

/// The columns of the feature and knob tables, oldest first. A column is not yet a version: only [`Version::all`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Series {
    V5_2,
    V5_7,
    V5_13,
    V6_1,
    V6_3,
    EevdfRfc,
    V6_6,
    V6_12_0,
    V6_12_107,
    V6_18,
    V7_2,
}

/// Which family of rules decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Completely Fair Scheduler: smallest vruntime first (up to 6.5).
    Cfs,
    /// Earliest Eligible Virtual Deadline First (6.6 and later, and the 2023 series).
    Eevdf,
}

/// Who counts as idle in wakeup preemption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleRule {
    /// Only the tasks' SCHED_IDLE policy (up to 5.14).
    Task,
    /// The tasks' policy first, then the sibling entities' (5.15 to 6.6).
    TaskThenEntity,
    /// Only the sibling entities' (6.12 and later).
    Entity,
}

/// What the red-black tree is sorted by, and so what each node remembers of its subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TreeKey {
    /// Sorted by vruntime.
    Vruntime,
    /// Sorted by deadline, remembering the smallest vruntime (6.12 and later).
    Deadline,
}

/// How a running entity is protected from an earlier deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// Not at all.
    None,
    /// RUN_TO_PARITY by `vlag == deadline`, set when the entity is put on the CPU (6.6 to 6.12).
    Marker,
}

/// The rules of `kernel/sched/fair.c` that differ between versions. Rules that only one row has so far are not here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// CFS or EEVDF.
    pub policy: Policy,
    /// Order of the tree.
    pub tree_key: TreeKey,
    /// Who counts as idle.
    pub idle: IdleRule,
    /// `sched_slice` floors an idle entity beside non-idle ones at idle_min_granularity (6.1, 6.3).
    pub idle_slice_floor: bool,
    /// An idle entity's sleeper credit is min_granularity (5.16 and later CFS).
    pub idle_sleeper_credit: bool,
    /// The tick caps the ideal slice at sched_latency (6.3).
    pub tick_slice_cap: bool,
    /// An entity asleep for 104 days is placed without comparing vruntimes (stable backport).
    pub long_sleeper: bool,
    /// Protection of the running entity.
    pub protection: Protection,
    /// `task_fork_fair` places the child on the forking CPU (up to 6.6).
    pub fork_places: bool,
}

/// One kernel version.
#[derive(Debug)]
pub struct Version {
    /// Canonical name, as scenario files and results print it.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// One line for people: the exact tree the row was read from.
    pub summary: &'static str,
    /// Column of the feature and knob tables.
    pub series: Series,
    /// Rule choices.
    pub rules: Rules,
    /// Preemption models it can be built or booted with.
    pub preempt_models: &'static [PreemptModel],
    /// The model used when nobody says otherwise.
    pub preempt_default: PreemptModel,
}

/// No such version.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown kernel version \"{name}\"")]
pub struct VersionError {
    /// What was asked for.
    pub name: String,
    /// The closest names that exist, best first.
    pub nearest: Vec<&'static str>,
}

impl VersionError {
    /// What to do instead.
    #[must_use]
    pub fn hint(&self) -> String {
        let all: Vec<&str> = Version::all().iter().map(|v| v.name).collect();
        match self.nearest.first() {
            Some(name) => format!("did you mean \"{name}\"? modelled versions: {}", all.join(", ")),
            None => format!("modelled versions: {}", all.join(", ")),
        }
    }
}

const CLASSIC_PREEMPT: &[PreemptModel] = &[PreemptModel::None, PreemptModel::Voluntary, PreemptModel::Full];

const CFS: Rules = Rules {
    policy: Policy::Cfs,
    tree_key: TreeKey::Vruntime,
    idle: IdleRule::TaskThenEntity,
    idle_slice_floor: true,
    idle_sleeper_credit: true,
    tick_slice_cap: false,
    long_sleeper: true,
    protection: Protection::None,
    fork_places: true,
};

const EEVDF: Rules = Rules {
    policy: Policy::Eevdf,
    tree_key: TreeKey::Deadline,
    idle: IdleRule::Entity,
    protection: Protection::Marker,
    fork_places: false,
    ..CFS
};

static VERSIONS: [Version; 2] = [
    Version {
        name: "6.1",
        aliases: &["6.1.192"],
        summary: "CFS as in Debian 6.1.192 (stable backports included, autogroup off)",
        series: Series::V6_1,
        rules: CFS,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.12.0",
        aliases: &[],
        summary: "EEVDF as in vanilla 6.12.0: delayed dequeue, custom slices, PREEMPT_SHORT",
        series: Series::V6_12_0,
        rules: EEVDF,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
];

impl Version {
    /// Every modelled version, oldest first.
    #[must_use]
    pub fn all() -> &'static [Version] {
        &VERSIONS
    }

    /// The version called `name`, by canonical name or alias.
    pub fn find(name: &str) -> Result<&'static Version, VersionError> {
        let known = |v: &&Version| v.name == name || v.aliases.contains(&name);
        VERSIONS
            .iter()
            .find(known)
            .ok_or_else(|| VersionError { name: name.to_string(), nearest: nearest_versions(name) })
    }

    /// The feature switches as this kernel boots with them.
    #[must_use]
    pub fn features(&self) -> FeatureSet {
        FeatureSet::defaults(self.series)
    }
}

/// The names closest to one that does not exist: by release number if it has one, else by spelling.
fn nearest_versions(name: &str) -> Vec<&'static str> {
    let Some(wanted) = release(name) else {
        return nearest(name, VERSIONS.iter().map(|v| v.name));
    };
    let mut names: Vec<&'static str> = VERSIONS.iter().map(|v| v.name).collect();
    names.sort_by_key(|name| release(name).map_or(u64::MAX, |release| release.abs_diff(wanted)));
    names.truncate(3);
    names
}

/// Major, minor and sublevel as one ordered number.
fn release(name: &str) -> Option<u64> {
    let mut parts = name.trim_start_matches('v').split(['.', '-']).map(|part| part.parse::<u16>().ok());
    let (major, minor) = (parts.next()??, parts.next().flatten().unwrap_or(0));
    Some(u64::from(major) << 32 | u64::from(minor) << 16 | u64::from(parts.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_or_answered_with_the_nearest() {
        assert_eq!(Version::find("6.1").unwrap().name, "6.1");
        assert_eq!(Version::find("6.1.192").unwrap().name, "6.1");
        for (wrong, nearest) in [("6.12", "6.12.0"), ("6.12.107", "6.12.0"), ("6.2", "6.1"), ("v6.1", "6.1")] {
            assert_eq!(Version::find(wrong).unwrap_err().nearest[0], nearest, "{wrong}");
        }
        assert!(Version::find("").unwrap_err().hint().contains("6.12.0"));
    }
}
