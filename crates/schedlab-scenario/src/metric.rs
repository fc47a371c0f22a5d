//! `[[metric]]`: the metrics that are judged and their margins. The workloads' metrics are added with the default
//! margin.

use std::ops::RangeInclusive;

use schedlab_metrics::{guest_metrics, sched_metrics, GuestMetric, SchedMetric, Stat};
use schedlab_workload::cpu_stat::{cpu_stat, throttled_periods, THROTTLED};
use schedlab_workload::{Better, MetricDecl, MetricKind, Unit, Workload};

use crate::error::{Result, ScenarioError};
use crate::keys::METRIC;
use crate::value::{Table, Value};
use schedlab_model::suggest;

/// A metric of the comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Metric {
    /// The name in results, such as `probe.latency.p99`.
    pub name: String,
    /// The name without the statistic, such as `probe.latency`.
    pub of: String,
    /// The statistic of a metric with samples.
    pub stat: Option<String>,
    /// The unit in results.
    pub unit: Unit,
    /// The direction of improvement.
    pub better: Better,
    /// The smallest difference that matters, in percent.
    pub margin_pct: f64,
    /// The bounds that hold for a correct scheduler, if the scenario has them.
    pub bound: Option<RangeInclusive<f64>>,
    /// The meaning of the metric, in one line.
    pub help: String,
    /// Whether the scenario lists it.
    pub declared: bool,
}

/// The margin of metrics without one of their own.
///
/// On a quiet machine, the most stable of these benchmarks vary by about two percent between runs of one kernel. With a
/// smaller margin, differences would be judged that no real machine could confirm.
pub const DEFAULT_MARGIN_PCT: f64 = 2.0;

/// The scheduler's metrics that every comparison includes.
const ALWAYS: &[(&str, Option<&str>)] = &[("switches", None), ("migrations", None), ("wakeup_latency", Some("p99"))];

/// Reads the metrics of a scenario: first those that it lists, then the remaining defaults. A unit is stored in the
/// workload, where the engine looks it up.
pub(crate) fn read(
    tables: &[Table],
    workloads: &mut [Workload],
    groups: &[String],
    guests: &[&str],
) -> Result<Vec<Metric>> {
    let mut metrics: Vec<Metric> = Vec::new();
    for table in tables {
        let table = table.clone().only(&METRIC)?;
        let of = table.require("of", "what is measured, such as \"probe.latency\"")?;
        let metric = declared(&table, &of, workloads, groups, guests)?;
        if metrics.iter().any(|known| known.name == metric.name) {
            return Err(of.error(format!("the metric {} is listed twice", metric.name)));
        }
        metrics.push(metric);
    }
    for metric in defaults(workloads, groups, guests) {
        if !metrics.iter().any(|known| known.name == metric.name) {
            metrics.push(metric);
        }
    }
    Ok(metrics)
}

fn declared(
    table: &Table,
    of: &Value,
    workloads: &mut [Workload],
    groups: &[String],
    guests: &[&str],
) -> Result<Metric> {
    let name = of.string("a metric such as \"probe.latency\"")?;
    let (owner, short) = owner_of(name, workloads);
    let mut base = if owner == "sched" {
        let known = sched_metrics().iter().find(|metric| metric.name == name);
        of_sched(known.ok_or_else(|| unknown(of, name, workloads, groups))?, None)
    } else if guests.contains(&owner) {
        of_guest(owner, short).ok_or_else(|| unknown_of_guest(of, owner, short))?
    } else if let Some(metric) = of_group(name, groups) {
        metric
    } else {
        let workload = workloads.iter_mut().find(|workload| workload.name == owner);
        let decl = workload.and_then(|workload| workload.metrics.iter_mut().find(|decl| decl.name == short));
        match decl {
            Some(decl) => {
                own_unit(table, decl)?;
                own_queueing(table, decl)?;
                of_decl(owner, decl, None)
            }
            None => return Err(unknown(of, name, workloads, groups)),
        }
    };
    if owner == "sched" || name.starts_with('/') || guests.contains(&owner) {
        if let Some(unit) = table.get("unit") {
            return Err(unit.error("the unit of scheduler and group metrics is fixed").hint("remove it"));
        }
        if let Some(queueing) = table.get("queueing") {
            return Err(queueing.error("only a metric of a workload can be time in a queue").hint("remove queueing"));
        }
    }
    base.stat = stat(table, of, is_sampled(&base.of, workloads))?;
    if let Some(stat) = &base.stat {
        base.name = format!("{}.{stat}", base.of);
    }
    let directions = [("lower", Better::Lower), ("higher", Better::Higher), ("neither", Better::Neither)];
    base.better = table.get("better").map(|value| value.choice(&directions)).transpose()?.unwrap_or(base.better);
    base.margin_pct = table.get("margin").map(|value| value.percent(100.0)).transpose()?.unwrap_or(DEFAULT_MARGIN_PCT);
    base.bound = bound(table)?;
    base.declared = true;
    Ok(base)
}

