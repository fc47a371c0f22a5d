//! Which kernels are modelled: rows of data, never a fork of the code.
//!
//! A rule, feature, knob or name is an entry with its value over the kernel's releases and the commit of every change
//! ([`crate::history`]; `fair`, `placement`, `names`, [`Signals`](crate::pelt::Signals) and the tables of features and
//! knobs). A row ([`Version`]) is a release with its deviations from the tables. Code looks up a rule in the row; it
//! never compares versions.

pub(crate) mod catalogue;
pub(crate) mod choices;
mod commits;
pub(crate) mod cpuidle;
pub(crate) mod fair;
mod mmap_lock;
mod names;
pub(crate) mod paravirt;
pub(crate) mod placement;
mod rows;
mod settings;
mod teo;
mod wait;

use crate::features::{Feature, FeatureSet};
use crate::history::release::Release;
use crate::knobs::Knob;
use crate::preempt_model::{folio_batch_at, slice_extension_at, PreemptModel};
use choices::{Algorithm, IdleRule, SliceSource};
pub use commits::{commits, Commit, Verdict};
use cpuidle::MenuRules;
use fair::Rules;
pub use mmap_lock::{FaultLock, MmapLockRules};
pub use names::Names;
use paravirt::Paravirt;
use placement::PlacementRules;
use rows::VERSIONS;
use schedlab_model::nearest;
pub use teo::TeoForm;

/// One kernel version.
#[derive(Debug)]
pub struct Version {
    /// Canonical name, as scenario files and results print it.
    pub name: &'static str,
    /// The release that it was read from.
    pub release: Release,
    /// Whether it is that release with patches on top; then only its name finds it.
    patched: bool,
    /// Whether Debian's archive has its image.
    pub in_debian: bool,
    /// One line for people: the exact tree that the row was read from.
    pub summary: &'static str,
    /// Rule choices of the fair and real-time classes.
    pub rules: Rules,
    /// Rule choices of placement and balancing.
    pub placement: PlacementRules,
    /// What it calls its functions.
    pub names: Names,
    /// Features that differ from the release's; `None`: it has no such feature.
    pub(crate) features: &'static [(Feature, Option<bool>)],
    /// Knobs whose default differs from the release's; `None`: it has no such knob.
    pub(crate) knobs: &'static [(Knob, Option<u64>)],
    /// Preemption models that it can be built or booted with.
    pub preempt_models: &'static [PreemptModel],
    /// The model if none is set.
    pub preempt_default: PreemptModel,
}

/// No such version.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown kernel version \"{name}\"")]
pub struct VersionError {
    /// The name that was given.
    pub name: String,
    /// The closest names that exist, best first.
    pub nearest: Vec<&'static str>,
}

impl VersionError {
    /// Why a row is the nearest to the release that was named: in how many rules of the tables they differ.
    fn why(&self, row: &str) -> Option<String> {
        let wanted = release_in(&self.name)?;
        let row = VERSIONS.iter().find(|known| known.name == row)?;
        if VERSIONS.iter().all(|known| known.release < wanted) {
            return Some("the newest one; the rules of later kernels are in no table".to_owned());
        }
        let differing = match row.other_rules(wanted) {
            0 => "no rule in the tables differs".to_owned(),
            1 => "one rule in the tables differs".to_owned(),
            several => format!("{several} rules in the tables differ"),
        };
        let (ours, theirs) = (row.rules.algorithm, Rules::at(wanted).algorithm);
        let name = |algorithm| if algorithm == Algorithm::Eevdf { "EEVDF" } else { "CFS" };
        Some(match ours == theirs {
            true => format!("both have {}, and {differing}", name(ours)),
            false => format!("it has {} instead of {}, and {differing}", name(ours), name(theirs)),
        })
    }

    /// What to do instead.
    #[must_use]
    pub fn hint(&self) -> String {
        let all: Vec<&str> = Version::all().iter().map(|v| v.name).collect();
        let meant = self.nearest.first().map_or_else(String::new, |name| match self.why(name) {
            Some(why) => format!("did you mean \"{name}\"? It is the nearest row: {why}. "),
            None => format!("did you mean \"{name}\"? "),
        });
        let rows = all.join(", ");
        format!("{meant}`schedlab identify` finds the row that decides as a kernel does; modelled versions: {rows}")
    }
}

/// Series without a row, and the row that decides all of a recorded kernel of theirs (docs/models/replay.md).
const SHARED: [(&str, &str); 1] = [("5.14", "5.13")];

