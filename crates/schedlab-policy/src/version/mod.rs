//! Which kernel is modelled: one row of data per version, never a fork of the code.
//!
//! A row names a [`Series`] (the column of the feature and knob tables) and the rules its `kernel/sched/fair.c`
//! follows. Code asks a row for a rule; it never compares version names.

pub(crate) mod catalogue;
mod names;
mod rows;
pub(crate) mod rules;
pub(crate) mod series;

use crate::features::FeatureSet;
use crate::preempt_model::PreemptModel;
use crate::select::rules::PlacementRules;
pub use names::Names;
use rows::VERSIONS;
use rules::{IdleRule, Rules, SliceSource};
use schedlab_model::nearest;
pub use series::Series;

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
    /// Rule choices of the fair and real-time classes.
    pub rules: Rules,
    /// Rule choices of placement and balancing.
    pub placement: PlacementRules,
    /// What it calls its functions.
    pub names: &'static Names,
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
/// Series without a row, and the row that decides all of a recorded kernel of theirs (docs/models/replay.md).
const SHARED: [(&str, &str); 1] = [("5.14", "5.13")];

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

    /// Tasks may ask for a slice (`sched_attr.sched_runtime`).
    #[must_use]
    pub fn has_slices(&self) -> bool {
        self.rules.slice == SliceSource::Custom
    }

    /// Tasks and groups have a latency-nice value.
    #[must_use]
    pub fn has_latency_nice(&self) -> bool {
        self.rules.slice == SliceSource::LatencyNice
    }

    /// Groups have `cpu.idle`: since then idle entities are compared, not only idle tasks.
    #[must_use]
    pub fn has_cpu_idle(&self) -> bool {
        self.rules.idle != IdleRule::Task
    }

    /// The row a kernel release such as `6.12.107+deb13-cloud-amd64` belongs to, if it is modelled: by the row's name behind
    /// the number (`6.3.8-eevdf-rfc`, patches on a release), by its whole number, or by a row that stands for its series.
    #[must_use]
    pub fn of_release(release: &str) -> Option<&'static Version> {
        let number: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let mut parts = number.split('.');
        let series = [parts.next()?, parts.next()?].join(".");
        let patched = release[number.len()..].trim_start_matches('-');
        let shared = || SHARED.iter().find(|(of, _)| *of == series).map_or(series.as_str(), |(_, row)| row);
        Version::find(patched).or_else(|_| Version::find(&number)).or_else(|_| Version::find(shared())).ok()
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
        for (alias, name) in [("6.1.192", "6.1"), ("6.12", "6.12.107"), ("6.18", "6.18.44"), ("7.2.13", "7.2")] {
            assert_eq!(Version::find(alias).unwrap().name, name);
        }
        for (wrong, nearest) in [("6.12.108", "6.12.107"), ("6.2", "6.1"), ("v6.1", "6.1"), ("7.1", "7.2")] {
            assert_eq!(Version::find(wrong).unwrap_err().nearest[0], nearest, "{wrong}");
        }
        assert!(Version::find("").unwrap_err().hint().contains("6.12.0"));
    }
}
