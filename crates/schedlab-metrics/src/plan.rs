//! What a run's metrics are: fixed before the first event.

use schedlab_model::Nanos;
use schedlab_workload::{cpu_stat::cpu_stat, MetricDecl, Unit, Workload};

/// One line of the run's flat metric table; its index is the `metric` of `Sample` and `Count` events.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricEntry {
    /// The workload's name in the scenario, or a control group's path.
    pub workload: String,
    /// The metric as the workload declares it.
    pub decl: MetricDecl,
}

/// Everything that [`crate::Metrics`] needs before the first event.
#[derive(Clone, Default, Debug)]
pub struct Plan {
    /// The metric table.
    pub metrics: Vec<MetricEntry>,
    /// CPUs of the machine; more are added when events name them.
    pub nr_cpus: usize,
    /// When the recording starts: CPUs count as idle from here until an event says otherwise.
    pub start: Nanos,
    /// Samples and counters before this time are dropped; the state of tasks and CPUs is followed all the same.
    pub warmup: Nanos,
    /// The end of the measured time, if nothing ends the run before; 0: not known.
    pub duration: Nanos,
}

impl Plan {
    /// The plan of a simulated run: the metric tables of the workloads, one after the other in their order.
    #[must_use]
    pub fn of(workloads: &[Workload], nr_cpus: usize, warmup: Nanos) -> Plan {
        let entries = |w: &Workload| {
            let workload = w.name.clone();
            w.metrics.clone().into_iter().map(move |decl| MetricEntry { workload: workload.clone(), decl })
        };
        Plan { metrics: workloads.iter().flat_map(entries).collect(), nr_cpus, start: 0, warmup, duration: 0 }
    }

    /// The table as a trace's header has it: full names, and the unit of the events' values.
    #[must_use]
    pub fn raw_units(&self) -> Vec<(String, String)> {
        let raw = |unit| match unit {
            Unit::Microseconds | Unit::Milliseconds | Unit::Seconds => "ns",
            Unit::PerSecond
            | Unit::PerMinute
            | Unit::LoopsPerSecond
            | Unit::LoopsPerMinute
            | Unit::Count
            | Unit::Percent => "count",
        };
        let metric =
            |entry: &MetricEntry| (format!("{}.{}", entry.workload, entry.decl.name), raw(entry.decl.unit).to_owned());
        self.metrics.iter().map(metric).collect()
    }

    /// The full names of the metrics whose samples are time in a queue.
    pub fn queueing(&self) -> impl Iterator<Item = String> + '_ {
        let queues = self.metrics.iter().filter(|entry| entry.decl.queueing);
        queues.map(|entry| format!("{}.{}", entry.workload, entry.decl.name))
    }

    /// For runs of this length, of which the report then has the parts.
    #[must_use]
    pub fn lasting(self, duration: Nanos) -> Plan {
        Plan { duration, ..self }
    }

    /// When a third of the measured time ends, the first being 0; None for the last one, and if the end is not known.
    pub(crate) fn end_of_third(&self, third: usize) -> Option<Nanos> {
        let length = self.duration.saturating_sub(self.warmup) / 3;
        (third < 2 && length > 0).then(|| self.warmup + length * (third as Nanos + 1))
    }

    /// With what is counted of these control groups' quotas, after everything else, group by group.
    #[must_use]
    pub fn with_groups<'a>(mut self, paths: impl Iterator<Item = &'a str>) -> Plan {
        for path in paths {
            let entry = |decl| MetricEntry { workload: path.to_owned(), decl };
            self.metrics.extend(cpu_stat().map(entry));
        }
        self
    }
}
