//! What changed between two kernels: rules, features and knobs, each with both values and the commits behind it.

use schedlab_policy::{Feature, KernelConfig, Knob, KnobUnit, Origin, Version, When};
use serde_json::{json, Value as Json};

use crate::distribution::{self, Named};
use crate::error::{Result, ScenarioError};
use crate::units::show_duration;

/// What changed from kernel `a` to kernel `b`, which need not be the newer one.
///
/// # Errors
/// No such kernel.
pub fn changes(a: &str, b: &str) -> Result<Json> {
    let (a, b) = (kernel(a)?, kernel(b)?);
    let shown = |named: Named| {
        let config = named.distribution.map(|config| config.id);
        json!({ "id": named.version.name, "summary": named.version.summary, "config": config })
    };
    let (settings, differences) = (settings(a, b), differences(a.version, b.version));
    Ok(json!({ "a": shown(a), "b": shown(b), "settings": settings, "differences": differences }))
}

fn kernel(name: &str) -> Result<Named> {
    distribution::named(name, |message| ScenarioError::new("command line", "kernel", message))
}

/// What the configurations of two kernels differ in, if one of them is that of a distribution. They are no changes of
/// the kernel.
fn settings(a: Named, b: Named) -> Vec<Json> {
    if a.distribution.is_none() && b.distribution.is_none() {
        return Vec::new();
    }
    let values = |named: Named| {
        let config = named.distribution;
        let preempt = config.map_or(named.version.preempt_default, |config| config.preempt);
        let hz = config.map_or(KCONFIG_HZ, |config| config.hz);
        let autogroup = if config.is_some_and(|config| config.autogroup) { "on" } else { "off" };
        [("preempt", preempt.name().to_owned()), ("hz", hz.to_string()), ("autogroup", autogroup.to_owned())]
    };
    let pairs = values(a).into_iter().zip(values(b)).filter(|(was, is)| was != is);
    pairs.map(|((name, was), (_, is))| json!({ "name": name, "was": was, "is": is })).collect()
}

/// The default of CONFIG_HZ.
const KCONFIG_HZ: u32 = 250;

/// Every rule, feature and knob that differs, in the order of the tables.
pub(crate) fn differences(a: &'static Version, b: &'static Version) -> Vec<Json> {
    rules(a, b).chain(features(a, b)).chain(knobs(a, b)).collect()
}

fn rules<'a>(a: &'a Version, b: &'a Version) -> impl Iterator<Item = Json> + 'a {
    let pairs = a.named_rules().into_iter().zip(b.named_rules());
    pairs.filter(|(old, new)| old.value != new.value).map(move |(old, new)| {
        json!({
            "kind": "rule", "name": new.name, "function": new.function, "effect": new.effect, "since": new.since(),
            "changes": between(new.history.iter().copied(), a, b), "was": old.value, "is": new.value,
        })
    })
}

fn features<'a>(a: &'a Version, b: &'a Version) -> impl Iterator<Item = Json> + 'a {
    Feature::all().iter().filter(move |info| info.default_in(a) != info.default_in(b)).map(move |info| {
        let [was, is] = [a, b].map(|version| info.default_in(version).map(|on| if on { "on" } else { "off" }));
        json!({
            "kind": "feature", "name": info.name, "effect": info.effect,
            "changes": between(info.history(), a, b), "was": was, "is": is,
        })
    })
}

fn knobs<'a>(a: &'static Version, b: &'static Version) -> impl Iterator<Item = Json> + 'a {
    let configs = [a, b].map(|version| [1, 8].map(|cpus| KernelConfig::new(version, cpus, 250)));
    Knob::all().iter().filter_map(move |info| {
        let shown = |config: &KernelConfig| match info.unit {
            KnobUnit::Nanos => show_duration(config.knobs.get(info.knob)),
            KnobUnit::Number => config.knobs.get(info.knob).to_string(),
        };
        let value = |[one, eight]: &[KernelConfig; 2]| {
            info.exists_in(one.version).then(|| match info.scaled {
                true => format!("{} on one CPU, {} on eight or more", shown(one), shown(eight)),
                false => shown(one),
            })
        };
        let [was, is] = [value(&configs[0]), value(&configs[1])];
        (was != is).then(|| {
            json!({
                "kind": "knob", "name": info.name, "effect": info.effect,
                "changes": between(info.history(), a, b), "was": was, "is": is,
            })
        })
    })
}

/// The changes that one of the two kernels has and the other has not. What a row sets by itself has none.
fn between(history: impl Iterator<Item = When>, a: &Version, b: &Version) -> Vec<Json> {
    let change = |when: When| {
        let commit = match when.origin {
            Origin::Commit(commit) => Some(commit),
            Origin::Unverified(_) => None,
        };
        json!({ "release": when.release.to_string(), "first": when.first, "commit": commit })
    };
    history.filter(|when| when.lies_between(a.release, b.release)).map(change).collect()
}
