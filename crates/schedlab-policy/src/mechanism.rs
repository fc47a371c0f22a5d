//! What differs between two configured kernels, mechanism by mechanism, so that one can be given to the other alone.
//!
//! Features, knobs, HZ and the preemption model are switches in the kernel too. Rules are not: what two versions do
//! differently is split here into the smallest parts that make sense alone. Those that do not go together in one
//! bundle, which its name says: between CFS and EEVDF everything that only one of the two policies reads, between two
//! kinds of protection also the wakeup check that works on them.

use std::mem::discriminant;

use crate::features::Feature;
use crate::knobs::Knob;
use crate::version::catalogue::{NamedRule, Of, PLACEMENT, RULES};
use crate::version::rules::Rules;
use crate::KernelConfig;

/// One difference of two configured kernels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mechanism {
    /// What it is called: the kernel's name of a feature or knob, `hz`, `preempt`, or that of a rule.
    pub name: &'static str,
    /// `feature`, `knob`, `rule` or `setting`.
    pub kind: &'static str,
    /// Of a rule, the kernel's function and the releases that changed it.
    pub place: Option<(&'static str, &'static str)>,
    /// What the first kernel has.
    pub a: String,
    /// What the second has.
    pub b: String,
    /// The bundle it belongs to, if only one of the two kernels has it: it can be flipped there alone, but nowhere else.
    pub within: Option<&'static str>,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Feature(Feature),
    Knob(Knob),
    Hz,
    Preempt,
    Rule(usize),
    /// The rules of a bundle.
    Bundle,
    Placement(usize),
}

/// Between CFS and EEVDF: everything that one of them alone has.
const POLICY: &str = "policy: pick, placement, slices, preemption";
/// Between two kinds of protection.
const PROTECTION: &str = "protection and wakeup preemption";

impl KernelConfig {
    /// What `other` does differently.
    #[must_use]
    pub fn differences(&self, other: &KernelConfig) -> Vec<Mechanism> {
        let mut found = Vec::new();
        let mut add = |name, kind, a: String, b: String, what| {
            if a != b {
                found.push(Mechanism { name, kind, place: None, a, b, within: None, what });
            }
        };
        let words = |on: bool| if on { "on".to_owned() } else { "off".to_owned() };
        for info in Feature::all().iter().filter(|info| info.is_modelled()) {
            let [a, b] = [self, other].map(|config| words(config.has(info.feature)));
            add(info.name, "feature", a, b, What::Feature(info.feature));
        }
        for info in Knob::all() {
            let [a, b] = [self, other].map(|config| config.knobs.get(info.knob).to_string());
            add(info.name, "knob", a, b, What::Knob(info.knob));
        }
        add("hz", "setting", self.hz.to_string(), other.hz.to_string(), What::Hz);
        let [a, b] = [self, other].map(|config| {
            let lazy = if config.rules.lazy { ", fair wishes may be lazy" } else { "" };
            format!("{}{lazy}", config.preempt)
        });
        add("preempt", "setting", a, b, What::Preempt);
        self.differing_rules(other, &mut found);
        if self.rules.policy != other.rules.policy {
            found.iter_mut().for_each(|difference| difference.within = self.within_policy(other, difference.what));
        }
        found
    }

    /// A feature or knob that one of the two policies does not have.
    fn within_policy(&self, other: &KernelConfig, what: What) -> Option<&'static str> {
        let both = [self.version.series, other.version.series];
        let shared = match what {
            What::Feature(feature) => both.iter().all(|series| feature.info().default_in(*series).is_some()),
            What::Knob(knob) => Knob::all().iter().any(|i| i.knob == knob && both.iter().all(|s| i.exists_in(*s))),
            _ => true,
        };
        (!shared).then_some(POLICY)
    }

    /// This kernel with some of the differences taken from `other`; `names` as [`KernelConfig::differences`] has them.
    #[must_use]
    pub fn with(&self, other: &KernelConfig, names: &[&str]) -> KernelConfig {
        let mut config = self.clone();
        let taken = |difference: &&Mechanism| {
            names.contains(&difference.name) || difference.within.is_some_and(|bundle| names.contains(&bundle))
        };
        for difference in self.differences(other).iter().filter(taken) {
            config.take(other, self, difference.what);
        }
        config
    }

    fn differing_rules(&self, other: &KernelConfig, found: &mut Vec<Mechanism>) {
        let (a, b) = (&self.rules, &other.rules);
        let bundle = bundle(a, b);
        let mut add = |name, place, a, b, what| {
            found.push(Mechanism { name, kind: "rule", place, a, b, within: None, what });
        };
        for (index, rule) in RULES.iter().enumerate() {
            let shown = ((rule.show)(a), (rule.show)(b));
            if shown.0 != shown.1 && !bundle.is_some_and(|(_, holds)| holds(rule)) {
                add(rule.name, Some((rule.function, rule.since)), shown.0, shown.1, What::Rule(index));
            }
        }
        if let Some((name, _)) = bundle {
            let show = |rules: &Rules| format!("{:?}, {:?}, {:?}", rules.policy, rules.protection, rules.wakeup);
            add(name, None, show(a), show(b), What::Bundle);
        }
        for (index, rule) in PLACEMENT.iter().enumerate() {
            let shown = ((rule.show)(&self.placement), (rule.show)(&other.placement));
            if shown.0 != shown.1 {
                add(rule.name, Some((rule.function, rule.since)), shown.0, shown.1, What::Placement(index));
            }
        }
    }

    fn take(&mut self, other: &KernelConfig, base: &KernelConfig, what: What) {
        match what {
            What::Feature(feature) => self.features.put(feature, other.has(feature)),
            What::Knob(knob) => {
                self.knobs.put(knob, other.knobs.get(knob));
                self.take_normalized(other, knob);
                if knob == Knob::Latency {
                    self.knobs.nr_latency = other.knobs.nr_latency;
                }
            }
            What::Hz => self.hz = other.hz,
            What::Preempt => {
                self.preempt = other.preempt;
                self.rules.lazy = other.rules.lazy;
            }
            What::Rule(index) => (RULES[index].take)(&mut self.rules, &other.rules),
            What::Bundle => self.rules = bundled(&self.rules, &other.rules, bundle(&base.rules, &other.rules)),
            What::Placement(index) => (PLACEMENT[index].take)(&mut self.placement, &other.placement),
        }
    }
}

