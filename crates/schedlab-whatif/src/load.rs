//! What an extracted scenario says, as data.

use std::collections::BTreeMap;

use schedlab_model::Nanos;

use crate::costs::Costs;
use crate::program::Program;
use crate::settings::Kernel;
use crate::steps::StepKind;

/// Everything that a scenario says.
#[derive(Clone, Debug)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// How long the recording lasted.
    pub span: Nanos,
    /// What a wakeup and a switch took.
    pub costs: Costs,
    /// The recorded kernel.
    pub kernel: Kernel,
    /// The `[topology]` of the machine.
    pub topology: String,
    /// What the recording lacks.
    pub notes: Vec<String>,
    /// Control groups.
    pub groups: Vec<Group>,
    /// The times of the arrivals in each queue, since the start.
    pub queues: BTreeMap<String, Vec<Nanos>>,
    /// The tasks of the scenario.
    pub tasks: Vec<Extracted>,
    /// The name of each task of the recording.
    pub names: Vec<String>,
}

/// A control group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Its path, without the first `/`.
    pub path: String,
    /// The line of its weight.
    pub weight: String,
}

/// A task of the scenario.
#[derive(Clone, Debug)]
pub struct Extracted {
    /// Its name.
    pub name: String,
    /// Whether a step of another task forks it.
    pub forked: bool,
    /// The lines of its attributes.
    pub attributes: String,
    /// Its program.
    pub program: Program,
    /// The queue of its arrivals, which its pool shares.
    pub queue: String,
}

impl Load {
    /// Whether a task waits for others.
    pub fn waits(&self, task: usize) -> bool {
        self.tasks.get(task).is_some_and(|task| task.program.has(StepKind::Wait))
    }
}
