//! One run with all of its sinks.

use std::path::Path;

use schedlab_metrics::{Metrics, Plan, Report};
use schedlab_sim::{Ended, Outcome, SimError, Watch};
use schedlab_spec::RunSpec;
use schedlab_trace::{Digest, Sink, Tee};

use crate::guests::PerKernel;
use crate::header::header;
use crate::tail::{keeper, Kept};
use crate::ENGINE;

/// The result of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The kernel's row.
    pub kernel: &'static str,
    /// The run's seed.
    pub seed: u64,
    /// The engine's result.
    pub outcome: Outcome,
    /// The metrics.
    pub report: Report,
    /// XXH3-128 of the trace.
    pub digest: String,
    /// Trace events.
    pub events: u64,
    /// Why there is no trace file; the metrics are not affected.
    pub trace_error: Option<String>,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The simulation stopped.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The trace file cannot be created.
    #[error(transparent)]
    Trace(#[from] schedlab_trace::TraceError),
}

/// Runs one specification without guests for a sink of the caller.
pub fn simulate<W: Watch>(spec: &RunSpec, mut sink: &mut dyn Sink, watch: &W) -> Result<Outcome, LabError> {
    Ok(schedlab_sim::run(spec, &mut sink, watch)?)
}

/// Runs one specification; writes its trace to `trace` if given (the suffix chooses the format).
pub fn run<W: Watch>(spec: &RunSpec, trace: Option<&Path>, watch: &W) -> Result<Run, LabError> {
    let plan = plan(spec);
    if !spec.guests.is_empty() {
        return run_with_guests(spec, plan, trace, watch);
    }
    let header = header(spec, &plan);
    let mut sink = Tee(Digest::default(), Metrics::new(plan));
    let (outcome, trace_error) = match trace {
        None => (schedlab_sim::run(spec, &mut sink, watch)?, None),
        Some(path) => {
            let mut writer = schedlab_trace::create(path, &header)?;
            let outcome = simulate(spec, &mut Tee(&mut sink, &mut *writer), watch);
            // The trace up to the point where a run stopped is kept.
            let written = writer.finish();
            (outcome?, written.err().map(|error| error.to_string()))
        }
    };
    let Tee(digest, metrics) = sink;
    Ok(Run::of(spec, &digest, metrics.finish(outcome.now), outcome, trace_error))
}

/// Runs one specification without guests, writes no trace, and keeps the samples of some metrics
/// (`WORKLOAD.METRIC`, `sched.wakeup_latency`), so that [`Kept::tail`] can answer questions about them.
pub fn run_keeping<W: Watch>(spec: &RunSpec, metrics: &[String], watch: &W) -> Result<(Run, Kept), LabError> {
    let mut sink = Tee(Tee(Digest::default(), Metrics::new(plan(spec))), keeper(spec, metrics));
    let outcome = simulate(spec, &mut sink, watch)?;
    let Tee(Tee(digest, reduced), kept) = sink;
    let end = outcome.now;
    Ok((Run::of(spec, &digest, reduced.finish(end), outcome, None), kept.finish(end)))
}

fn plan(spec: &RunSpec) -> Plan {
    let groups = spec.cgroups.iter().filter(|cgroup| cgroup.counted).map(|cgroup| cgroup.path.as_str());
    Plan::of(&spec.workloads, spec.machine.topology.nr_cpus(), spec.warmup).with_groups(groups).lasting(spec.duration)
}

fn run_with_guests<W: Watch>(spec: &RunSpec, host: Plan, trace: Option<&Path>, watch: &W) -> Result<Run, LabError> {
    let mut sink = PerKernel::new(spec, host, trace)?;
    let result = schedlab_sim::run_virtual(spec, &mut sink, watch);
    // The traces up to the point where a run stopped are kept.
    let trace_error = sink.finish_traces().map(|error| error.to_string());
    let (mut outcomes, guests) = result?;
    let (digest, report) = sink.report(&outcomes, &guests);
    let outcome = outcomes.swap_remove(0);
    Ok(Run::of(spec, &digest, report, outcome, trace_error))
}

impl Run {
    fn of(spec: &RunSpec, digest: &Digest, report: Report, outcome: Outcome, trace_error: Option<String>) -> Run {
        Run {
            kernel: spec.kernel.version.name,
            seed: spec.seed,
            report,
            digest: digest.hex(),
            events: digest.events(),
            trace_error,
            outcome,
        }
    }

    /// The result as JSON: `kernel, seed, engine, digest, events, handled, switches, sim_s, ended, metrics, series,
    /// tasks (the busiest 1,000), tasks_total, cpus, checks`, and `trace_error` if there is one.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut json = self.report.to_json();
        let cpus = self
            .outcome
            .cpus
            .iter()
            .map(|cpu| serde_json::json!({ "busy_ns": cpu.busy, "cost_ns": cpu.cost, "idle_ns": cpu.idle }));
        let checks: serde_json::Map<_, _> =
            self.outcome.checks.iter().map(|(name, looks)| ((*name).to_owned(), (*looks).into())).collect();
        let ended = match self.outcome.ended {
            Ended::Completed => "completed",
            Ended::Duration => "duration",
        };
        json["kernel"] = self.kernel.into();
        json["seed"] = self.seed.into();
        json["engine"] = ENGINE.into();
        json["digest"] = self.digest.as_str().into();
        json["events"] = self.events.into();
        json["handled"] = self.outcome.handled.into();
        json["switches"] = self.outcome.switches.into();
        json["sim_s"] = (self.outcome.now as f64 / 1e9).into();
        json["ended"] = ended.into();
        json["cpus"] = cpus.collect();
        json["checks"] = checks.into();
        if let Some(error) = &self.trace_error {
            json["trace_error"] = error.as_str().into();
        }
        json
    }
}
