//! A program's metrics as constants.

use crate::{Better, MetricDecl, MetricKind, OfTasks, Unit};

/// A metric that a program may report.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MetricSpec {
    /// Its name.
    pub name: &'static str,
    /// What it means, one line.
    pub help: &'static str,
    /// Unit as shown.
    pub unit: Unit,
    /// Direction.
    pub better: Better,
    /// How it is reduced.
    pub kind: MetricKind,
    /// Statistics shown by default.
    pub stats: &'static [&'static str],
    /// Whether its samples are time in a queue: see [`MetricDecl::queueing`].
    pub queueing: bool,
}

impl MetricSpec {
    /// One value per pass.
    pub(super) const fn headline(name: &'static str, unit: Unit, better: Better, help: &'static str) -> Self {
        MetricSpec { name, help, unit, better, kind: MetricKind::Headline, stats: &[], queueing: false }
    }

    /// Many samples in microseconds, lower is better.
    pub(super) const fn latency(name: &'static str, stats: &'static [&'static str], help: &'static str) -> Self {
        let kind = MetricKind::Samples;
        MetricSpec { name, help, unit: Unit::Microseconds, better: Better::Lower, kind, stats, queueing: false }
    }

    /// Time in a queue in microseconds, from the arrival of a request until a task takes it; lower is better.
    pub(super) const fn queueing(name: &'static str, stats: &'static [&'static str], help: &'static str) -> Self {
        MetricSpec { queueing: true, ..MetricSpec::latency(name, stats, help) }
    }

    /// Operations per second, higher is better.
    pub(super) const fn rate(name: &'static str, help: &'static str) -> Self {
        let kind = MetricKind::Rate;
        MetricSpec { name, help, unit: Unit::PerSecond, better: Better::Higher, kind, stats: &[], queueing: false }
    }

    /// Operations per second of the shortest pass, higher is better.
    pub(super) const fn best_rate(name: &'static str, help: &'static str) -> Self {
        let kind = MetricKind::BestRate;
        MetricSpec { name, help, unit: Unit::PerSecond, better: Better::Higher, kind, stats: &[], queueing: false }
    }

    /// Operations per second of CPU time, higher is better.
    pub(super) const fn cpu_rate(name: &'static str, help: &'static str) -> Self {
        let kind = MetricKind::CpuRate;
        MetricSpec { name, help, unit: Unit::PerSecond, better: Better::Higher, kind, stats: &[], queueing: false }
    }

    /// What the scheduler did with the tasks that report to the workload; neither direction is better, but for waits.
    pub(super) const fn tasks(name: &'static str, what: OfTasks, help: &'static str) -> Self {
        let (unit, better) = match what {
            OfTasks::Switches | OfTasks::InvoluntarySwitches => (Unit::PerSecond, Better::Neither),
            OfTasks::RunDelay => (Unit::Percent, Better::Lower),
            OfTasks::Utilization => (Unit::Percent, Better::Neither),
        };
        MetricSpec { name, help, unit, better, kind: MetricKind::Tasks(what), stats: &[], queueing: false }
    }

    /// Operations of every second, higher is better.
    pub(super) const fn per_second(name: &'static str, stats: &'static [&'static str], help: &'static str) -> Self {
        let kind = MetricKind::PerSecond;
        MetricSpec { name, help, unit: Unit::PerSecond, better: Better::Higher, kind, stats, queueing: false }
    }

    /// The declaration of a workload that reports it, divided by `divide`.
    pub(super) fn decl(&self, divide: u64) -> MetricDecl {
        MetricDecl {
            name: self.name.to_string(),
            help: self.help.to_string(),
            unit: self.unit,
            better: self.better,
            kind: self.kind,
            default_stats: self.stats.iter().map(ToString::to_string).collect(),
            divide,
            queueing: self.queueing,
        }
    }
}
