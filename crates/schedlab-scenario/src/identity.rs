//! Everything that identifies a run, as text for a hash.

use std::sync::Arc;

use schedlab_spec::{Guest, RunSpec};
use schedlab_workload::{Program, Workload};

/// Everything that a run depends on. The source lines of programs are left out: they say where a step stands in a file,
/// so that the same scenario with a comment more, or written anew, is the same run.
#[must_use]
pub fn identity(spec: &RunSpec) -> String {
    format!("{:?}", without_lines(spec))
}

fn without_lines(spec: &RunSpec) -> RunSpec {
    let guest = |guest: &Guest| Guest { run: without_lines(&guest.run), ..guest.clone() };
    let program = |program: &Program| Program { lines: Vec::new(), ..program.clone() };
    let workload = |workload: &Workload| Workload {
        programs: workload.programs.iter().map(program).collect(),
        ..workload.clone()
    };
    RunSpec {
        workloads: Arc::new(spec.workloads.iter().map(workload).collect()),
        guests: Arc::new(spec.guests.iter().map(guest).collect()),
        ..spec.clone()
    }
}
