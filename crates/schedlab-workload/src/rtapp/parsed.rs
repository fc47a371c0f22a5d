//! Tasks and phases as they stand in the file.

use schedlab_model::Nanos;

use super::event::Event;
use super::json::At;
use super::props::Props;
use crate::verbs::Times;

/// A phase.
pub(super) struct Phase {
    pub at: At,
    pub times: Times,
    pub props: Props,
    pub events: Vec<(At, Event)>,
}

/// A task.
pub(super) struct Task {
    pub name: String,
    pub at: At,
    pub instances: u32,
    pub delay: Nanos,
    pub times: Times,
    pub props: Props,
    pub phases: Vec<Phase>,
}

impl Task {
    /// The events of all its phases, in order.
    pub fn events(&self) -> impl Iterator<Item = &(At, Event)> {
        self.phases.iter().flat_map(|phase| &phase.events)
    }
}
