//! Studies: the description of a study file and the scenarios of its cases.

use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use schedlab_scenario::StudyOptions;

use crate::errors;
use crate::scenario::Scenario;

/// A validated study.
#[pyclass(frozen, module = "schedlab._engine")]
pub struct Study(schedlab_scenario::Study);

#[pymethods]
impl Study {
    /// Everything about the study, as a JSON document; a case refers to its scenario by number.
    fn describe(&self) -> String {
        self.0.describe().to_string()
    }

    /// The scenario with that number.
    fn scenario(&self, number: usize) -> PyResult<Scenario> {
        let scenario = self.0.scenario(number).map(|scenario| Scenario(Arc::clone(scenario)));
        scenario.ok_or_else(|| PyIndexError::new_err(format!("the study has no scenario {number}")))
    }
}

/// Reads a study by its id or path; `units` is the number of runs per variant, six by default.
#[pyfunction]
#[pyo3(signature = (name, short=false, units=None))]
pub fn load_study(py: Python<'_>, name: &str, short: bool, units: Option<u64>) -> PyResult<Study> {
    let defaults = StudyOptions::default();
    let options = StudyOptions { short, units: units.unwrap_or(defaults.units) };
    match py.detach(|| schedlab_lab::guard(|| schedlab_scenario::Study::load(name, &options))) {
        Ok(read) => read.map(Study).map_err(|error| errors::scenario(py, *error)),
        Err(panicked) => Err(errors::panicked(py, &panicked, &format!("study {name}"))),
    }
}
