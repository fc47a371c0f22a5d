//! The scheduler-wide metrics every run has: name, unit, direction and meaning, as data.

use schedlab_workload::{Better, Unit};

use crate::Cause;

/// A metric under `sched.`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SchedMetric {
    /// Its name, without statistic.
    pub name: &'static str,
    /// Statistics judged by default; empty for a metric that is one number.
    pub stats: &'static [&'static str],
    /// Unit as shown.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// What it means, one line.
    pub help: &'static str,
}

/// Every scheduler-wide metric. Sampled ones (those with `stats`) exist under every statistic of [`crate::Stat::ALL`].
#[must_use]
pub fn sched_metrics() -> &'static [SchedMetric] {
    &SCHED
}

/// The metric name under which the loss of one cause is reported.
pub(crate) fn idle_cause_name(cause: &str) -> String {
    format!("sched.idle_while_runnable.{cause}")
}

pub(crate) const CAUSES: usize = Cause::ALL.len();

const fn one(name: &'static str, unit: Unit, better: Better, help: &'static str) -> SchedMetric {
    SchedMetric { name, stats: &[], unit, better, help }
}

const fn sampled(
    name: &'static str,
    stats: &'static [&'static str],
    better: Better,
    help: &'static str,
) -> SchedMetric {
    SchedMetric { name, stats, unit: Unit::Microseconds, better, help }
}

use Better::{Lower, Neither};
use Unit::{Count, Percent};

#[rustfmt::skip]
static SCHED: [SchedMetric; 13] = [
    sampled("sched.wakeup_latency", &["p50", "p99", "max"], Lower, "from sched_waking until the task runs"),
    sampled("sched.run_delay", &["mean", "p99"], Lower, "one stay on a runqueue without running, after a wakeup, a fork or a preemption"),
    sampled("sched.run_time", &["mean"], Neither, "one stay on a CPU"),
    one("sched.switches", Count, Neither, "context switches of all CPUs, those to and from idle included"),
    one("sched.voluntary_switches", Count, Neither, "switches away from a task that slept"),
    one("sched.involuntary_switches", Count, Neither, "switches away from a task that was still runnable"),
    one("sched.wakeups", Count, Neither, "wakeups of sleeping tasks"),
    one("sched.forks", Count, Neither, "tasks created"),
    one("sched.migrations", Count, Neither, "tasks moved to another CPU"),
    one("sched.idle_while_runnable", Percent, Lower, "CPU time idle while a task waited on another runqueue"),
    one("sched.cpu_busy", Percent, Neither, "CPU time spent in tasks"),
    one("sched.scan_tested", Count, Neither, "CPUs tested per search for an idle one, mean"),
    one("sched.scan_cost", Percent, Lower, "CPU time spent in searches for an idle CPU"),
];
