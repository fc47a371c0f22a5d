//! What-if: the programs of a recorded trace, and the metrics of a simulation of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use schedlab_lab::LabError;
use schedlab_whatif::{Failure, Measure, Metrics};

use crate::errors;
use crate::replay::{find, recorded_row};
use crate::run::Cancel;
use crate::scenario::Scenario;
use crate::traces::{CancellableReader, TraceFailure};

/// Extracts the programs of a trace, recorded on the kernel that it names or on the row `kernel`, as a JSON document.
#[pyfunction]
#[pyo3(signature = (trace, kernel=None, *, cancel=None))]
pub fn whatif(py: Python<'_>, trace: &str, kernel: Option<&str>, cancel: Option<&Cancel>) -> PyResult<String> {
    let flag = cancel.map_or_else(Arc::default, Cancel::flag);
    let extraction = py.detach(|| -> Result<String, TraceFailure> {
        let mut reader = CancellableReader::open(Path::new(trace), None, flag).map_err(TraceFailure::Input)?;
        let row = match kernel {
            Some(name) => find(name)?,
            None => recorded_row(&reader, "--recorded-on")?,
        };
        let extraction = schedlab_whatif::extract(&mut reader, row).map_err(|failure| match failure {
            Failure::Trace(error) => TraceFailure::Input(error),
            Failure::Lacks(message, hint) => TraceFailure::Kernel { message, hint },
        })?;
        // An extraction is plain data with string keys: it always serialises.
        Ok(serde_json::to_string(&extraction).unwrap_or_default())
    });
    extraction.map_err(|failure| errors::trace(py, &failure))
}

/// Runs one variant with one seed and returns the metrics of each pool as a JSON object. `pools` is the pool of each
/// task of the scenario, by name.
#[pyfunction]
#[pyo3(signature = (scenario, variant, seed, pools, *, cancel=None))]
pub fn whatif_run(
    py: Python<'_>,
    scenario: &Scenario,
    variant: &str,
    seed: u64,
    pools: BTreeMap<String, String>,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let spec = scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error))?;
    let watched = Cancel::watch(cancel);
    let work = || -> Result<String, LabError> {
        let mut measure = Measure::default();
        schedlab_lab::simulate(&spec, &mut measure, &watched)?;
        measure.end(spec.duration);
        let found: BTreeMap<String, Metrics> = measure.pools(|_, name| pools.get(name).cloned()).into_iter().collect();
        Ok(serde_json::to_string(&found).unwrap_or_default())
    };
    match py.detach(|| schedlab_lab::guard(work)) {
        Ok(result) => result.map_err(|error| errors::lab(py, &error)),
        Err(panicked) => Err(errors::panicked(py, &panicked, &format!("variant `{variant}`, seed {seed}"))),
    }
}
