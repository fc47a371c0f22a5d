//! The result of the reduction: plain numbers in the displayed units, and their JSON.

use schedlab_model::{Nanos, Pid};
use schedlab_workload::cpu_stat::throttled_periods;
use schedlab_workload::{OfTasks, Unit};
use serde::Serialize;

use crate::catalogue::{sched_metrics, Reducer};
use crate::parts::{parts, Parts};
use crate::state::{App, Mean};
use crate::tasks::Task;
use crate::{Histogram, MetricEntry, Metrics, Stat};

/// The reduction of one run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Report {
    /// Time after the warm-up.
    pub measured_ns: Nanos,
    /// Every metric under its full name, in the unit shown; `None` where there was nothing to measure.
    pub metrics: Vec<(String, Option<f64>)>,
    /// Metrics in the second and the last third of the measured time, in units of the events.
    pub parts: Parts,
    /// Distributions, by metric name without statistic.
    pub series: Vec<(String, Series)>,
    /// Tasks in order of appearance: the first 1,000 and those alive at the end one by one, the others summed by name.
    pub tasks: Vec<TaskReport>,
    /// How many tasks these are.
    pub tasks_total: u64,
    /// CPUs by number.
    pub cpus: Vec<CpuReport>,
}

/// A distribution, ready for a percentile chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// Unit of `mean`, `max` and the curve's values.
    pub unit: &'static str,
    /// Samples.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
    /// `(percentile 0..=100, value)`, ascending, at most 100 points.
    pub curve: Vec<(f64, f64)>,
    /// `(largest value, count)` of buckets whose width is 2^-7 of their value: what several runs add up to.
    pub histogram: Vec<(f64, u64)>,
}

/// One task, or all ended ones of a name beyond the first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskReport {
    /// `comm`, empty if the trace never names the task.
    pub name: String,
    /// Its pid; 0 if this is more than one task.
    pub pid: Pid,
    /// How many tasks this is.
    pub tasks: u64,
    /// On-CPU time.
    pub cpu_ns: Nanos,
    /// Time runnable and not running.
    pub wait_ns: Nanos,
    /// Longest single wait.
    pub wait_ns_max: Nanos,
    /// Switches away from it.
    pub switches: u64,
    /// Switches away from it while it was runnable.
    pub involuntary_switches: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Changes of CPU.
    pub migrations: u64,
}

/// One CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CpuReport {
    /// Time in tasks.
    pub busy_ns: Nanos,
    /// The rest of the measured time.
    pub idle_ns: Nanos,
}

impl Report {
    pub(crate) fn of(metrics: &Metrics, end: Nanos) -> Report {
        let measured_ns = end.saturating_sub(metrics.plan.start.max(metrics.plan.warmup));
        let mut report = Report {
            measured_ns,
            metrics: Vec::new(),
            parts: parts(metrics, end),
            series: Vec::new(),
            tasks: tasks(metrics),
            tasks_total: metrics.tasks.seen(),
            cpus: metrics
                .cpus
                .iter()
                .map(|cpu| CpuReport { busy_ns: cpu.busy_ns, idle_ns: measured_ns.saturating_sub(cpu.busy_ns) })
                .collect(),
        };
        for (entry, app) in metrics.plan.metrics.iter().zip(&metrics.apps) {
            report.add_app(entry, app, metrics);
        }
        let groups = metrics.plan.metrics.iter().filter(|entry| entry.workload.starts_with('/'));
        let mut groups: Vec<&str> = groups.map(|entry| entry.workload.as_str()).collect();
        groups.dedup();
        groups.into_iter().for_each(|path| report.add_throttled_periods(path));
        report.add_sched(metrics);
        report
    }

