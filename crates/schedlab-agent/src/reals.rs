//! What the real programs of a run said, as application events and, where they print no samples, as finished numbers.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use schedlab_metrics::Plan;
use schedlab_model::{CpuId, Nanos};
use schedlab_trace::{Event, Kind};
use serde_json::{json, Map, Value as Json};

use crate::error::{AgentError, Result};
use crate::program::{launch, parse, Found, Real};
use crate::world::World;

/// Everything that the programs said.
#[derive(Debug, Default)]
pub struct Reals {
    /// Samples and counts, in run time.
    pub events: Vec<Event>,
    /// Numbers taken over, by full name.
    stats: BTreeMap<String, f64>,
    /// Metrics of which a program prints some statistics only: their full names.
    partly: Vec<String>,
    /// Who ran each workload.
    pub drivers: Map<String, Json>,
}

/// Reads what the programs of a run wrote.
pub fn read(world: &World, plan: &Plan, warmup: Nanos, end: Nanos) -> Result<Reals> {
    let mut reals = Reals::default();
    for (w, (workload, real)) in world.workloads.iter().zip(&world.real).enumerate() {
        let Some(real) = real else {
            reals.drivers.insert(workload.name.clone(), "agent".into());
            continue;
        };
        let command = real.argv.join(" ");
        reals.drivers.insert(workload.name.clone(), format!("program {}", real.version).into());
        let failed = |what: String| AgentError::failed(format!("{command}: {what}"), "try it by hand");
        let passes = launch::passes(real).map_err(|error| failed(error.to_string()))?;
        for pass in &passes {
            let last = || last_words(&pass.output);
            if !pass.failed.is_empty() {
                return Err(failed(format!("{}{}", pass.failed, last())));
            }
            let [stdout, stderr] = &pass.output;
            let found =
                parse(real.id, stdout, stderr).map_err(|what| failed(format!("{what} in its output{}", last())))?;
            reals.take(world, plan, w, &found, (pass.end.min(end), warmup, end));
        }
        reals.unended(real, passes.is_empty(), workload.ends)?;
    }
    Ok(reals)
}

fn last_words(output: &[String; 2]) -> String {
    let lines: Vec<&str> = output.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(3);
    if lines.is_empty() {
        String::new()
    } else {
        format!("; it wrote: {}", lines[from..].join(" | "))
    }
}

impl Reals {
    fn take(&mut self, world: &World, plan: &Plan, workload: usize, found: &Found, times: (Nanos, Nanos, Nanos)) {
        let (time, warmup, end) = times;
        let name = &world.workloads[workload].name;
        let tid = task_of(world, workload);
        let base = world.metric_base[workload];
        let declared = &world.workloads[workload].metrics;
        let index = |metric: &str| declared.iter().position(|decl| decl.name == metric).map(|at| base + at as u16);
        let emit = |kind| Event::new(time, CpuId(0), kind);
        for (metric, value) in &found.samples {
            if let Some(metric) = index(metric) {
                self.events.push(emit(Kind::Sample { pid: tid, metric, value: *value }));
            }
        }
        for (metric, rate) in &found.rates {
            if let Some(metric) = index(metric) {
                // The reduction divides by the measured time, whatever part of it the program ran.
                let count = (rate * end.saturating_sub(warmup) as f64 / 1e9).round() as u64;
                let divide = plan.metrics.get(usize::from(metric)).map_or(1, |entry| entry.decl.divide.max(1));
                self.events.push(emit(Kind::Count { pid: tid, metric, count: count * divide }));
            }
        }
        for (metric, stat, value) in &found.stats {
            let full = format!("{name}.{metric}");
            self.stats.insert(format!("{full}.{stat}"), *value);
            if !self.partly.contains(&full) {
                self.partly.push(full);
            }
        }
    }

    /// A program that should have come to an end within the run did not.
    fn unended(&self, real: &Real, none: bool, ends: bool) -> Result<()> {
        if none && (real.interrupt || ends) {
            let what = format!("{} printed nothing before the run was over", real.argv.join(" "));
            return Err(AgentError::failed(what, "a longer duration, or fewer loops"));
        }
        Ok(())
    }

    /// Puts the numbers taken over into the report; statistics that a program does not print are unavailable.
    pub fn patch(&self, json: &mut Json, unavailable: &mut BTreeMap<String, String>) {
        let Some(metrics) = json["metrics"].as_object_mut() else { return };
        for (name, value) in metrics.iter_mut() {
            let of = self
                .partly
                .iter()
                .find(|full| name.strip_prefix(full.as_str()).is_some_and(|rest| rest.starts_with('.')));
            if of.is_none() {
                continue;
            }
            match self.stats.get(name) {
                Some(stat) => *value = json!(stat),
                None => {
                    unavailable.insert(name.clone(), "the program does not print it".into());
                }
            }
        }
    }
}

/// The thread that started the program of a workload.
fn task_of(world: &World, workload: usize) -> i32 {
    let made = world.control.tasks.load(Acquire) as usize;
    let slot = world.slots[..made].iter().find(|slot| slot.runs().0 == workload);
    slot.map_or(0, |slot| slot.tid.load(Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_workload::{catalogue, MetricKind};

    #[test]
    fn the_readers_name_metrics_of_the_catalogue() {
        let stress = include_str!("../tests/programs/stress-ng-0.15.06.txt");
        let cases = [
            ("hackbench", include_str!("../tests/programs/hackbench-2.40.txt"), ""),
            ("perf-messaging", include_str!("../tests/programs/perf-6.1-messaging.txt"), ""),
            ("perf-pipe", include_str!("../tests/programs/perf-6.1-pipe.txt"), ""),
            ("cyclictest", include_str!("../tests/programs/cyclictest-2.40.txt"), ""),
            ("stress-ng-cpu", "", stress),
            ("schbench", "", include_str!("../tests/programs/schbench-3d16b23.txt")),
            ("schbench-1.0", "", include_str!("../tests/programs/schbench-1.0.txt")),
            ("sysbench-cpu", include_str!("../tests/programs/sysbench-1.0.20-cpu.txt"), ""),
        ];
        for (id, stdout, stderr) in cases {
            let known = catalogue::find(id).unwrap().metrics;
            let kind = |name: &str| known.iter().find(|metric| metric.name == name).map(|metric| metric.kind);
            let found = parse(id, stdout, stderr).unwrap();
            for (name, _) in &found.samples {
                assert!(matches!(kind(name), Some(MetricKind::Headline | MetricKind::Samples)), "{id}.{name}");
            }
            for (name, stat, _) in &found.stats {
                let sampled = [Some(MetricKind::Samples), Some(MetricKind::PerSecond)];
                assert!(sampled.contains(&kind(name)), "{id}.{name}.{stat}");
            }
            for (name, _) in &found.rates {
                assert!(kind(name) == Some(MetricKind::Rate), "{id}.{name}");
            }
        }
    }
}
