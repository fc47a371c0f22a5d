//! What differs between two configured kernels, mechanism by mechanism, so that one can be given to the other alone.
//!
//! Features, knobs, HZ and the preemption model are switches in the kernel too. Rules are not: what two versions do
//! differently is split here into the smallest parts that make sense alone. Rules that do not are exchanged in a
//! bundle, which its name says: between CFS and EEVDF everything that only one of the two algorithms reads, between two
//! kinds of slice protection also the wakeup check that works on them.

use std::mem::discriminant;

use crate::features::Feature;
use crate::history::release::since;
use crate::history::table::{Exchanged, Rule, Shown};
use crate::knobs::Knob;
use crate::pelt::signals::SIGNALS;
use crate::version::fair::{Rules, RULES};
use crate::version::placement::PLACEMENT;
use crate::KernelConfig;

/// One difference of two configured kernels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mechanism {
    /// What it is called: the kernel's name of a feature or knob, `hz`, `preempt`, or that of a rule.
    pub name: &'static str,
    /// What kind of difference it is.
    pub kind: Kind,
    /// Of a rule, the kernel's function and the releases that changed it.
    pub place: Option<(&'static str, String)>,
    /// What the first kernel has.
    pub a: String,
    /// What the second has.
    pub b: String,
    /// The bundle it belongs to, if only one of the two kernels has it: it can be flipped there alone, but nowhere
    /// else.
    pub within: Option<&'static str>,
    what: What,
}

/// What kind of difference a mechanism is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A feature switch.
    Feature,
    /// A knob.
    Knob,
    /// A rule of the kernel's code.
    Rule,
    /// HZ or the preemption model.
    Setting,
}

impl Kind {
    /// As results print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Feature => "feature",
            Kind::Knob => "knob",
            Kind::Rule => "rule",
            Kind::Setting => "setting",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Feature(Feature),
    Knob(Knob),
    Hz,
    Preempt,
    Rule(usize),
    Signal(usize),
    Placement(usize),
    Bundle,
}

/// Rules that can only be exchanged together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bundle {
    /// Between CFS and EEVDF: everything that one of them alone has.
    Algorithm,
    /// Between two kinds of slice protection.
    Protection,
}

impl Bundle {
    fn between(a: &Rules, b: &Rules) -> Option<Bundle> {
        if a.algorithm != b.algorithm {
            return Some(Bundle::Algorithm);
        }
        (discriminant(&a.protection) != discriminant(&b.protection)).then_some(Bundle::Protection)
    }