    /// The value of a metric by its full name; `None` if there is no such metric or nothing was measured.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| known == name).and_then(|(_, value)| *value)
    }

    /// The report as JSON: `metrics` {name: number or null}, `parts` {name: values in
    /// the second and the last third}, `series` {name: distribution}, `tasks` [..], `cpus` [..].
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let metrics: serde_json::Map<_, _> = self.metrics.iter().map(|(name, v)| (name.clone(), (*v).into())).collect();
        let series: serde_json::Map<_, _> =
            self.series.iter().map(|(name, s)| (name.clone(), serde_json::json!(s))).collect();
        let mut json = serde_json::json!({
            "measured_ns": self.measured_ns, "metrics": metrics, "series": series, "cpus": self.cpus,
        });
        let tasks = self.tasks.iter().map(|task| serde_json::json!(task)).collect();
        if !self.parts.is_empty() {
            let parts = self.parts.iter().map(|(name, thirds)| (name.clone(), serde_json::json!(thirds)));
            json["parts"] = parts.collect::<serde_json::Map<_, _>>().into();
        }
        list_tasks(&mut json, tasks, self.tasks_total);
        json
    }

    /// The share of the periods of a control group in which it was throttled; 0 if there was no period, as without a
    /// quota.
    fn add_throttled_periods(&mut self, path: &str) {
        let counted = |name: &str| self.metric(&format!("{path}.{name}"));
        let share = counted("nr_throttled").zip(counted("nr_periods")).map(|(throttled, periods)| {
            if periods > 0.0 {
                100.0 * throttled / periods
            } else {
                0.0
            }
        });
        self.metrics.push((format!("{path}.{}", throttled_periods().name), share));
    }

    fn add_app(&mut self, entry: &MetricEntry, app: &App, metrics: &Metrics) {
        let name = format!("{}.{}", entry.workload, entry.decl.name);
        let scale = 1.0 / (scale_of(entry.decl.unit) * entry.decl.divide.max(1) as f64);
        match app {
            App::Samples(histogram) => self.add_sampled(&name, entry.decl.unit, scale, histogram),
            App::PerSecond(seconds) => self.add_sampled(&name, entry.decl.unit, scale, &seconds.samples),
            App::Rate { counted } => {
                let seconds = self.measured_ns as f64 / 1e9;
                let rate = *counted as f64 / entry.decl.divide.max(1) as f64 / seconds;
                self.metrics.push((name, (seconds > 0.0).then_some(rate)));
            }
            App::CpuRate { counted, time } => {
                let rate = *counted as f64 / entry.decl.divide.max(1) as f64 / (*time as f64 / 1e9);
                self.metrics.push((name, (*time > 0).then_some(rate)));
            }
            App::BestRate { counted, samples, shortest } => {
                let each = *counted as f64 / entry.decl.divide.max(1) as f64 / *samples as f64;
                let measured = *samples > 0 && *shortest > 0;
                self.metrics.push((name, measured.then(|| each / (*shortest as f64 / 1e9))));
            }
            App::Total { counted } => self.metrics.push((name, Some(*counted as f64 * scale))),
            App::Headline { measured, warmup } => {
                // A workload that ended within the warm-up has no later passes.
                let mean = if measured.count > 0 { measured } else { warmup };
                self.metrics.push((name, mean.value().map(|value| value * scale)));
            }
            App::Tasks { what, number } => {
                let value = self.of_tasks(*what, &metrics.tasks.reporters(*number), metrics.cpus.len());
                self.metrics.push((name, value.map(|value| value * scale)));
            }
        }
    }

    /// A reduction over tasks, whose counters are added up.
    fn of_tasks(&self, what: OfTasks, tasks: &Task, nr_cpus: usize) -> Option<f64> {
        let measured = self.measured_ns as f64;
        let per_second = |count: u64| (measured > 0.0).then(|| count as f64 / (measured / 1e9));
        match what {
            OfTasks::Switches => per_second(tasks.voluntary + tasks.involuntary),
            OfTasks::InvoluntarySwitches => per_second(tasks.involuntary),
            OfTasks::RunDelay => {
                let runnable = tasks.wait_ns + tasks.cpu_ns;
                (runnable > 0).then(|| 100.0 * tasks.wait_ns as f64 / runnable as f64)
            }
            OfTasks::Utilization => {
                let capacity = measured * nr_cpus as f64;
                (capacity > 0.0).then(|| 100.0 * tasks.cpu_ns as f64 / capacity)
            }
        }
    }

    fn add_sampled(&mut self, name: &str, unit: Unit, scale: f64, histogram: &Histogram) {
        for ((stat_name, stat), value) in Stat::ALL.into_iter().zip(histogram.stats()) {
            let scale = if stat == Stat::Count { 1.0 } else { scale };
            self.metrics.push((format!("{name}.{stat_name}"), value.map(|value| value * scale)));
        }
        let shown = |stat| histogram.stat(stat).unwrap_or(0.0) * scale;
        let series = Series {
            unit: unit_name(unit),
            count: histogram.count(),
            mean: shown(Stat::Mean),
            max: shown(Stat::Max),
            curve: histogram.curve().into_iter().map(|(percent, value)| (percent, value as f64 * scale)).collect(),
            histogram: histogram.counts().into_iter().map(|(value, count)| (value as f64 * scale, count)).collect(),
        };
        self.series.push((name.to_owned(), series));
    }

    /// The rows of [`sched_metrics`], in its order.
    fn add_sched(&mut self, metrics: &Metrics) {
        let capacity = self.measured_ns as f64 * metrics.cpus.len() as f64;
        for metric in sched_metrics() {
            let value = match metric.reducer {
                Reducer::Distribution(histogram) => {
                    let scale = 1.0 / scale_of(metric.unit);
                    self.add_sampled(metric.name, metric.unit, scale, histogram(metrics));
                    continue;
                }
                Reducer::Longest(longest) => {
                    Some(longest(&metrics.totals)).filter(|ns| *ns > 0).map(|ns| ns as f64 / scale_of(metric.unit))
                }
                Reducer::Count(count) => Some(count(&metrics.totals) as f64),
                Reducer::Mean(mean) => mean(&metrics.totals),
                Reducer::RestOfBusy(ns) => {
                    let busy = metrics.busy_ns() as f64;
                    (busy > 0.0).then(|| 100.0 * (1.0 - ns(metrics) as f64 / busy))
                }
                Reducer::CpuTime(ns) => (capacity > 0.0).then(|| 100.0 * ns(metrics) as f64 / capacity),
            };
            self.metrics.push((metric.name.to_owned(), value));
        }
    }
}