impl Version {
    /// Every modelled version, oldest first.
    #[must_use]
    pub fn all() -> &'static [Version] {
        VERSIONS
    }

    /// The version called `name`: by its canonical name, by its whole release, by its series, which means the newest
    /// modelled sublevel of the series, or by the release of a kernel such as `6.1.0-18-amd64`.
    pub fn find(name: &str) -> Result<&'static Version, VersionError> {
        let unknown = || VersionError { name: name.to_string(), nearest: nearest_versions(name) };
        let packaged = || name.contains(['-', '+']).then(|| Self::of_release(name)).flatten();
        let row = VERSIONS.iter().find(|row| row.name == name);
        row.or_else(|| Self::by_release(name)).or_else(packaged).ok_or_else(unknown)
    }

    fn by_release(name: &str) -> Option<&'static Version> {
        let wanted = Release::parse(name)?;
        let whole = name.matches('.').count() == 2;
        let fits = |row: &&Version| !row.patched && row.answers(wanted, whole);
        VERSIONS.iter().filter(fits).max_by_key(|row| row.release)
    }

    fn answers(&self, wanted: Release, whole: bool) -> bool {
        if whole {
            self.release == wanted
        } else {
            self.release.same_series(wanted)
        }
    }

    /// The other names that find this row today: a series moves on to its newest modelled sublevel.
    #[must_use]
    pub fn aliases(&self) -> Vec<String> {
        let release = self.release;
        let series = format!("{}.{}", release.major(), release.minor());
        let names = [series, release.whole()];
        let finds = |name: &String| name != self.name && Self::find(name).is_ok_and(|row| row.name == self.name);
        names.into_iter().filter(finds).collect()
    }

    /// What it does as the host or the guest of a hypervisor.
    #[must_use]
    pub fn paravirt(&self) -> Paravirt {
        Paravirt::at(self.release)
    }

    /// Folios of the page cache that a read copies between two cond_resched().
    #[must_use]
    pub fn folio_batch(&self) -> u32 {
        folio_batch_at(self.release)
    }

    /// How long a time slice extension for a critical section in user space lasts, ns; 0: it has none.
    #[must_use]
    pub fn slice_extension(&self) -> schedlab_model::Nanos {
        slice_extension_at(self.release)
    }

    /// After how many tasks `__wake_up` releases the lock of a wait queue for a moment; `None`: not before the last
    /// one.
    #[must_use]
    pub fn wait_queue_break(&self) -> Option<u32> {
        wait::wait_queue_break_at(self.release)
    }

    /// Which page faults take `mmap_lock`, and how that lock is waited for.
    #[must_use]
    pub fn mmap_lock(&self) -> MmapLockRules {
        MmapLockRules::at(self.release)
    }

    /// How its menu governor chooses idle states.
    #[must_use]
    pub fn menu(&self) -> MenuRules {
        MenuRules::at(self.release)
    }

    /// How its TEO governor chooses idle states, if that is modelled.
    #[must_use]
    pub fn teo(&self) -> Option<TeoForm> {
        teo::teo_at(self.release)
    }

    /// Tasks may request a slice (`sched_attr.sched_runtime`).
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

    /// The row of a kernel release such as `6.12.107+deb13-cloud-amd64`, if it is modelled: by the row's name behind
    /// the number (`6.3.8-eevdf-rfc`, patches on a release), by its whole number, or the row of its series that follows
    /// the most rules that the tables give for that sublevel.
    #[must_use]
    pub fn of_release(release: &str) -> Option<&'static Version> {
        let number: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let mut parts = number.split('.');
        let series = [parts.next()?, parts.next()?].join(".");
        let patched = release[number.len()..].trim_start_matches('-');
        let shared = || SHARED.iter().find(|(of, _)| *of == series).and_then(|(_, row)| Version::find(row).ok());
        let named = Version::find(patched).or_else(|_| Version::find(&number)).ok();
        named.or_else(|| Self::of_sublevel(Release::parse(&number)?)).or_else(shared)
    }

    /// Which row of a series a sublevel without a row of its own follows: that with the fewest other rules; among
    /// equals the oldest, which has the fewest changes whose first sublevel is not in the tables.
    fn of_sublevel(release: Release) -> Option<&'static Version> {
        let of_series = |row: &&Version| !row.patched && row.release.same_series(release);
        VERSIONS.iter().filter(of_series).min_by_key(|row| row.other_rules(release))
    }

    /// In how many rules of the tables it differs from a release.
    fn other_rules(&self, release: Release) -> usize {
        let rules = fair::RULES.iter().filter(|rule| !(rule.same)(&self.rules, &Rules::at(release))).count();
        rules + usize::from(self.placement != PlacementRules::at(release))
    }

    /// Whether its rules for CPUs of different capacity are modelled: those of earlier kernels were not read.
    #[must_use]
    pub fn knows_capacities(&self) -> bool {
        self.release.contains(Release::new("6.1"))
    }

    /// The feature switches as this kernel boots with them.
    #[must_use]
    pub fn feature_set(&self) -> FeatureSet {
        FeatureSet::defaults(self)
    }
}

