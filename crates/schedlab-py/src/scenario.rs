//! Scenarios: read and validated once, then immutable and shared by all threads.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::errors;

/// A validated scenario.
#[pyclass(frozen, module = "schedlab._engine")]
pub struct Scenario(pub Arc<schedlab_scenario::Scenario>);

#[pymethods]
impl Scenario {
    /// Everything about the scenario, as a JSON document.
    fn describe(&self) -> String {
        self.0.describe().to_string()
    }

    /// Everything that a simulated run of a variant depends on but its seed and the engine, as text for a hash.
    fn spec(&self, py: Python<'_>, variant: &str) -> PyResult<String> {
        let spec = self.0.run_spec(variant, 0).map_err(|error| errors::scenario(py, *error))?;
        Ok(py.detach(|| schedlab_scenario::identity(&spec)))
    }
}

/// Reads a scenario file; `overrides` is a JSON object that replaces top-level keys.
#[pyfunction]
#[pyo3(signature = (path, overrides=None))]
pub fn load(py: Python<'_>, path: &str, overrides: Option<&str>) -> PyResult<Scenario> {
    made(py, path, || schedlab_scenario::Scenario::load(Path::new(path), overrides))
}

/// Reads a scenario from a string; `name` stands for the file in messages.
#[pyfunction]
#[pyo3(signature = (text, name="<scenario>", overrides=None))]
pub fn loads(py: Python<'_>, text: &str, name: &str, overrides: Option<&str>) -> PyResult<Scenario> {
    made(py, name, || schedlab_scenario::Scenario::parse(text, name, overrides))
}

type Read = Result<schedlab_scenario::Scenario, Box<schedlab_scenario::ScenarioError>>;

fn made(py: Python<'_>, name: &str, read: impl FnOnce() -> Read + Send) -> PyResult<Scenario> {
    match py.detach(|| schedlab_lab::guard(read)) {
        Ok(read) => read.map(|scenario| Scenario(Arc::new(scenario))).map_err(|error| errors::scenario(py, *error)),
        Err(panicked) => Err(errors::panicked(py, &panicked, &format!("scenario {name}"))),
    }
}

/// What is available: `machines`, `kernels`, `features`, `workloads`, `knobs` or `studies`, as a JSON list of objects.
#[pyfunction]
#[pyo3(signature = (kind, kernel=None))]
pub fn listing(py: Python<'_>, kind: &str, kernel: Option<&str>) -> PyResult<String> {
    match schedlab_scenario::listing(kind, kernel) {
        Ok(list) => Ok(list.to_string()),
        Err(error) => Err(errors::scenario(py, *error)),
    }
}

/// What changed from one kernel to another, as a JSON object.
#[pyfunction]
pub fn changes(py: Python<'_>, a: &str, b: &str) -> PyResult<String> {
    match schedlab_scenario::changes(a, b) {
        Ok(found) => Ok(found.to_string()),
        Err(error) => Err(errors::scenario(py, *error)),
    }
}
