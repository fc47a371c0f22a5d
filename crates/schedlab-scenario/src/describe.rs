//! A scenario as JSON, for display and storage. The keys are an interface: keys may be added, but existing keys do not
//! change.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_model::{CpuMask, CpuPlace, Nanos, Topology};
use schedlab_policy::Feature;
use schedlab_spec::Machine;
use serde_json::{json, Value as Json};

use crate::grouping::{places, Grouping};
use crate::metric::Metric;
use crate::scenario::{Scenario, Variant};

impl Scenario {
    /// The whole scenario as JSON. The steps of its own programs are only in `text`.
    #[must_use]
    pub fn describe(&self) -> Json {
        let mut shown = json!({
            "name": self.name,
            "summary": self.summary,
            "file": self.file,
            "machine": {
                "name": self.machine.name,
                "summary": self.machine.summary,
                "cpus": self.machine.topology.nr_cpus(),
                "calibrated": self.machine.calibrated,
                "sources": self.machine.sources,
                "topology": topology(&self.machine.topology),
                "hz": self.machine.hz,
                "costs": costs(&self.machine),
                "ranges": self.machine.ranges,
            },
            "duration_ns": self.duration,
            "warmup_ns": self.warmup,
            "noise": self.noise,
            "seeds": self.seeds,
            "arm": "sim",
            "arms": self.arm,
            "check_groups": self.check_groups,
            "other_grouping": self.other_grouping.map(Grouping::name),
            "variants": self.variants().iter().map(variant).collect::<Vec<_>>(),
            "metrics": self.metrics().iter().map(metric).collect::<Vec<_>>(),
            "workloads": self.workloads(),
            "cgroups": self.cgroups,
            "guests": self.guests(),
            "text": self.text,
        });
        if let (Json::Object(shown), false) = (&mut shown, self.overrides.is_empty()) {
            shown.insert("overrides".into(), self.overrides.clone().into());
        }
        let inactive = self.inactive();
        if let (Json::Object(shown), false) = (&mut shown, inactive.is_empty()) {
            shown.insert("inactive".into(), inactive.into());
        }
        shown
    }

    fn guests(&self) -> Vec<&str> {
        let first = self.variants().first();
        first.map_or_else(Vec::new, |first| first.guests.iter().map(|guest| guest.name.as_str()).collect())
    }

    fn workloads(&self) -> Vec<Json> {
        let Some(first) = self.variants().first() else { return Vec::new() };
        let tasks = |workload: &schedlab_workload::Workload| -> u64 {
            workload.tasks.iter().map(|task| u64::from(task.count)).sum()
        };
        let describe = |((workload, uses), written): ((&schedlab_workload::Workload, &String), &Json)| {
            let mut shown = json!({ "name": workload.name, "use": uses, "tasks": tasks(workload) });
            if let (Json::Object(shown), Json::Object(written)) = (&mut shown, written) {
                shown.extend(written.clone());
            }
            shown
        };
        first.workloads.iter().zip(&self.uses).zip(&self.written).map(describe).collect()
    }
}

fn variant(variant: &Variant) -> Json {
    json!({
        "name": variant.name,
        "kernel": variant.kernel.version.name,
        "summary": variant.kernel.version.summary,
        "release": variant.kernel.version.release.to_string(),
        "in_debian": variant.kernel.version.in_debian,
        "changes": variant.changes,
        "boot": boot(variant),
        "settings": variant.settings,
        "not_simulated": variant.not_simulated.as_deref().map(|error| json!({
            "message": error.message, "hint": error.hint, "line": error.line, "column": error.column, "key": error.key,
        })),
    })
}

/// What the kernel of a variant is configured to, and how its tasks are grouped.
fn boot(variant: &Variant) -> Json {
    let kernel = &variant.kernel;
    let switched = Feature::all().iter().filter_map(|info| {
        let default = info.default_in(kernel.version)?;
        let on = kernel.has(info.feature);
        (on != default).then(|| (info.name.to_owned(), Json::from(on)))
    });
    let places: Vec<Option<&str>> = variant.workloads.iter().flat_map(places).collect();
    let groups: BTreeSet<&str> = places.iter().flatten().copied().collect();
    let (config, source) = match &variant.config {
        Some((config, source)) => (Some(config), Some(source)),
        None => (None, None),
    };
    json!({
        "kernel": variant.named,
        "config": config,
        "config_source": source,
        "hz": kernel.hz(),
        "preempt": kernel.preempt.name(),
        "preempt_default": kernel.version.preempt_default.name(),
        "autogroup": variant.autogroup,
        "groups": groups,
        "ungrouped": places.contains(&None),
        "features": switched.collect::<serde_json::Map<_, _>>(),
    })
}

/// The CPU lists of cores, last-level caches, sockets and nodes, of clusters where there are any, and of equal capacity
/// where it differs.
fn topology(topology: &Topology) -> Json {
    let groups = |of: fn(CpuPlace) -> u32| -> Vec<String> {
        let mut groups: BTreeMap<u32, CpuMask> = BTreeMap::new();
        for cpu in topology.all().iter() {
            groups.entry(of(topology.place(cpu))).or_default().set(cpu);
        }
        groups.values().map(CpuMask::to_list).collect()
    };
    let mut shown = json!({
        "cores": groups(|place| place.core),
        "llcs": groups(|place| place.llc),
        "sockets": groups(|place| place.socket),
        "nodes": groups(|place| place.node),
    });
    if topology.has_clusters() {
        shown["clusters"] = groups(|place| place.cluster).into();
    }
    if let Some(capacities) = topology.capacities() {
        let mut groups: BTreeMap<u32, CpuMask> = BTreeMap::new();
        topology.all().iter().for_each(|cpu| groups.entry(capacities.of(cpu)).or_default().set(cpu));
        shown["capacities"] = groups.values().map(CpuMask::to_list).collect();
    }
    shown
}

/// The median of every cost in ns, by distance where it depends on the distance, and the exit latency of every idle
/// state.
fn costs(machine: &Machine) -> Json {
    let mut costs = machine.costs.clone();
    let mut shown = serde_json::Map::new();
    for (name, of) in costs.each_mut() {
        let medians: Vec<Nanos> = of.iter().map(|cost| cost.typical()).collect();
        shown.insert(name.into(), if let [one] = medians[..] { one.into() } else { medians.into() });
    }
    for state in &machine.idle_states {
        shown.insert(format!("idle.{}", state.name), state.exit.typical().into());
    }
    shown.into()
}

fn metric(metric: &Metric) -> Json {
    json!({
        "name": metric.name,
        "of": metric.of,
        "stat": metric.stat,
        "unit": metric.unit.name(),
        "better": metric.better.name(),
        "margin_pct": metric.margin_pct,
        "help": metric.help,
        "declared": metric.declared,
    })
}
