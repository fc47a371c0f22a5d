//! Why a run stopped before its end.

use schedlab_model::Nanos;

/// A run that could not finish.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SimError {
    /// Every task waits and nothing will ever wake one.
    #[error("deadlock at {}: no task can ever run again; {}", seconds(*.at), .waits.join("; "))]
    Deadlock {
        /// When.
        at: Nanos,
        /// Which tasks wait on what, one phrase each (the first few).
        waits: Vec<String>,
    },
    /// A program's loop takes no time.
    #[error("livelock at {}: task \"{task}\" repeats step {step}{} without taking any time", seconds(*.at), in_line(*.line))]
    Livelock {
        /// When.
        at: Nanos,
        /// The task's name.
        task: String,
        /// The step it was at.
        step: u32,
        /// Its source line.
        line: Option<u32>,
    },
    /// A program did what the kernel refuses.
    #[error("task \"{task}\", step {step}{}: {message}", in_line(*.line))]
    Program {
        /// The task's name.
        task: String,
        /// The step.
        step: u32,
        /// Its source line.
        line: Option<u32>,
        /// What is wrong.
        message: String,
    },
    /// `sched_setattr` refuses SCHED_DEADLINE.
    #[error("task \"{task}\"{}, at {}: {message}", in_line(*.line), seconds(*.at))]
    Deadline {
        /// When.
        at: Nanos,
        /// The task's name.
        task: String,
        /// Its source line.
        line: Option<u32>,
        /// Why.
        message: String,
    },
    /// More tasks than a run can hold.
    #[error("too many tasks at {}: \"{task}\", step {step}{}, forks while {limit} tasks are alive", seconds(*.at), in_line(*.line))]
    TooManyTasks {
        /// When.
        at: Nanos,
        /// The name of the task that forks.
        task: String,
        /// The step it was at.
        step: u32,
        /// Its source line.
        line: Option<u32>,
        /// The largest number of tasks.
        limit: u32,
    },
    /// More tasks at the start than a run can hold.
    #[error("{tasks} tasks at the start, and a run holds at most {limit}")]
    TooManyAtStart {
        /// How many.
        tasks: usize,
        /// The largest number.
        limit: u32,
    },
    /// An invariant does not hold: an error in the laboratory itself.
    #[error("check \"{check}\" failed at {} (event {event}, seed {seed}): {message}", seconds(*.at))]
    Check {
        /// Which check.
        check: &'static str,
        /// When.
        at: Nanos,
        /// How many events had been handled.
        event: u64,
        /// The run's seed.
        seed: u64,
        /// What was found.
        message: String,
    },
    /// Asked to stop.
    #[error("interrupted at {}", seconds(*.at))]
    Cancelled {
        /// When.
        at: Nanos,
    },
}

impl SimError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            SimError::Deadlock { .. } => {
                "every wait needs a task that posts, opens, unlocks or writes; check the order"
            }
            SimError::Livelock { .. } => "give the loop a step that takes time (run, sleep) or that blocks",
            SimError::Program { .. } => "change the step",
            SimError::Deadline { .. } => "lower a runtime, lengthen a period, or take a machine with more CPUs",
            SimError::TooManyTasks { .. } => {
                "bound the loop that forks, or let the children exit: a task that has exited makes room"
            }
            SimError::TooManyAtStart { .. } => "lower `count` or the option that sets the number of tasks",
            SimError::Check { .. } => "this is a defect of schedlab: report it with the scenario and the seed",
            SimError::Cancelled { .. } => "finished runs are kept",
        }
    }
}

fn seconds(at: Nanos) -> String {
    format!("{}.{:09} s", at / 1_000_000_000, at % 1_000_000_000)
}

fn in_line(line: Option<u32>) -> String {
    line.map_or(String::new(), |line| format!(" (line {line})"))
}
