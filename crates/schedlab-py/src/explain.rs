//! Why the runs of two variants differ, and why a task waits.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use pyo3::prelude::*;
use schedlab_lab::explain::{TaskSelector, WhyError};
use schedlab_lab::{guard, RunSpec};
use serde_json::Value;

use crate::errors;
use crate::run::Cancel;
use crate::scenario::Scenario;

/// The first decision at which the runs of two variants differ, as a JSON document; `null` if their events all agree.
#[pyfunction]
#[pyo3(signature = (scenario, a, b, seed, *, cancel=None))]
pub fn explain(
    py: Python<'_>,
    scenario: &Scenario,
    a: &str,
    b: &str,
    seed: u64,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let spec = |variant: &str| scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error));
    let (first, second) = (spec(a)?, spec(b)?);
    answered(py, cancel, |flag: &AtomicBool| {
        let difference = schedlab_lab::explain::explain([&first, &second], flag)?;
        // Plain data with string keys: it always serialises.
        Ok(serde_json::to_value(difference).unwrap_or_default())
    })
}

/// The decision on which the slow samples of a metric depend, as a JSON document; `null` if not both runs have samples.
#[pyfunction]
#[pyo3(signature = (scenario, a, b, seed, metric, *, cancel=None))]
pub fn explain_metric(
    py: Python<'_>,
    scenario: &Scenario,
    a: &str,
    b: &str,
    seed: u64,
    metric: &str,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let spec = |variant: &str| scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error));
    let (first, second) = (spec(a)?, spec(b)?);
    answered(py, cancel, |flag: &AtomicBool| {
        let difference = schedlab_lab::explain::explain_metric([&first, &second], metric, flag)?;
        Ok(serde_json::to_value(difference).unwrap_or_default())
    })
}

/// Why a task waits, runs or sleeps at one moment, as a JSON document. `task` is a pid or a name.
#[pyfunction]
#[pyo3(signature = (scenario, variant, seed, task, at_ns, *, cancel=None))]
pub fn why(
    py: Python<'_>,
    scenario: &Scenario,
    variant: &str,
    seed: u64,
    task: &str,
    at_ns: u64,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let spec: RunSpec = scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error))?;
    let selector = task.parse().map_or_else(|_| TaskSelector::Name(task.to_owned()), TaskSelector::Pid);
    answered(py, cancel, |flag: &AtomicBool| {
        let why = schedlab_lab::explain::why(&spec, &selector, at_ns, flag)?;
        Ok(serde_json::to_value(why).unwrap_or_default())
    })
}

fn answered(
    py: Python<'_>,
    cancel: Option<&Cancel>,
    work: impl FnOnce(&AtomicBool) -> Result<Value, WhyError> + Send,
) -> PyResult<String> {
    let flag = cancel.map_or_else(Arc::default, Cancel::flag);
    match py.detach(|| guard(|| work(&flag))) {
        Ok(Ok(value)) => Ok(value.to_string()),
        Ok(Err(error)) => Err(errors::why(py, error)),
        Err(panicked) => Err(errors::panicked(py, &panicked, "explain")),
    }
}
