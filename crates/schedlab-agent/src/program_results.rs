//! The results of real programs: application events and, where a program prints no samples, finished statistics.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use schedlab_metrics::Plan;
use schedlab_model::{CpuId, Nanos};
use schedlab_trace::{Event, Kind};
use schedlab_workload::Workload;
use serde_json::{json, Map, Value as Json};

use crate::error::{AgentError, Result};
use crate::launch;
use crate::program::rt_app::{self, LogResult, LogResults, LogValue, Logs};
use crate::program::{ParsedOutput, RealProgram};
use crate::shared_state::SharedState;

/// The results of all real programs of a run.
#[derive(Debug, Default)]
pub struct ProgramResults {
    /// Samples and counts, in run time.
    pub events: Vec<Event>,
    /// Statistics that were copied from the output, by full name.
    stats: BTreeMap<String, f64>,
    /// The full names of metrics of which a program prints only some statistics.
    partly: Vec<String>,
    /// The full names of metrics that the program's output does not contain, with the reason.
    absent: Vec<(String, &'static str)>,
    /// What ran each workload: the agent, or a program with its version.
    pub drivers: Map<String, Json>,
}

/// Reads the output of the real programs of a run.
pub fn read(shared: &SharedState, plan: &Plan, warmup: Nanos, end: Nanos) -> Result<ProgramResults> {
    let mut program_results = ProgramResults::default();
    for (w, (workload, real)) in shared.workloads.iter().zip(&shared.real).enumerate() {
        let Some(real) = real else {
            program_results.drivers.insert(workload.name.clone(), "agent".into());
            continue;
        };
        let command = real.argv.join(" ");
        program_results.drivers.insert(workload.name.clone(), format!("program {}", real.version).into());
        let failed = |what: String| AgentError::failed(format!("{command}: {what}"), "run it by hand to see why");
        let passes = launch::passes(real).map_err(|error| failed(error.to_string()))?;
        for pass in &passes {
            let last = || output_tail(&pass.output);
            if !pass.failed.is_empty() {
                return Err(failed(format!("{}{}", pass.failed, last())));
            }
            if let Some(logs) = &real.logs {
                program_results.take_logs(shared, w, logs, end).map_err(failed)?;
                continue;
            }
            let [stdout, stderr] = &pass.output;
            let found =
                real.results(stdout, stderr).map_err(|what| failed(format!("{what} in the output{}", last())))?;
            program_results.take(shared, plan, w, &found, &Times { pass: pass.end.min(end), warmup, end });
        }
        check_finished(real, passes.is_empty())?;
    }
    Ok(program_results)
}

fn output_tail(output: &[String; 2]) -> String {
    let lines: Vec<&str> = output.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(3);
    if lines.is_empty() {
        String::new()
    } else {
        format!("; it wrote: {}", lines[from..].join(" | "))
    }
}

/// When a pass of a program ended, when the warm-up did, and when the run did.
struct Times {
    pass: Nanos,
    warmup: Nanos,
    end: Nanos,
}

impl ProgramResults {
    fn take(&mut self, shared: &SharedState, plan: &Plan, workload: usize, found: &ParsedOutput, times: &Times) {
        let Times { pass: time, warmup, end } = *times;
        let name = &shared.workloads[workload].name;
        let tid = task_of(shared, workload);
        let base = shared.metric_base[workload];
        let declared = &shared.workloads[workload].metrics;
        let index = |metric: &str| declared.iter().position(|decl| decl.name == metric).map(|at| base + at as u16);
        let emit = |kind| Event::new(time, CpuId(0), kind);
        for (metric, value) in &found.samples {
            if let Some(metric) = index(metric) {
                self.events.push(emit(Kind::Sample { pid: tid, metric, value: *value }));
            }
        }
        for (metric, rate) in &found.rates {
            if let Some(metric) = index(metric) {
                // The metric is divided by the measured time, even if the program ran for a part of it only.
                let divide = plan.metrics.get(usize::from(metric)).map_or(1, |entry| entry.decl.divide.max(1));
                let count = (rate * end.saturating_sub(warmup) as f64 / 1e9 * divide as f64).round() as u64;
                self.events.push(emit(Kind::Count { pid: tid, metric, count }));
            }
        }
        for cpu in &found.cpu_rates {
            if let Some(metric) = index(cpu.metric) {
                let divide = plan.metrics.get(usize::from(metric)).map_or(1, |entry| entry.decl.divide.max(1));
                self.events.push(emit(Kind::Sample { pid: tid, metric, value: cpu.time }));
                self.events.push(emit(Kind::Count { pid: tid, metric, count: cpu.count.saturating_mul(divide) }));
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

    /// Takes the rows of rt-app's logs, each at the time at which its pass through a phase ended.
    fn take_logs(
        &mut self,
        shared: &SharedState,
        workload: usize,
        logs: &Logs,
        end: Nanos,
    ) -> std::result::Result<(), String> {
        let (base, tid) = (shared.metric_base[workload], task_of(shared, workload));
        let Workload { name, metrics, .. } = &shared.workloads[workload];
        let begin = shared.control.begin.load(Relaxed);
        let index = |metric: &str| metrics.iter().position(|decl| decl.name == metric).map(|at| base + at as u16);
        let LogResults { results, absent } = logs.read()?;
        for LogResult { metric, ended, value } in results {
            let (Some(metric), Some(time)) = (index(&metric), ended.checked_sub(begin).filter(|time| *time <= end))
            else {
                continue;
            };
            let kind = match value {
                LogValue::Sample(value) => Kind::Sample { pid: tid, metric, value },
                LogValue::Count => Kind::Count { pid: tid, metric, count: 1 },
            };
            self.events.push(Event::new(time, CpuId(0), kind));
        }
        self.absent.extend(absent.into_iter().map(|metric| (format!("{name}.{metric}"), rt_app::SEVERAL)));
        Ok(())
    }

    /// Inserts the copied statistics into the report; statistics that a program does not print are unavailable.
    pub fn patch(&self, json: &mut Json, unavailable: &mut BTreeMap<String, String>) {
        let Some(metrics) = json["metrics"].as_object_mut() else { return };
        for (full, why) in &self.absent {
            let of = |name: &&String| {
                name.strip_prefix(full.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            unavailable.extend(metrics.keys().filter(of).map(|name| (name.clone(), (*why).to_owned())));
        }
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

/// Fails if the program has no results, unless it is a background load that is restarted.
fn check_finished(real: &RealProgram, none: bool) -> Result<()> {
    if none && !real.repeat {
        let what = format!("{} printed no results before the end of the run", real.argv.join(" "));
        return Err(AgentError::failed(what, "use a longer duration or fewer loops"));
    }
    Ok(())
}

/// The thread that started the program of a workload.
fn task_of(shared: &SharedState, workload: usize) -> i32 {
    let made = shared.control.tasks.load(Acquire) as usize;
    let slot = shared.slots[..made].iter().find(|slot| slot.runs().0 == workload);
    slot.map_or(0, |slot| slot.tid.load(Relaxed))
}

#[cfg(test)]
mod tests {
    use crate::program::parse;
    use schedlab_workload::{catalogue, MetricKind};

    #[test]
    fn parsed_metrics_are_in_the_catalogue() {
        let stressors = include_str!("../tests/programs/stress-ng-0.15.06-stressors.txt");
        let stress = include_str!("../tests/programs/stress-ng-0.15.06.txt");
        let cases = [
            ("hackbench", include_str!("../tests/programs/hackbench-2.40.txt"), ""),
            ("perf-messaging", include_str!("../tests/programs/perf-6.1-messaging.txt"), ""),
            ("perf-pipe", include_str!("../tests/programs/perf-6.1-pipe.txt"), ""),
            ("cyclictest", include_str!("../tests/programs/cyclictest-2.40.txt"), ""),
            ("stress-ng-cpu", "", stress),
            ("stress-ng-nanosleep", "", stressors),
            ("stress-ng-exec", "", stressors),
            ("perf-futex-hash", include_str!("../tests/programs/perf-6.1-futex-hash.txt"), ""),
            ("perf-futex-wake", include_str!("../tests/programs/perf-6.1-futex-wake.txt"), ""),
            ("perf-futex-wake-parallel", include_str!("../tests/programs/perf-6.1-futex-wake-parallel.txt"), ""),
            ("perf-futex-requeue", include_str!("../tests/programs/perf-6.1-futex-requeue.txt"), ""),
            ("perf-futex-lock-pi", include_str!("../tests/programs/perf-6.1-futex-lock-pi.txt"), ""),
            ("sysbench-threads", include_str!("../tests/programs/sysbench-1.0.20-threads.txt"), ""),
            ("sysbench-mutex", include_str!("../tests/programs/sysbench-1.0.20-mutex.txt"), ""),
            ("sysbench-memory", include_str!("../tests/programs/sysbench-1.0.20-memory.txt"), ""),
            ("lmbench-lat-pipe", "", include_str!("../tests/programs/lmbench-3.0-a9.txt")),
            ("netperf-tcp-rr", include_str!("../tests/programs/netperf-2.7.0.txt"), ""),
            ("schbench", "", include_str!("../tests/programs/schbench-3d16b23.txt")),
            ("schbench-2020", "", include_str!("../tests/programs/schbench-abe4f96.txt")),
            ("schbench-1.0", "", include_str!("../tests/programs/schbench-1.0.txt")),
            ("sysbench-cpu", include_str!("../tests/programs/sysbench-1.0.20-cpu.txt"), ""),
        ];
        for (id, stdout, stderr) in cases {
            let known = catalogue::find(id).unwrap().metrics;
            let kind = |name: &str| known.iter().find(|metric| metric.name == name).map(|metric| metric.kind);
            let found = parse(id, 1, stdout, stderr).unwrap();
            for (name, _) in &found.samples {
                assert!(matches!(kind(name), Some(MetricKind::Headline | MetricKind::Samples)), "{id}.{name}");
            }
            for (name, stat, _) in &found.stats {
                let sampled = [Some(MetricKind::Samples), Some(MetricKind::PerSecond)];
                assert!(sampled.contains(&kind(name)), "{id}.{name}.{stat}");
            }
            for cpu in &found.cpu_rates {
                assert!(kind(cpu.metric) == Some(MetricKind::CpuRate), "{id}.{}", cpu.metric);
            }
            for (name, _) in &found.rates {
                assert!(kind(name) == Some(MetricKind::Rate), "{id}.{name}");
            }
        }
    }
}