/// The workload, guest or `sched` that a metric is of, and its name there. The name of a workload may contain dots.
fn owner_of<'a>(name: &'a str, workloads: &[Workload]) -> (&'a str, &'a str) {
    let found = workloads.iter().filter_map(|workload| within(name, workload)).min_by_key(|short| short.len());
    match found {
        Some(short) => (&name[..name.len() - short.len() - 1], short),
        None => name.split_once('.').unwrap_or((name, "")),
    }
}

/// The name of a metric in a workload, if it is one of it.
fn within<'a>(name: &'a str, workload: &Workload) -> Option<&'a str> {
    name.strip_prefix(workload.name.as_str())?.strip_prefix('.')
}

/// `at-least` and `at-most`.
fn bound(table: &Table) -> Result<Option<RangeInclusive<f64>>> {
    const ANY: RangeInclusive<f64> = -1e15..=1e15;
    let [least, most] = ["at-least", "at-most"].map(|key| table.get(key).map(|value| value.number(ANY)).transpose());
    let (least, most) = (least?, most?);
    if least.is_none() && most.is_none() {
        return Ok(None);
    }
    let range = least.unwrap_or(f64::MIN)..=most.unwrap_or(f64::MAX);
    match (range.is_empty(), table.get("at-most")) {
        (true, Some(value)) => Err(value.error("at-most is below at-least")),
        _ => Ok(Some(range)),
    }
}

fn stat(table: &Table, of: &Value, sampled: bool) -> Result<Option<String>> {
    let names = || Stat::ALL.iter().map(|(name, _)| *name);
    match (table.get("stat"), sampled) {
        (Some(value), true) => {
            let given = value.string("a statistic such as \"p99\"")?;
            match Stat::named(given) {
                Some(_) => Ok(Some(given.to_owned())),
                None => Err(value.unknown("statistic", given, names())),
            }
        }
        (Some(value), false) => {
            Err(value.error("this metric is a single number without statistics").hint("remove stat"))
        }
        (None, true) => {
            let list: Vec<&str> = names().collect();
            Err(of.error("this metric has many samples").expected(format!("stat, one of {}", list.join(", "))))
        }
        (None, false) => Ok(None),
    }
}

fn own_unit(table: &Table, decl: &mut MetricDecl) -> Result<()> {
    let Some(value) = table.get("unit") else { return Ok(()) };
    const TIMES: [(&str, Unit); 3] = [("us", Unit::Microseconds), ("ms", Unit::Milliseconds), ("s", Unit::Seconds)];
    let unit = value.choice(&TIMES)?;
    if !TIMES.iter().any(|(_, time)| *time == decl.unit) {
        return Err(value.error(format!("{} is not a time", decl.name)).hint("remove unit"));
    }
    decl.unit = unit;
    Ok(())
}

fn own_queueing(table: &Table, decl: &mut MetricDecl) -> Result<()> {
    let Some(value) = table.get("queueing") else { return Ok(()) };
    let is_time = matches!(decl.unit, Unit::Microseconds | Unit::Milliseconds | Unit::Seconds);
    if !is_time || decl.kind != MetricKind::Samples {
        return Err(value.error(format!("{} has no samples of time", decl.name)).hint("remove queueing"));
    }
    decl.queueing = value.boolean()?;
    Ok(())
}

fn is_sampled(of: &str, workloads: &[Workload]) -> bool {
    let of_workload = workloads.iter().any(|workload| {
        workload.metrics.iter().any(|decl| decl.kind.is_sampled() && within(of, workload) == Some(decl.name.as_str()))
    });
    // In a guest the name of the guest comes first.
    let of_sched = of.find("sched.").map_or(of, |start| &of[start..]);
    of_workload || sched_metrics().iter().any(|metric| metric.name == of_sched && !metric.stats.is_empty())
}