    fn name(self) -> &'static str {
        match self {
            Bundle::Algorithm => "CFS or EEVDF: pick, placement, slices, preemption",
            Bundle::Protection => "protection and wakeup preemption",
        }
    }

    fn holds(self, rule: &Rule<Rules>) -> bool {
        match rule.scope.exchanged {
            Exchanged::WithAlgorithm => self == Bundle::Algorithm,
            Exchanged::WithProtection => true,
            Exchanged::Alone | Exchanged::WithPreemption => false,
        }
    }
}

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
        let modelled = |info: &&crate::FeatureInfo| {
            let rows = [self.version, other.version];
            let mut having = rows.iter().filter(|row| info.default_in(row).is_some()).peekable();
            having.peek().is_none() || having.any(|row| info.left_out_in(row).is_none())
        };
        for info in Feature::all().iter().filter(modelled) {
            let [a, b] = [self, other].map(|config| words(config.has(info.feature)));
            add(info.name, Kind::Feature, a, b, What::Feature(info.feature));
        }
        for info in Knob::all() {
            let [a, b] = [self, other].map(|config| config.knobs.get(info.knob).to_string());
            add(info.name, Kind::Knob, a, b, What::Knob(info.knob));
        }
        add("hz", Kind::Setting, self.hz().to_string(), other.hz().to_string(), What::Hz);
        let [a, b] = [self, other].map(|config| {
            let lazy = if config.rules.lazy { ", fair decisions may be lazy" } else { "" };
            format!("{}{lazy}", config.preempt)
        });
        add("preempt", Kind::Setting, a, b, What::Preempt);
        self.differing_rules(other, &mut found);
        if self.rules.algorithm != other.rules.algorithm {
            found.iter_mut().for_each(|difference| difference.within = self.within_algorithm(other, difference.what));
        }
        found
    }

    /// A feature or knob that one of the two algorithms does not have.
    fn within_algorithm(&self, other: &KernelConfig, what: What) -> Option<&'static str> {
        let both = [self.version, other.version];
        let shared = match what {
            What::Feature(feature) => both.iter().all(|version| feature.info().default_in(version).is_some()),
            What::Knob(knob) => Knob::all().iter().any(|i| i.knob == knob && both.iter().all(|v| i.exists_in(v))),
            _ => true,
        };
        (!shared).then_some(Bundle::Algorithm.name())
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
        let bundle = Bundle::between(a, b);
        let alone = |rule: &Rule<Rules>| {
            rule.scope.exchanged != Exchanged::WithPreemption && !bundle.is_some_and(|bundle| bundle.holds(rule))
        };
        differing(RULES, a, b, alone, What::Rule, found);
        differing(SIGNALS, &a.pelt, &b.pelt, |_| true, What::Signal, found);
        if let Some(bundle) = bundle {
            let show = |r: &Rules| [r.algorithm.shown(), r.protection.shown(), r.wakeup.shown()].join("; ");
            let (a, b) = (show(a), show(b));
            let (name, kind, what) = (bundle.name(), Kind::Rule, What::Bundle);
            found.push(Mechanism { name, kind, place: None, a, b, within: None, what });
        }
        differing(PLACEMENT, &self.placement, &other.placement, |_| true, What::Placement, found);
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
            What::Hz => self.set_hz(other.hz()),
            What::Preempt => {
                self.preempt = other.preempt;
                self.rules.lazy = other.rules.lazy;
            }
            What::Rule(index) => (RULES[index].take)(&mut self.rules, &other.rules),
            What::Signal(index) => (SIGNALS[index].take)(&mut self.rules.pelt, &other.rules.pelt),
            What::Placement(index) => (PLACEMENT[index].take)(&mut self.placement, &other.placement),
            What::Bundle => {
                let bundle = Bundle::between(&base.rules, &other.rules);
                let held = RULES.iter().filter(|rule| bundle.is_some_and(|bundle| bundle.holds(rule)));
                held.for_each(|rule| (rule.take)(&mut self.rules, &other.rules));
            }
        }
    }
}

/// The rules of a table that two rows follow differently, of those that `alone` admits.
fn differing<R>(
    table: &'static [Rule<R>],
    a: &R,
    b: &R,
    alone: impl Fn(&Rule<R>) -> bool,
    what: fn(usize) -> What,
    found: &mut Vec<Mechanism>,
) {
    for (index, rule) in table.iter().enumerate().filter(|(_, rule)| !(rule.same)(a, b) && alone(rule)) {
        found.push(Mechanism {
            name: rule.name,
            kind: Kind::Rule,
            place: Some((rule.function, since(rule.history))),
            a: (rule.show)(a),
            b: (rule.show)(b),
            within: None,
            what: what(index),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    const ALGORITHM: &str = "CFS or EEVDF: pick, placement, slices, preemption";

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
                assert_eq!((made.knobs, made.hz(), made.preempt), (b.knobs, b.hz(), b.preempt), "{pair:?}");
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
        for (a, b) in
            [("6.12.0", "6.12.107"), ("6.1", "6.12.107"), ("6.12.107", "7.2"), ("eevdf-rfc", "6.6"), ("5.2", "6.3")]
        {
            let (a, b) = (config(a), config(b));
            for difference in a.differences(&b) {
                let one = a.differences(&a.with(&b, &[difference.name]));
                let bundled = |name: &str| difference.name == name || difference.name == ALGORITHM;
                let names: Vec<&str> = one.iter().map(|found| found.name).collect();
                assert!(names.contains(&difference.name), "{}: {names:?}", difference.name);
                assert!(one.iter().all(|found| bundled(found.within.unwrap_or(found.name))), "{names:?}");
                assert!(names.len() == 1 || difference.name == ALGORITHM, "{}: {names:?}", difference.name);
            }
        }
    }
}
