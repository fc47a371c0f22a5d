//! Every rule as a row follows it, for `list kernels` and for ablations.

use super::choices::Algorithm;
use super::fair::RULES;
use super::placement::PLACEMENT;
use super::Version;
use crate::history::release::{since, When};
use crate::history::table::{ReadBy, Rule};
use crate::pelt::signals::SIGNALS;

/// A rule as a row follows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleView {
    /// What it is called.
    pub name: &'static str,
    /// What it decides.
    pub effect: &'static str,
    /// The kernel's function.
    pub function: &'static str,
    /// The changes over the releases.
    pub history: &'static [When],
    /// What the row does; `None`: its algorithm does not read the rule.
    pub value: Option<String>,
}

impl RuleView {
    /// The releases that changed it, with their commits.
    #[must_use]
    pub fn since(&self) -> String {
        since(self.history)
    }
}

impl Version {
    /// Every rule as this row follows it.
    #[must_use]
    pub fn named_rules(&self) -> Vec<RuleView> {
        let reads = |read_by: ReadBy| match read_by {
            ReadBy::Both => true,
            ReadBy::Cfs => self.rules.algorithm == Algorithm::Cfs,
            ReadBy::Eevdf => self.rules.algorithm == Algorithm::Eevdf,
        };
        let mut all: Vec<RuleView> =
            RULES.iter().map(|rule| view(rule, &self.rules, reads(rule.scope.read_by))).collect();
        all.extend(SIGNALS.iter().map(|rule| view(rule, &self.rules.pelt, reads(rule.scope.read_by))));
        all.extend(PLACEMENT.iter().map(|rule| view(rule, &self.placement, reads(rule.scope.read_by))));
        all
    }
}

fn view<R>(rule: &Rule<R>, rules: &R, reads: bool) -> RuleView {
    let Rule { name, effect, function, history, show, .. } = *rule;
    RuleView { name, effect, function, history, value: reads.then(|| show(rules)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::release::{value_at, Change, Origin, Release};
    use crate::{Feature, Knob};

    #[test]
    fn rows_that_differ_have_a_rule_that_shows_it() {
        for pair in Version::all().windows(2) {
            let [a, b] = [0, 1].map(|i| pair[i].named_rules());
            let names: Vec<_> = a.iter().zip(&b).filter(|(a, b)| a.value != b.value).map(|(a, _)| a.name).collect();
            let (rules, placement) = (pair[0].rules == pair[1].rules, pair[0].placement == pair[1].placement);
            assert_eq!(names.is_empty(), rules && placement, "{} {}: {names:?}", pair[0].name, pair[1].name);
        }
        let value = |version: &str, name: &str| {
            let rules = Version::find(version).unwrap().named_rules();
            rules.into_iter().find(|rule| rule.name == name).unwrap().value
        };
        assert_eq!(value("6.1", "average: rounding"), None);
        assert_eq!(value("6.6", "average: rounding").as_deref(), Some("no"));
        assert_eq!(value("6.18.44", "placement: relative deadline").as_deref(), Some("yes"));
        assert_eq!(value("7.2", "tick: slice cap"), None);
    }

    #[test]
    fn names_are_unique_and_every_rule_says_what_it_decides() {
        let rules = Version::all()[0].named_rules();
        let mut names: Vec<_> = rules.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rules.len());
        assert!(rules.iter().all(|rule| rule.effect.ends_with('.') && !rule.function.is_empty()));
    }

    /// Every change of a rule, feature or knob names its commit, or why there is none.
    #[test]
    fn every_change_has_its_commit_or_a_reason() {
        let rules = Version::all()[0].named_rules();
        let rules = rules.iter().flat_map(|rule| rule.history.iter().map(|when| (rule.name, *when)));
        let features = Feature::all().iter().flat_map(|info| info.history().map(|when| (info.name, when)));
        let knobs = Knob::all().iter().flat_map(|info| info.history().map(|when| (info.name, when)));
        let (mut all, mut verified) = (0, 0);
        for (name, when) in rules.chain(features).chain(knobs) {
            all += 1;
            match when.origin {
                Origin::Commit(commit) => {
                    let hex = commit.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                    assert!(commit.len() == 12 && hex, "{name}: {commit} is no abbreviated commit");
                    verified += 1;
                }
                Origin::Unverified(why) => assert!(why.contains(' '), "{name}: say why there is no commit"),
            }
        }
        assert!(all > 100 && verified * 10 > all * 9, "{verified} of {all}");
    }

    /// A rule that never changed differs in a row only: nothing else would make it a rule.
    #[test]
    fn rules_without_a_change_differ_in_a_row() {
        for (index, rule) in Version::all()[0].named_rules().iter().enumerate().filter(|(_, r)| r.history.is_empty()) {
            let values: Vec<_> =
                Version::all().iter().filter_map(|row| row.named_rules()[index].value.clone()).collect();
            assert!(values.iter().any(|value| *value != values[0]), "{}", rule.name);
        }
    }

    /// Mainline's changes are listed in their order, backports after them, those of a series in its order, so that the
    /// last one contained decides.
    #[test]
    fn changes_are_listed_in_order() {
        let mut histories: Vec<(&str, Vec<When>)> =
            Version::all()[0].named_rules().iter().map(|rule| (rule.name, rule.history.to_vec())).collect();
        histories.extend(Feature::all().iter().map(|info| (info.name, info.history().collect())));
        histories.extend(Knob::all().iter().map(|info| (info.name, info.history().collect())));
        for (name, history) in histories {
            let is_mainline = |when: &&When| when.first && when.release.is_mainline();
            let mainline: Vec<Release> = history.iter().filter(is_mainline).map(|when| when.release).collect();
            assert!(mainline.is_sorted(), "{name}");
            let backports: Vec<Release> = history[mainline.len()..].iter().map(|when| when.release).collect();
            assert!(history[..mainline.len()].iter().all(|when| is_mainline(&when)), "{name}: backports come last");
            let in_order = |pair: &[Release]| !pair[0].same_series(pair[1]) || pair[0] < pair[1];
            assert!(backports.windows(2).all(in_order), "{name}: {backports:?}");
        }
        assert_eq!(value_at(1, &[] as &[Change<u8>], Release::new("7.2")), 1);
    }
}