/// Whether a rule, by name, belongs to the bundle.
type Holds = fn(&NamedRule<Rules>) -> bool;

/// The rules that cannot be taken one by one between these two, if any.
fn bundle(a: &Rules, b: &Rules) -> Option<(&'static str, Holds)> {
    if a.policy != b.policy {
        return Some((POLICY, |rule| rule.of != Of::Both));
    }
    if discriminant(&a.protection) != discriminant(&b.protection) {
        return Some((PROTECTION, |rule| {
            let of_protection = ["protection: renewal", "wakeup preemption", "idle entities: protection"];
            // Only a tree that knows its slices can bound protection and lag by them.
            of_protection.contains(&rule.name) || rule.name == "lag: limit" || rule.name == "slice end reschedules"
        }));
    }
    None
}

/// The rules of `b`, but what can be taken alone, and laziness, as they are.
fn bundled(now: &Rules, b: &Rules, bundle: Option<(&'static str, Holds)>) -> Rules {
    let mut rules = *b;
    rules.lazy = now.lazy;
    for rule in RULES.iter().filter(|rule| !bundle.is_some_and(|(_, holds)| holds(rule))) {
        (rule.take)(&mut rules, now);
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    fn config(name: &str) -> KernelConfig {
        KernelConfig::new(Version::find(name).unwrap(), 4, 250)
    }

    #[test]
    fn everything_that_differs_makes_one_kernel_the_other() {
        for a in Version::all() {
            for b in Version::all() {
                let (a, b) = (config(a.name), config(b.name));
                let all = a.differences(&b);
                let names: Vec<&str> = all.iter().map(|difference| difference.name).collect();
                let made = a.with(&b, &names);
                let pair = (a.version.name, b.version.name);
                // Every field belongs to a named rule, a bundle or a setting.
                assert_eq!((made.rules, made.placement), (b.rules, b.placement), "{pair:?}");
                assert_eq!((made.knobs, made.hz, made.preempt), (b.knobs, b.hz, b.preempt), "{pair:?}");
                assert_eq!(made.differences(&b), Vec::new(), "{pair:?}");
                assert!(a.with(&b, &[]).differences(&a).is_empty());
                let mut unique = names.clone();
                unique.sort_unstable();
                unique.dedup();
                assert_eq!(unique.len(), names.len(), "{pair:?}: {names:?}");
            }
        }
    }

    #[test]
    fn one_difference_alone_is_the_only_one() {
        for (a, b) in [("6.12.0", "6.12.107"), ("6.1", "6.12"), ("6.12", "7.2"), ("eevdf-rfc", "6.6"), ("5.2", "6.3")] {
            let (a, b) = (config(a), config(b));
            for difference in a.differences(&b) {
                let one = a.differences(&a.with(&b, &[difference.name]));
                let bundled = |name: &str| difference.name == name || difference.name == POLICY;
                let names: Vec<&str> = one.iter().map(|found| found.name).collect();
                assert!(names.contains(&difference.name), "{}: {names:?}", difference.name);
                assert!(one.iter().all(|found| bundled(found.within.unwrap_or(found.name))), "{names:?}");
                assert!(names.len() == 1 || difference.name == POLICY, "{}: {names:?}", difference.name);
            }
        }
    }
}
