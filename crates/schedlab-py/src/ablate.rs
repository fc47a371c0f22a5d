//! Ablation: hybrids of two variants.

use pyo3::prelude::*;
use schedlab_lab::{differences, hybrid};

use crate::errors;
use crate::run::Cancel;
use crate::scenario::Scenario;

/// The differences between variants `a` and `b`, as a JSON list of objects with `name`, `kind`, `a`, `b` and `within`.
#[pyfunction]
pub fn ablation(py: Python<'_>, scenario: &Scenario, a: &str, b: &str) -> PyResult<String> {
    let seed = scenario.0.seeds.first().copied().unwrap_or(1);
    let spec = |variant: &str| scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error));
    let found = differences(&spec(a)?, &spec(b)?);
    // Plain data with string keys: it always serialises.
    Ok(serde_json::to_string(&found).unwrap_or_default())
}

/// Runs variant `a` with the named differences taken from `b` and returns the same document as [`crate::run::run`].
#[pyfunction]
#[pyo3(signature = (scenario, a, b, names, seed, *, cancel=None))]
pub fn run_hybrid(
    py: Python<'_>,
    scenario: &Scenario,
    a: &str,
    b: &str,
    names: Vec<String>,
    seed: u64,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let spec = |variant: &str| scenario.0.run_spec(variant, seed).map_err(|error| errors::scenario(py, *error));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let spec = hybrid(&spec(a)?, &spec(b)?, &names);
    let watched = Cancel::watch(cancel);
    match py.detach(|| schedlab_lab::guard(|| schedlab_lab::run(&spec, None, &watched))) {
        Ok(Ok(run)) => {
            let mut json = run.to_json();
            json["variant"] = a.into();
            json["wall_s"] = 0.into();
            Ok(json.to_string())
        }
        Ok(Err(error)) => Err(errors::lab(py, &error)),
        Err(panicked) => {
            Err(errors::panicked(py, &panicked, &format!("variant `{a}` with {}, seed {seed}", names.join(", "))))
        }
    }
}
