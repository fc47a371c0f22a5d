//! Why two variants part, and why a task waits.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use pyo3::prelude::*;
use schedlab_lab::explain::{explain as part, why as look, Who, WhyError};
use schedlab_lab::{guard, RunSpec};
use serde_json::Value;

use crate::errors;
use crate::run::Cancel;
use crate::scenario::Scenario;

/// The first decision at which two variants part, as a JSON document; `null` if they never do.
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
        let parting = part([&first, &second], flag)?;
        // Plain data with string keys: it always serialises.
        Ok(serde_json::to_value(parting).unwrap_or_default())
    })
}

/// Why a task waits, runs or sleeps at a moment, as a JSON document. `task`: a pid, or a name.
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
    let who = task.parse().map_or_else(|_| Who::Name(task.to_owned()), Who::Pid);
    answered(py, cancel, |flag: &AtomicBool| {
        let why = look(&spec, &who, at_ns, flag)?;
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
        Err(broken) => Err(errors::broken(py, &broken, "explain")),
    }
}