/// The most tasks that a result lists.
const TASKS_LISTED: usize = 1000;

/// Writes `tasks` (the busiest, sorted by pid) and `tasks_total` into a result. Repeated workloads fork millions of
/// tasks, so a full list would be useless.
pub fn list_tasks(result: &mut serde_json::Value, mut tasks: Vec<serde_json::Value>, total: u64) {
    if tasks.len() > TASKS_LISTED {
        tasks.sort_by_key(|task| (std::cmp::Reverse(task["cpu_ns"].as_u64()), task["pid"].as_i64()));
        tasks.truncate(TASKS_LISTED);
        tasks.sort_by_key(|task| task["pid"].as_i64());
    }
    result["tasks"] = tasks.into();
    result["tasks_total"] = total.into();
}

impl Mean {
    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

fn tasks(metrics: &Metrics) -> Vec<TaskReport> {
    let report = |task: &Task, name: &str, tasks| TaskReport {
        name: name.to_owned(),
        pid: task.pid,
        tasks,
        cpu_ns: task.cpu_ns,
        wait_ns: task.wait_ns,
        wait_ns_max: task.wait_ns_max,
        switches: task.voluntary + task.involuntary,
        involuntary_switches: task.involuntary,
        wakeups: task.wakeups,
        migrations: task.migrations,
    };
    let single = metrics.tasks.iter().map(|(task, name)| report(task, name, 1));
    let ended = metrics.tasks.iter_ended().map(|(ended, name)| report(&ended.sum, name, ended.tasks));
    single.chain(ended).collect()
}

/// Raw units in one displayed unit.
fn scale_of(unit: Unit) -> f64 {
    match unit {
        Unit::Microseconds => 1e3,
        Unit::Milliseconds => 1e6,
        Unit::Seconds => 1e9,
        Unit::PerSecond
        | Unit::PerMinute
        | Unit::LoopsPerSecond
        | Unit::LoopsPerMinute
        | Unit::Count
        | Unit::Percent => 1.0,
    }
}

/// The unit as printed.
fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        unit => unit.name(),
    }
}
