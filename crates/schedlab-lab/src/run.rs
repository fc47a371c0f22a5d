//! A run with everything that listens to it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use schedlab_metrics::{Metrics, Plan, Report};
use schedlab_sim::{Ended, Outcome, RunSpec, SimError};
use schedlab_trace::{Digest, Tee};

use crate::ENGINE;

/// What one run came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The kernel's row.
    pub kernel: &'static str,
    /// The run's seed.
    pub seed: u64,
    /// What the engine tells.
    pub outcome: Outcome,
    /// What the metrics tell.
    pub report: Report,
    /// XXH3-128 of the trace.
    pub digest: String,
    /// Trace events.
    pub events: u64,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The simulation stopped.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] schedlab_trace::TraceError),
}

/// Runs one specification; writes its trace to `trace` if given (the suffix chooses the format).
pub fn run(spec: &RunSpec, trace: Option<&Path>, cancel: &AtomicBool) -> Result<Run, LabError> {
    let plan = Plan::of(&spec.workloads, spec.machine.topology.nr_cpus(), spec.warmup);
    let metrics = Metrics::new(plan);
    let (outcome, metrics, digest) = match trace {
        None => {
            let mut sink = Tee(Digest::default(), metrics);
            let outcome = schedlab_sim::run(spec, &mut sink, cancel)?;
            (outcome, sink.1, sink.0)
        }
        Some(path) => {
            let about = schedlab_trace::About::simulated(spec.kernel.version.name, spec.machine.topology.nr_cpus());
            let writer = schedlab_trace::create(path, &about)?;
            let mut sink = Tee(Digest::default(), Tee(metrics, writer));
            let outcome = schedlab_sim::run(spec, &mut sink, cancel)?;
            sink.1 .1.finish()?;
            (outcome, sink.1 .0, sink.0)
        }
    };
    Ok(Run {
        kernel: spec.kernel.version.name,
        seed: spec.seed,
        report: metrics.finish(outcome.now),
        digest: digest.hex(),
        events: digest.events(),
        outcome,
    })
}

impl Run {
    /// The result as JSON: `kernel, seed, engine, digest, events, handled, switches, sim_s, ended, metrics, series, tasks,
    /// cpus, checks`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut json = self.report.to_json();
        let cpus: Vec<_> = self.outcome.cpus.iter().map(|cpu| {
            serde_json::json!({ "busy_ns": cpu.busy, "cost_ns": cpu.cost, "idle_ns": cpu.idle })
        });
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
        json
    }
}
