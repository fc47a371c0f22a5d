//! Hybrids of two variants: the first variant with some of the second's differences.

use std::sync::Arc;

use schedlab_policy::Mechanism;
use schedlab_spec::RunSpec;
use serde::Serialize;

/// One difference between two variants.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// The name of the feature, knob, rule or setting.
    pub name: &'static str,
    /// `feature`, `knob`, `rule` or `setting`.
    pub kind: &'static str,
    /// For a rule, the kernel function that it belongs to.
    pub function: Option<&'static str>,
    /// For a rule, the releases that changed it.
    pub since: Option<String>,
    /// The value in the first variant.
    pub a: String,
    /// The value in the second variant.
    pub b: String,
    /// The bundle that it belongs to, if only one of the two variants has that bundle.
    pub within: Option<&'static str>,
}

/// The name of the difference between the variants' task settings.
const TASKS: &str = "tasks";

/// The differences between `a` and `b` in the kernel and in the tasks' settings.
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
        let (a, b) = ("settings of the first variant".to_owned(), "settings of the second variant".to_owned());
        all.push(Difference { name: TASKS, kind: "setting", function: None, since: None, a, b, within: None });
    }
    all
}

/// Returns `a` with the named differences taken from `b`.
#[must_use]
pub fn hybrid(a: &RunSpec, b: &RunSpec, names: &[&str]) -> RunSpec {
    let workloads = if names.contains(&TASKS) { &b.workloads } else { &a.workloads };
    RunSpec { kernel: a.kernel.with(&b.kernel, names), workloads: Arc::clone(workloads), ..a.clone() }
}