/// The names closest to one that does not exist: by release number if it has one, else by spelling.
/// The release that a name begins with.
fn release_in(name: &str) -> Option<Release> {
    let number: String = name.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default().to_owned();
    Release::parse(&number).or_else(|| Release::parse(&format!("{number}.0")))
}

/// The rows with the same algorithm and the fewest other rules, among equals those of the nearest releases.
fn nearest_versions(name: &str) -> Vec<&'static str> {
    let Some(wanted) = release_in(name) else {
        return nearest(name, VERSIONS.iter().map(|v| v.name));
    };
    let mut rows: Vec<&Version> = VERSIONS.iter().filter(|row| !row.patched).collect();
    let algorithm = Rules::at(wanted).algorithm;
    rows.sort_by_key(|row| (row.rules.algorithm != algorithm, row.other_rules(wanted), row.release.distance(wanted)));
    rows.truncate(3);
    rows.into_iter().map(|row| row.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_found_and_the_nearest_row_is_explained() {
        for (name, row) in [("6.1.0-18-amd64", "6.1"), ("6.12.107+deb13-cloud-amd64", "6.12.107")] {
            assert_eq!(Version::find(name).unwrap().name, row, "{name}");
        }
        let hint = Version::find("6.5").unwrap_err().hint();
        assert!(hint.starts_with("did you mean \"6.3\"? It is the nearest row: both have CFS, and "), "{hint}");
        let later = VersionError { name: "99.1.0".to_owned(), nearest: vec!["7.3"] }.hint();
        assert!(
            later.starts_with("did you mean \"7.3\"? It is the nearest row: the newest one; the rules of later "),
            "{later}"
        );
    }

    #[test]
    fn names_are_found_or_answered_with_the_nearest() {
        for (name, row) in
            [("6.1", "6.1"), ("6.1.192", "6.1"), ("5.2.1", "5.2"), ("6.12.0", "6.12.0"), ("6.6.0", "6.6")]
        {
            assert_eq!(Version::find(name).unwrap().name, row);
        }
        for (wrong, nearest) in [
            ("6.12.108", "6.12.107"),
            ("6.5", "6.3"),
            ("6.4.0-rc1", "6.3"),
            ("4.19", "5.2"),
            ("v6.1", "6.1"),
            ("6.18.3", "6.18.2"),
            ("6.18.13", "6.18.12"),
        ] {
            assert_eq!(Version::find(wrong).unwrap_err().nearest[0], nearest, "{wrong}");
        }
        assert!(Version::find("").unwrap_err().hint().contains("6.12.0"));
    }

    #[test]
    fn a_sublevel_follows_the_row_that_has_its_rules() {
        for (release, row) in [
            ("6.12.5", "6.12.0"),
            ("6.12.117+deb13-cloud-amd64", "6.12.107"),
            ("6.18.3", "6.18.2"),
            ("6.18.5+deb13-cloud-amd64", "6.18.12"),
            ("6.18.15", "6.18.12"),
            ("6.18.44", "6.18.44"),
            ("6.18.50", "6.18.44"),
            ("6.19.8", "6.19.6"),
            ("7.0.9", "7.0.4"),
            ("7.0.10", "7.0"),
            ("7.1.3", "7.1"),
            ("5.14.2", "5.13"),
            ("6.8.0-31-generic", "6.8"),
        ] {
            assert_eq!(Version::of_release(release).map(|found| found.name), Some(row), "{release}");
        }
        assert!(Version::of_release("6.2.1").is_none());
    }

    /// Whatever rows are added: a series is its newest sublevel, and every alias that a row names finds it.
    #[test]
    fn a_series_is_the_newest_of_its_sublevels() {
        for row in Version::all() {
            for alias in row.aliases() {
                assert_eq!(Version::find(&alias).unwrap().name, row.name, "{alias}");
            }
            let series = format!("{}.{}", row.release.major(), row.release.minor());
            let Ok(found) = Version::find(&series) else { panic!("{series} has a row and is not found") };
            assert!(found.name == series || found.release >= row.release, "{series} is {}", found.name);
        }
        let releases: Vec<_> = Version::all().iter().map(|row| row.release).collect();
        assert!(releases.is_sorted(), "rows are listed oldest first");
        assert!(Version::all().iter().all(|row| row.aliases().is_empty() || !row.patched));
    }
}
