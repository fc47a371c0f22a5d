//! What changed between two kernels: rules, features and knobs, each with both values and the commits behind it.

use schedlab_policy::{Feature, KernelConfig, Knob, KnobUnit, Origin, Version, When};
use serde_json::{json, Value as Json};

use crate::error::{Result, ScenarioError};
use crate::units::show_duration;

/// What changed from kernel `a` to kernel `b`, which need not be the newer one.
///
/// # Errors
/// No such kernel.
pub fn changes(a: &str, b: &str) -> Result<Json> {
    let (a, b) = (version(a)?, version(b)?);
    let kernel = |version: &Version| json!({ "id": version.name, "summary": version.summary });
    Ok(json!({ "a": kernel(a), "b": kernel(b), "differences": differences(a, b) }))
}

fn version(name: &str) -> Result<&'static Version> {
    let wrong = |message: String| ScenarioError::new("command line", "kernel", message);
    Version::find(name).map_err(|error| wrong(error.to_string()).hint(error.hint()))
}

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
