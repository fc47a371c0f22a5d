//! The steps of a task's program, as recorded: one after the other, with the recorded lengths.

use schedlab_model::Nanos;

use crate::causes::{Ends, Waits};
use crate::costs::Costs;
use crate::recording::{Act, Task, TaskIndex};

/// A step and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it is.
    pub kind: StepKind,
    /// How long it takes; 0 for steps without a length.
    pub length: Nanos,
}

/// What a step is. Steps of one kind differ in their length only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StepKind {
    /// CPU time.
    Run,
    /// A time from when the task blocks.
    Sleep,
    /// The next expiry of the task's timer.
    Timer,
    /// A unit of the task's own semaphore.
    Wait,
    /// A unit for another task.
    Post(TaskIndex),
    /// An arrival from outside.
    Receive,
    /// A new task.
    Fork(TaskIndex),
    /// Another priority, as `sched_switch` prints it.
    Prio(i32),
    /// The end of the recording.
    Forever,
}

/// The steps of a task. Every step but the last is followed by one of [`StepKind::Run`], perhaps of length 0, so that
/// equal cycles look equal. `costs` are taken out of its work, in which they are recorded.
#[must_use]
pub fn steps(task: &Task, waits: &Waits, costs: Costs) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(task.acts.len());
    let mut ends = waits.ends.iter();
    for act in &task.acts {
        let mut ended = None;
        let (kind, length) = match act {
            Act::Work { time, wakeups, switches } => {
                (StepKind::Run, time.saturating_sub(costs.of(*wakeups, *switches)))
            }
            Act::Wake(wakee) => (StepKind::Post(*wakee), 0),
            Act::Fork(child) => (StepKind::Fork(*child), 0),
            Act::Prio(prio) => (StepKind::Prio(*prio), 0),
            Act::Wait(wait) => {
                ended = ends.next();
                wait_step(*ended.unwrap_or(&Ends::Unknown), wait.to - wait.from)
            }
            Act::Exit | Act::Nothing => continue,
        };
        if let (StepKind::Timer, Some(Ends::Period(missed)), true) = (kind, ended, waits.catches_up) {
            catch_up(&mut steps, *missed);
        }
        push(&mut steps, Step { kind, length });
    }
    steps
}

fn push(steps: &mut Vec<Step>, step: Step) {
    match steps.last_mut() {
        Some(last) if last.kind == StepKind::Run && step.kind == StepKind::Run => last.length += step.length,
        Some(last) if last.kind != StepKind::Run && step.kind != StepKind::Run => {
            steps.extend([Step { kind: StepKind::Run, length: 0 }, step]);
        }
        _ => steps.push(step),
    }
}

/// The work since the last wait was for this many expiries more: each gets its part.
fn catch_up(steps: &mut Vec<Step>, missed: u32) {
    let Some(Step { kind: StepKind::Run, length }) = steps.last().copied() else { return };
    steps.pop();
    let part = length / u64::from(missed + 1);
    for _ in 0..missed {
        steps.extend([Step { kind: StepKind::Run, length: part }, Step { kind: StepKind::Timer, length: 0 }]);
    }
    steps.push(Step { kind: StepKind::Run, length: length - part * u64::from(missed) });
}

fn wait_step(ends: Ends, length: Nanos) -> (StepKind, Nanos) {
    match ends {
        Ends::Task => (StepKind::Wait, 0),
        Ends::Period(_) => (StepKind::Timer, 0),
        Ends::Arrival => (StepKind::Receive, 0),
        Ends::Timer | Ends::Unknown => (StepKind::Sleep, length),
        Ends::End => (StepKind::Forever, 0),
    }
}
