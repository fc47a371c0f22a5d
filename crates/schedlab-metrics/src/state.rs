//! The state of the reduction: counters, histograms, and the state of each task and CPU.

use schedlab_model::{Nanos, Table, MAX_CPUS};
use schedlab_trace::{Call, Extension, Lock, Section};
use schedlab_workload::{MetricKind, OfTasks};

use crate::idle::{IdleWhileRunnable, Queue};
use crate::per_second::PerSecond;
use crate::searches::Searches;
use crate::tasks::Tasks;
use crate::{Histogram, Plan};

/// Reduces a stream of events to a [`Report`].
///
/// - `wakeup_latency`: from `sched_waking` (from `sched_wakeup` where that is missing) until the wakee runs.
/// - `run_delay`: from `sched_wakeup` (from `sched_waking` where that is missing), `sched_wakeup_new` or a preemption
///   until the task runs.
/// - `run_time`: from a switch to the task until the switch away from it.
///
/// A sample belongs to the instant of its last event; a time total is cut at the warm-up.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub(crate) plan: Plan,
    pub(crate) tasks: Tasks,
    pub(crate) cpus: Table<Cpu>,
    pub(crate) idle: IdleWhileRunnable,
    pub(crate) totals: Totals,
    pub(crate) wakeup_latency: Histogram,
    pub(crate) run_delay: Histogram,
    pub(crate) run_time: Histogram,
    pub(crate) searches: Searches,
    /// Those of all sections, once the run is over.
    pub(crate) resched_delay: Histogram,
    /// By what was executed at the request.
    pub(crate) resched_delay_in: [Histogram; Section::ALL.len()],
    /// By [`Lock`].
    pub(crate) lock_waits: [Histogram; Lock::ALL.len()],
    pub(crate) apps: Vec<App>,
    pub(crate) reporters: Reporters,
    /// The state at the ends of the first and the second third of the measured time.
    pub(crate) thirds: Vec<Metrics>,
    /// When the next third ends.
    pub(crate) next_third: Nanos,
}

/// The workloads of which some metric is about the tasks that report to them, numbered from 1.
#[derive(Clone, Debug)]
pub(crate) struct Reporters {
    /// By metric: the number of its workload, 0 if that has no such metric. Empty if none has.
    pub(crate) of_metric: Vec<u16>,
}

impl Reporters {
    fn of(plan: &Plan) -> Reporters {
        let mut named: Vec<&str> = Vec::new();
        for entry in &plan.metrics {
            if matches!(entry.decl.kind, MetricKind::Tasks(_)) && !named.contains(&entry.workload.as_str()) {
                named.push(&entry.workload);
            }
        }
        let number = |workload: &str| named.iter().position(|name| *name == workload).map_or(0, |at| at as u16 + 1);
        let of_metric = plan.metrics.iter().map(|entry| number(&entry.workload)).collect();
        Reporters { of_metric: if named.is_empty() { Vec::new() } else { of_metric } }
    }
}

/// One CPU.
#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    /// Slot of the task that runs, 0 = idle.
    pub(crate) running: usize,
    /// Whether a switch has been seen.
    pub(crate) known: bool,
    pub(crate) since: Nanos,
    pub(crate) waiting: u32,
    pub(crate) busy_ns: Nanos,
}

/// Counters of the measured time.
#[derive(Clone, Default, Debug)]
pub(crate) struct Totals {
    pub(crate) switches: u64,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) wakeups: u64,
    pub(crate) forks: u64,
    pub(crate) migrations: u64,
    pub(crate) faults: u64,
    pub(crate) major_faults: u64,
    /// By what happened to time slice extensions.
    pub(crate) extensions: [u64; Extension::ALL.len()],
    pub(crate) scans: u64,
    pub(crate) scan_tested: u64,
    pub(crate) scan_cost_ns: Nanos,
    pub(crate) lock_wait_ns: Nanos,
    pub(crate) longest: LongestSections,
    pub(crate) refill_ns: Nanos,
    pub(crate) numa: NumaTotals,
}

/// NUMA hinting faults, and what memory on other nodes costs.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct NumaTotals {
    pub(crate) faults: u64,
    pub(crate) local: u64,
    pub(crate) migrated: u64,
    pub(crate) remote_ns: Nanos,
}

impl NumaTotals {
    pub(crate) fn add(&mut self, faults: u32, local: u32, migrated: u32, remote: Nanos) {
        self.faults += u64::from(faults);
        self.local += u64::from(local);
        self.migrated += u64::from(migrated);
        self.remote_ns += remote;
    }
}

