//! Runs between two variants: one with some of what the other does differently.

use std::sync::Arc;

use schedlab_policy::Mechanism;
use schedlab_spec::RunSpec;
use serde::Serialize;

/// A difference of two variants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// What it is called.
    pub name: &'static str,
    /// `feature`, `knob`, `rule` or `setting`.
    pub kind: &'static str,
    /// Of a rule, the kernel's function that follows it.
    pub function: Option<&'static str>,
    /// Of a rule, the releases that changed it.
    pub since: Option<String>,
    /// What the first has.
    pub a: String,
    /// What the second has.
    pub b: String,
    /// The bundle that takes it along, if only one of the two has it.
    pub within: Option<&'static str>,
}

/// What the variants set for their tasks differs.
const TASKS: &str = "tasks";

/// What `b` does differently from `a`, as far as the kernels and the tasks' settings go.
#[must_use]
pub fn differences(a: &RunSpec, b: &RunSpec) -> Vec<Difference> {
    let kernel = a.kernel.differences(&b.kernel).into_iter();
    let difference = |found: Mechanism| {
        let Mechanism { name, kind, place, a, b, within, .. } = found;
        let (function, since) = place.unzip();
        Difference { name, kind: kind.name(), function, since, a, b, within }
    };
    let mut all: Vec<Difference> = kernel.map(difference).collect();
    if a.workloads != b.workloads {
        let (a, b) = ("as this variant sets them".to_owned(), "as that variant sets them".to_owned());
        all.push(Difference { name: TASKS, kind: "setting", function: None, since: None, a, b, within: None });
    }
    all
}

/// `a` with some of the differences, by name, taken from `b`.
#[must_use]
pub fn hybrid(a: &RunSpec, b: &RunSpec, names: &[&str]) -> RunSpec {
    let workloads = if names.contains(&TASKS) { &b.workloads } else { &a.workloads };
    RunSpec { kernel: a.kernel.with(&b.kernel, names), workloads: Arc::clone(workloads), ..a.clone() }
}