fn unknown(of: &Value, name: &str, workloads: &[Workload], groups: &[String]) -> Box<ScenarioError> {
    let own = workloads.iter().flat_map(|w| w.metrics.iter().map(move |decl| format!("{}.{}", w.name, decl.name)));
    let counted = groups.iter().flat_map(|path| of_quota().map(move |decl| format!("{path}.{}", decl.name)));
    let known: Vec<String> =
        own.chain(counted).chain(sched_metrics().iter().map(|metric| metric.name.to_owned())).collect();
    let with_stat =
        known.iter().find(|full| name.strip_prefix(full.as_str()).is_some_and(|rest| rest.starts_with('.')));
    let error = of.unknown("metric", name, known.iter().map(String::as_str));
    match with_stat {
        Some(full) => error.hint(format!("write of = \"{full}\" and stat = \"{}\"", &name[full.len() + 1..])),
        None => error,
    }
}

/// The metric of a group with this name, if there is one.
fn of_group(name: &str, groups: &[String]) -> Option<Metric> {
    let (path, short) = name.rsplit_once('.').filter(|(path, _)| groups.iter().any(|known| known == path))?;
    let decl = of_quota().find(|decl| decl.name == short)?;
    Some(of_decl(path, &decl, None))
}

/// What is measured of the quota of a group.
fn of_quota() -> impl Iterator<Item = MetricDecl> {
    cpu_stat().into_iter().chain([throttled_periods()])
}

/// A metric of a guest, or of the scheduler in it.
fn of_guest(guest: &str, name: &str) -> Option<Metric> {
    let own = guest_metrics().iter().find(|metric| metric.name == name).map(|metric| of_own(guest, metric));
    let sched = || sched_metrics().iter().find(|metric| metric.name == name);
    own.or_else(|| {
        sched().map(|metric| plain(format!("{guest}.{name}"), None, metric.unit, metric.better, metric.help))
    })
}

fn of_own(guest: &str, metric: &GuestMetric) -> Metric {
    plain(format!("{guest}.{}", metric.name), None, metric.unit, metric.better, metric.help)
}

fn unknown_of_guest(of: &Value, guest: &str, name: &str) -> Box<ScenarioError> {
    let names =
        guest_metrics().iter().map(|metric| metric.name).chain(sched_metrics().iter().map(|metric| metric.name));
    let error = of.error(format!("guest \"{guest}\" has no metric \"{name}\""));
    error.hint(suggest(name, names.collect::<Vec<_>>()))
}

fn defaults(workloads: &[Workload], groups: &[String], guests: &[&str]) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for workload in workloads {
        for decl in &workload.metrics {
            if decl.kind.is_sampled() {
                metrics.extend(decl.default_stats.iter().map(|stat| of_decl(&workload.name, decl, Some(stat))));
            } else {
                metrics.push(of_decl(&workload.name, decl, None));
            }
        }
    }
    for guest in guests {
        metrics
            .extend(guest_metrics().iter().filter(|metric| metric.name == "steal").map(|metric| of_own(guest, metric)));
    }
    for path in groups {
        metrics.extend([&throttled_periods(), &cpu_stat()[THROTTLED]].map(|decl| of_decl(path, decl, None)));
    }
    for (short, stat) in ALWAYS {
        let known = sched_metrics().iter().find(|metric| metric.name.strip_prefix("sched.") == Some(short));
        metrics.extend(known.map(|metric| of_sched(metric, *stat)));
    }
    metrics
}

fn of_decl(workload: &str, decl: &MetricDecl, stat: Option<&str>) -> Metric {
    let of = format!("{workload}.{}", decl.name);
    plain(of, stat, decl.unit, decl.better, &decl.help)
}

fn of_sched(metric: &SchedMetric, stat: Option<&str>) -> Metric {
    plain(metric.name.to_owned(), stat, metric.unit, metric.better, metric.help)
}

fn plain(of: String, stat: Option<&str>, unit: Unit, better: Better, help: &str) -> Metric {
    Metric {
        name: stat.map_or_else(|| of.clone(), |stat| format!("{of}.{stat}")),
        of,
        stat: stat.map(str::to_owned),
        unit,
        better,
        margin_pct: DEFAULT_MARGIN_PCT,
        bound: None,
        help: help.to_owned(),
        declared: false,
    }
}