/// The longest sections of kernel code that could not be preempted; 0 where none began.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LongestSections {
    /// By [`Section`].
    pub(crate) of: [Nanos; Section::ALL.len()],
    /// By [`Call`].
    pub(crate) within: [Nanos; Call::ALL.len()],
}

impl LongestSections {
    pub(crate) fn record(&mut self, time: Nanos, section: Section, call: Option<Call>) {
        let longest = &mut self.of[section as usize];
        *longest = time.max(*longest);
        if let Some(call) = call {
            let longest = &mut self.within[call as usize];
            *longest = time.max(*longest);
        }
    }
}

/// One application metric.
#[derive(Clone, Debug)]
pub(crate) enum App {
    Samples(Histogram),
    Rate {
        counted: u64,
    },
    Total {
        counted: u64,
    },
    /// Counted operations and sampled CPU time.
    CpuRate {
        counted: u64,
        time: Nanos,
    },
    /// Counted operations, samples, and the shortest of these.
    BestRate {
        counted: u64,
        samples: u64,
        shortest: Nanos,
    },
    PerSecond(PerSecond),
    /// Passes of the measured time, and those that ended in the warm-up.
    Headline {
        measured: Mean,
        warmup: Mean,
    },
    /// Of the tasks that report to the workload of this number.
    Tasks {
        what: OfTasks,
        number: u16,
    },
}

/// A mean under way.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Mean {
    pub(crate) sum: u128,
    pub(crate) count: u64,
}

impl Cpu {
    pub(crate) fn idle_since(start: Nanos) -> Cpu {
        Cpu { running: 0, known: false, since: start, waiting: 0, busy_ns: 0 }
    }

    #[inline]
    pub(crate) fn queue(&self) -> Queue {
        Queue { idle: self.running == 0, waiting: self.waiting }
    }
}

impl Metrics {
    /// Ready for the first event.
    #[must_use]
    pub fn new(plan: Plan) -> Metrics {
        let reporters = Reporters::of(&plan);
        let app = |(at, kind)| match kind {
            MetricKind::Samples => App::Samples(Histogram::default()),
            MetricKind::Rate => App::Rate { counted: 0 },
            MetricKind::CpuRate => App::CpuRate { counted: 0, time: 0 },
            MetricKind::BestRate => App::BestRate { counted: 0, samples: 0, shortest: Nanos::MAX },
            MetricKind::Total => App::Total { counted: 0 },
            MetricKind::PerSecond => App::PerSecond(PerSecond::new(plan.start, plan.warmup)),
            MetricKind::Headline => App::Headline { measured: Mean::default(), warmup: Mean::default() },
            MetricKind::Tasks(what) => App::Tasks { what, number: reporters.of_metric.get(at).copied().unwrap_or(0) },
        };
        let mut metrics = Metrics {
            tasks: Tasks::default(),
            cpus: Table::default(),
            idle: IdleWhileRunnable::new(plan.start.max(plan.warmup)),
            totals: Totals::default(),
            wakeup_latency: Histogram::default(),
            run_delay: Histogram::default(),
            run_time: Histogram::default(),
            searches: Searches::default(),
            resched_delay: Histogram::default(),
            resched_delay_in: Default::default(),
            lock_waits: Default::default(),
            apps: plan.metrics.iter().map(|entry| entry.decl.kind).enumerate().map(app).collect(),
            reporters,
            thirds: Vec::new(),
            next_third: plan.end_of_third(0).unwrap_or(Nanos::MAX),
            plan,
        };
        metrics.add_cpus(metrics.plan.nr_cpus);
        metrics
    }

    /// CPU time in tasks, summed over all CPUs.
    pub(crate) fn busy_ns(&self) -> Nanos {
        self.cpus.iter().map(|cpu| cpu.busy_ns).sum()
    }

    /// CPU time of the threads that [`schedlab_workload::housekeeping`] models, by their names.
    pub(crate) fn housekeeping_ns(&self) -> Nanos {
        let periodic =
            |name: &str| ["kworker/", "migration/", "kcompactd"].iter().any(|thread| name.starts_with(thread));
        self.tasks.iter().filter(|(_, name)| periodic(name)).map(|(task, _)| task.cpu_ns).sum()
    }

    pub(crate) fn add_cpus(&mut self, count: usize) {
        while self.cpus.len() < count.min(MAX_CPUS) {
            let cpu = Cpu::idle_since(self.plan.start);
            self.idle.add(cpu.queue());
            self.cpus.push(cpu);
        }
    }
}
