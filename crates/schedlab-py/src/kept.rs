//! Runs of which samples are kept, so that questions about the slowest of them need no second run.

use pyo3::prelude::*;
use schedlab_lab::{LabError, Question, RunSpec};

use crate::errors;
use crate::run::{report, Cancel};
use crate::scenario::Scenario;

/// What is kept of a run besides its report.
#[pyclass(frozen, module = "schedlab._engine")]
pub struct Kept {
    spec: RunSpec,
    kept: schedlab_lab::Kept,
    digest: String,
    events: u64,
}

#[pymethods]
impl Kept {
    /// Returns what `tail` returns, or None if that must repeat the run.
    fn tail(&self, metric: String, bands: Vec<(u64, u64)>) -> Option<String> {
        let question = Question { metric, bands };
        self.kept.tail(&self.spec, &question, &self.digest, self.events).map(|json| json.to_string())
    }
}

/// Runs one variant with one seed and returns the result as a JSON document, with what is kept of `metrics`; of a run
/// with guests, nothing is kept.
#[pyfunction]
#[pyo3(signature = (scenario, variant, seed, metrics, *, cancel=None))]
pub fn run_keeping(
    py: Python<'_>,
    scenario: &Scenario,
    variant: &str,
    seed: u64,
    metrics: Vec<String>,
    cancel: Option<&Cancel>,
) -> PyResult<(String, Option<Kept>)> {
    let spec = scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error))?;
    let watched = Cancel::watch(cancel);
    let work = || -> Result<_, LabError> {
        let mut kept = None;
        let json = report(variant, || match spec.guests.is_empty() {
            true => schedlab_lab::run_keeping(&spec, &metrics, &watched).map(|(run, found)| {
                kept = Some((found, run.digest.clone(), run.events));
                run
            }),
            false => schedlab_lab::run(&spec, None, &watched),
        })?;
        Ok((json.to_string(), kept))
    };
    match py.detach(|| schedlab_lab::guard(work)) {
        Ok(Ok((json, kept))) => Ok((json, kept.map(|(kept, digest, events)| Kept { spec, kept, digest, events }))),
        Ok(Err(error)) => Err(errors::lab(py, &error)),
        Err(panicked) => Err(errors::panicked(py, &panicked, &format!("variant `{variant}`, seed {seed}"))),
    }
}
