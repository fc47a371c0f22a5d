//! The program of a task: its cycles, and what it does after the last recorded step.

use schedlab_model::Nanos;

use crate::causes::Waits;
use crate::costs::Costs;
use crate::cycles::{cycles, Part};
use crate::recording::{Act, Task};
use crate::steps::{steps, Step, StepKind};

/// A task's program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Executed once.
    pub first: Vec<Part>,
    /// Repeated after that, without end.
    pub then: Vec<Part>,
    /// The task exits; otherwise it sleeps for longer than any recording where nothing is repeated.
    pub exits: bool,
    /// The period of its timer.
    pub period: Nanos,
    /// What its timer does after a missed expiry.
    pub mode: &'static str,
    /// Waits for other tasks, and those of them outside of a cycle that makes up most of the program.
    pub waits: (u64, u64),
}

/// The share of a task's steps from which on a cycle at the end stands for what follows.
const MAIN: f64 = 0.5;

/// Makes the program of a task.
#[must_use]
pub fn program(task: &Task, waits: &Waits, costs: Costs) -> Program {
    let mut all = steps(task, waits, costs);
    let exits = task.exits();
    let period = waits.period;
    let mode = if waits.catches_up { "absolute" } else { "skip" };
    if !exits {
        last_wait(task, &mut all);
    }
    let parts = cycles(&all);
    let waits = waits_of(&parts, all.len());
    let program = |first, then| Program { first, then, exits, period, mode, waits };
    if exits {
        return program(parts, Vec::new());
    }
    let main = parts.iter().rposition(|part| part.times > 1 && size(part) as f64 >= MAIN * all.len() as f64);
    let forks = |part: &Part| part.steps.iter().any(|(kind, _)| matches!(kind, StepKind::Fork(_)));
    match main.filter(|main| !forks(&parts[*main])) {
        Some(main) => {
            let mut first = parts;
            first.truncate(main + 1);
            let then = first.split_off(main);
            program(first, then)
        }
        // What follows a program without a main cycle is not known, but a task that runs for most of its time and did
        // so at the end goes on.
        None => {
            let work: Nanos = all.iter().filter(|step| step.kind == StepKind::Run).map(|step| step.length).sum();
            let last = all.last().filter(|step| step.kind == StepKind::Run && step.length > 0);
            let goes_on = last.filter(|step| step.length as f64 >= MAIN * work as f64);
            let part = |step: &Step| Part { times: 1, steps: vec![(StepKind::Run, vec![step.length])] };
            program(parts, goes_on.map(part).into_iter().collect())
        }
    }
}

/// A wait that outlasts the recording is repeated with the length that was recorded of it.
fn last_wait(task: &Task, steps: &mut [Step]) {
    if let (Some(Act::Wait(wait)), Some(step)) = (task.acts.last(), steps.last_mut()) {
        if step.kind == StepKind::Forever {
            *step = Step { kind: StepKind::Sleep, length: wait.to - wait.from };
        }
    }
}

/// The waits for other tasks, and those outside of the main cycle.
fn waits_of(parts: &[Part], steps: usize) -> (u64, u64) {
    let of = |part: &Part| (part.steps.iter().filter(|(kind, _)| *kind == StepKind::Wait).count() * part.times) as u64;
    let main = parts.iter().filter(|part| part.times > 1).max_by_key(|part| size(part));
    let regular = main.filter(|part| size(part) as f64 >= MAIN * steps as f64).map_or(0, of);
    let all: u64 = parts.iter().map(of).sum();
    (all, all - regular)
}

fn size(part: &Part) -> usize {
    part.times * part.steps.len()
}

impl Program {
    /// Whether it has a step of this kind.
    pub fn has(&self, wanted: StepKind) -> bool {
        let parts = self.first.iter().chain(&self.then);
        parts.flat_map(|part| &part.steps).any(|(kind, _)| *kind == wanted)
    }
}
