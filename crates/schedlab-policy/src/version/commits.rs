//! The changes of kernel/sched between releases, and what the rows make of each.
//!
//! A list is complete for its series up to the newest row of the series. Series without a list have rows whose
//! differences were read in the source, release by release.

use crate::history::release::Release;

/// What a change means for simulated decisions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A rule, feature or knob follows it.
    Modelled,
    /// Decisions do not depend on it.
    NoEffect,
    /// Decisions may depend on it, and the rows do not follow it.
    Missing,
}

/// A change of kernel/sched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Commit {
    /// The first release with it.
    pub release: Release,
    /// Its title.
    pub title: &'static str,
    /// What the rows make of it.
    pub verdict: Verdict,
    /// The name of the rule, feature or knob; or why it has no effect; or what is missing.
    pub reason: &'static str,
}

/// The lists, by series.
const LISTS: [&str; 1] = [include_str!("commits_6.12.tsv")];

/// Every change that is listed, in the order of releases. A line that cannot be read is left out; a test finds it.
#[must_use]
pub fn commits() -> Vec<Commit> {
    LISTS.iter().flat_map(|list| list.lines().filter_map(read)).collect()
}

/// One line; `None` for comments.
fn read(line: &'static str) -> Option<Commit> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [release, title, verdict, reason] = fields[..] else { return None };
    let verdict = match verdict {
        "modelled" => Verdict::Modelled,
        "no effect" => Verdict::NoEffect,
        "missing" => Verdict::Missing,
        _ => return None,
    };
    Some(Commit { release: Release::parse(release)?, title, verdict, reason })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::Version;
    use super::*;
    use crate::history::release::When;
    use crate::{Feature, Knob};

    /// Rules, features and knobs with their histories.
    fn histories() -> BTreeMap<&'static str, Vec<When>> {
        let rules = Version::all()[0].named_rules().into_iter().map(|rule| (rule.name, rule.history.to_vec()));
        let features = Feature::all().iter().map(|info| (info.name, info.history().collect()));
        let knobs = Knob::all().iter().map(|info| (info.name, info.history().collect()));
        rules.chain(features).chain(knobs).collect()
    }

    #[test]
    fn every_line_is_read_and_stands_in_the_order_of_releases() {
        let lines = LISTS.iter().flat_map(|list| list.lines()).filter(|line| !line.starts_with('#'));
        assert_eq!(commits().len(), lines.count());
        assert!(commits().is_sorted_by_key(|commit| commit.release));
        assert!(commits().iter().all(|commit| !commit.title.is_empty() && !commit.reason.is_empty()));
    }

    /// A change that is modelled names a rule that changes in that release, and a rule that changes in a release of a
    /// listed series has its line.
    #[test]
    fn the_lists_and_the_rows_agree() {
        let (histories, commits) = (histories(), commits());
        let changes_in = |name: &str, release: Release| {
            histories.get(name).is_some_and(|history| history.iter().any(|when| when.release == release))
        };
        let modelled: BTreeSet<(&str, Release)> = commits
            .iter()
            .filter(|commit| commit.verdict == Verdict::Modelled)
            .map(|commit| (commit.reason, commit.release))
            .collect();
        for (name, release) in &modelled {
            assert!(changes_in(name, *release), "{release}: {name} does not change in this release");
        }
        let listed = |release: Release| {
            !release.is_mainline() && commits.iter().any(|commit| commit.release.same_series(release))
        };
        // The same change of the kernel may be in several tables; one of them stands for it.
        let releases: BTreeSet<Release> = modelled.iter().map(|(_, release)| *release).collect();
        for (name, history) in &histories {
            for when in history.iter().filter(|when| when.first && listed(when.release)) {
                assert!(releases.contains(&when.release), "{name} changes in {}, which no line names", when.release);
            }
        }
    }

    /// The page lists what is missing, word by word.
    #[test]
    fn the_page_lists_what_is_missing() {
        let page = include_str!("../../../../docs/models/commits.md");
        let said: Vec<&str> = page.lines().filter(|line| line.starts_with("| 6.")).collect();
        let missing: Vec<String> = commits()
            .iter()
            .filter(|commit| commit.verdict == Verdict::Missing)
            .map(|commit| format!("| {} | {} | {} |", commit.release, commit.title, commit.reason))
            .collect();
        assert_eq!(said, missing);
        for (verdict, word) in [(Verdict::Modelled, "modelled"), (Verdict::NoEffect, "without effect")] {
            let count = commits().iter().filter(|commit| commit.verdict == verdict).count();
            assert!(page.contains(&format!("{count} are {word}")), "{count} are {word}");
        }
    }
}
