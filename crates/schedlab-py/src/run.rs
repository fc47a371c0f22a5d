//! Runs. The GIL is released, so that threads run in parallel and Ctrl-C reaches the main thread.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use pyo3::prelude::*;
use schedlab_lab::{Determinism, LabError, Run, Watch};

use crate::errors;
use crate::scenario::Scenario;

/// Cancels runs. One object may be shared by any number of runs; an object for a single run also shows its progress.
#[pyclass(frozen, module = "schedlab._engine")]
#[derive(Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    now: Arc<AtomicU64>,
}

impl Cancel {
    /// The flag that a reader of traces polls.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// The watch that a run polls.
    pub fn watch(cancel: Option<&Cancel>) -> Watched {
        cancel.map_or_else(Watched::default, |cancel| Watched { flag: cancel.flag(), now: Arc::clone(&cancel.now) })
    }
}

/// Stops a run and receives its time; works without the GIL.
#[derive(Default)]
pub struct Watched {
    flag: Arc<AtomicBool>,
    now: Arc<AtomicU64>,
}

impl Watch for Watched {
    fn stops(&self, now: u64) -> bool {
        self.now.store(now, Ordering::Relaxed);
        self.flag.load(Ordering::Relaxed)
    }
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Cancel::default()
    }

    /// Stops every run that was given this object, within a few thousand events.
    fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Creates an object for a single run that is cancelled together with this one.
    fn of_run(&self) -> Self {
        Cancel { flag: self.flag(), now: Arc::default() }
    }

    /// The simulated time that the run has reached, in nanoseconds.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

/// Runs one variant with one seed and returns the result as a JSON document.
#[pyfunction]
#[pyo3(signature = (scenario, variant, seed, *, trace=None, cancel=None, check_determinism=false))]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    variant: &str,
    seed: u64,
    trace: Option<&str>,
    cancel: Option<&Cancel>,
    check_determinism: bool,
) -> PyResult<String> {
    let spec = scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error))?;
    let watched = Cancel::watch(cancel);
    let work = || -> Result<String, LabError> {
        let mut json = report(variant, || schedlab_lab::run(&spec, trace.map(Path::new), &watched))?;
        if check_determinism {
            json["determinism"] = match schedlab_lab::check_determinism(&spec, &watched)? {
                Determinism::Same => "same".into(),
                Determinism::Differs(divergence) => divergence.to_string().into(),
            };
        }
        Ok(json.to_string())
    };
    match py.detach(|| schedlab_lab::guard(work)) {
        Ok(result) => result.map_err(|error| errors::lab(py, &error)),
        Err(panicked) => Err(errors::panicked(py, &panicked, &format!("variant `{variant}`, seed {seed}"))),
    }
}

/// The report of a run as JSON, with the name of its variant and how long it took.
pub fn report(variant: &str, run: impl FnOnce() -> Result<Run, LabError>) -> Result<serde_json::Value, LabError> {
    // The only use of the wall clock: the duration of the run is part of its result.
    #[allow(clippy::disallowed_methods)]
    let started = std::time::Instant::now();
    let mut json = run()?.to_json();
    json["variant"] = variant.into();
    json["wall_s"] = started.elapsed().as_secs_f64().into();
    Ok(json)
}

/// Runs one variant with one seed and returns its timeline as a JSON document: in full, or so many records before and
/// after each of the points of time (ns) of `around`.
#[pyfunction]
#[pyo3(signature = (scenario, variant, seed, *, around=None, cancel=None))]
pub fn timeline(
    py: Python<'_>,
    scenario: &Scenario,
    variant: &str,
    seed: u64,
    around: Option<(Vec<u64>, usize)>,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let spec = scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error))?;
    let watched = Cancel::watch(cancel);
    let near = around.as_ref().map(|(points, most)| (points.as_slice(), *most));
    let work = || schedlab_lab::timeline(&spec, near, &watched).map(|json| json.to_string());
    match py.detach(|| schedlab_lab::guard(work)) {
        Ok(result) => result.map_err(|error| errors::lab(py, &error)),
        Err(panicked) => Err(errors::panicked(py, &panicked, &format!("variant `{variant}`, seed {seed}"))),
    }
}

/// Runs one variant with one seed and returns where the time of a metric's samples went, as a JSON document. `bands`
/// are durations in ns, first and last.
#[pyfunction]
#[pyo3(signature = (scenario, variant, seed, metric, bands, *, cancel=None))]
pub fn tail(
    py: Python<'_>,
    scenario: &Scenario,
    variant: &str,
    seed: u64,
    metric: String,
    bands: Vec<(u64, u64)>,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let spec = scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error))?;
    let watched = Cancel::watch(cancel);
    let question = schedlab_lab::Question { metric, bands };
    let work = || schedlab_lab::tail(&spec, &question, &watched).map(|json| json.to_string());
    match py.detach(|| schedlab_lab::guard(work)) {
        Ok(result) => result.map_err(|error| errors::lab(py, &error)),
        Err(panicked) => Err(errors::panicked(py, &panicked, &format!("variant `{variant}`, seed {seed}"))),
    }
}
