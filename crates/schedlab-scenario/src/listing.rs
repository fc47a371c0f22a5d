//! Lists of machines, kernels, features, knobs, metrics, workloads and studies: one JSON object each, with id and
//! summary.

use schedlab_metrics::{sched_metrics, SchedMetric};
use schedlab_policy::{Feature, FeatureInfo, KernelConfig, Knob, KnobInfo, KnobUnit, RuleView, Version};
use schedlab_workload::catalogue::{self, Entry, OptionKind};
use serde_json::{json, Map, Value as Json};

use crate::changes::differences;
use crate::distribution;
use crate::error::{Result, ScenarioError};
use crate::machine::{preset, preset_ids, HOST};
use crate::option_default::option_default;
use crate::study;
use crate::units::show_duration;
use schedlab_model::suggest;

const KINDS: [&str; 8] =
    ["machines", "kernels", "distributions", "features", "workloads", "knobs", "metrics", "studies"];

/// The list of a kind as a JSON array. `kernel` restricts features and knobs to those of one version.
pub fn listing(kind: &str, kernel: Option<&str>) -> Result<Json> {
    let wrong = |key: &str, message: String| ScenarioError::new("command line", key, message);
    let version = match kernel {
        Some(name) => Some(distribution::named(name, |message| wrong("kernel", message))?.version),
        None => None,
    };
    let versions: Vec<&'static Version> =
        version.map_or_else(|| Version::all().iter().collect(), |version| vec![version]);
    Ok(match kind {
        "machines" => machines()?,
        "kernels" => versions.iter().map(|version| self::kernel(version)).collect::<Vec<_>>().into(),
        "distributions" => distribution::listing()?,
        "features" => Feature::all().iter().filter_map(|info| feature(info, &versions)).collect(),
        "knobs" => Knob::all().iter().filter_map(|info| knob(info, &versions)).collect(),
        "studies" => study::listing()?,
        "workloads" => catalogue::all().iter().map(|entry| workload(entry)).collect(),
        "metrics" => sched_metrics().iter().map(metric).collect(),
        other => {
            let error = wrong("list", format!("there is no list of {}", crate::error::quote(other)));
            return Err(error.hint(suggest(other, KINDS)));
        }
    })
}

/// A metric of the scheduler. The metrics of a workload are listed with the workload.
fn metric(metric: &SchedMetric) -> Json {
    json!({
        "id": metric.name,
        "summary": metric.help,
        "unit": metric.unit.name(),
        "better": metric.better.name(),
        "sampled": !metric.stats.is_empty(),
        "default_stats": metric.stats,
    })
}

fn machines() -> Result<Json> {
    let mut list = Vec::new();
    for id in preset_ids() {
        if let Some(machine) = preset(id) {
            let machine = machine?;
            let (cpus, calibrated) = (machine.topology.nr_cpus(), machine.calibrated);
            list.push(json!({
                "id": id,
                "summary": machine.summary,
                "cpus": cpus,
                "calibrated": calibrated,
                "sources": machine.sources,
            }));
        }
    }
    let summary = "the topology of this machine with generic costs of a virtual machine; not calibrated";
    let sources = preset(HOST).and_then(Result::ok).map(|machine| machine.sources);
    list.push(json!({ "id": HOST, "summary": summary, "cpus": null, "calibrated": false, "sources": sources }));
    Ok(list.into())
}

fn kernel(version: &'static Version) -> Json {
    let models: Vec<&str> = version.preempt_models.iter().map(|model| model.name()).collect();
    json!({
        "id": version.name,
        "summary": version.summary,
        "release": version.release.to_string(),
        "aliases": version.aliases(),
        "in_debian": version.in_debian,
        "preempt": models,
        "preempt_default": version.preempt_default.name(),
        "rules": version.named_rules().iter().map(rule).collect::<Vec<_>>(),
        "before": differs(version),
    })
}

fn rule(rule: &RuleView) -> Json {
    let (name, function, effect, since) = (rule.name, rule.function, rule.effect, rule.since());
    json!({ "name": name, "function": function, "effect": effect, "since": since, "value": rule.value })
}

/// The differences from the previous row, each with both values; null for the first row.
fn differs(version: &'static Version) -> Json {
    let before = Version::all().windows(2).find(|pair| pair[1].name == version.name).map(|pair| &pair[0]);
    before.map_or(Json::Null, |before| json!({ "id": before.name, "differences": differences(before, version) }))
}

/// A feature with its defaults by version and the versions that refuse to change it; `None` if no version has it.
fn feature(info: &FeatureInfo, versions: &[&Version]) -> Option<Json> {
    let having: Vec<&&Version> = versions.iter().filter(|v| info.default_in(v).is_some()).collect();
    let defaults: Map<String, Json> = having.iter().map(|v| (v.name.to_owned(), info.default_in(v).into())).collect();
    let refused = refused(&having, |version| info.left_out_in(version));
    (!having.is_empty()).then(|| {
        json!({
            "id": info.name,
            "summary": info.effect,
            "since": info.since(),
            "proposed": info.proposed,
            "modelled": refused.len() < having.len(),
            "refused": refused,
            "defaults": defaults,
        })
    })
}

/// A knob with its defaults by version and the versions that refuse to change it; `None` if no version has it.
fn knob(info: &KnobInfo, versions: &[&Version]) -> Option<Json> {
    let having: Vec<&&Version> = versions.iter().filter(|v| info.exists_in(v)).collect();
    let show = |value: u64| match info.unit {
        KnobUnit::Nanos => show_duration(value).into(),
        KnobUnit::Number => Json::from(value),
    };
    let newest = having.last().and_then(|version| info.default_in(version))?;
    let of = |version: &str| {
        let version = Version::find(version).ok()?;
        Some(show(KernelConfig::new(version, 1, 250).knobs.get(info.knob)))
    };
    let defaults: Map<String, Json> = having.iter().filter_map(|v| Some((v.name.to_owned(), of(v.name)?))).collect();
    let refused = refused(&having, |version| info.left_out_in(version));
    let kernels: Vec<&str> = having.iter().map(|version| version.name).collect();
    Some(json!({
        "id": info.name,
        "summary": info.effect,
        "since": info.since(),
        "path": info.path,
        "default": show(newest),
        "defaults": defaults,
        "scaled": info.scaled,
        "kernels": kernels,
        "modelled": refused.len() < having.len(),
        "refused": refused,
    }))
}

/// The kernels in which a setting has no effect, oldest first, with the reason.
fn refused(having: &[&&Version], why: impl Fn(&Version) -> Option<&'static str>) -> Vec<Json> {
    let refused = |version: &&&Version| Some(json!({ "kernel": version.name, "why": why(version)? }));
    having.iter().filter_map(refused).collect()
}

fn workload(entry: &Entry) -> Json {
    let option = |option: &catalogue::OptionSpec| {
        json!({
            "name": option.name,
            "short": option.short,
            "help": option.help,
            "expected": option.expected(),
            "default": option_default(option.default),
            "modelled": !matches!(option.kind, OptionKind::NotModelled(_)),
        })
    };
    let metric = |metric: &catalogue::MetricSpec| {
        let (unit, better) = (metric.unit.name(), metric.better.name());
        json!({
            "name": metric.name, "unit": unit, "better": better, "help": metric.help, "stats": metric.stats,
            "queueing": metric.queueing,
        })
    };
    let parameter = |parameter: &catalogue::Parameter| json!({ "name": parameter.name, "value": parameter.value.to_string(), "source": parameter.source });
    json!({
        "id": entry.id,
        "summary": entry.summary,
        "structure": entry.about.structure,
        "parameters": entry.about.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "simplified": entry.about.simplified,
        "options": entry.options.iter().map(option).collect::<Vec<_>>(),
        "metrics": entry.metrics.iter().map(metric).collect::<Vec<_>>(),
    })
}
