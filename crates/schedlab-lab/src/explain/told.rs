//! Decisions and tasks of the simulator by their pids.

use std::collections::BTreeMap;

use schedlab_model::Pid;
use schedlab_policy::decision::Decision;
use schedlab_policy::fair::QueueView;
pub use schedlab_policy::told::Told;
use schedlab_policy::Version;
use schedlab_sim::Session;
use schedlab_trace::Sink;

/// `workload/program` by pid.
pub type TaskNames = BTreeMap<Pid, String>;

/// A decision of the simulator.
pub(super) fn tell(decision: &Decision, queue: Option<QueueView>, version: &Version) -> Told {
    Told::of(decision, pid_of(decision), queue, version)
}

/// Traces count tasks from 1. A decision about a group has none.
pub(super) fn pid_of(decision: &Decision) -> Option<Pid> {
    decision.task().map(|task| task.0 as Pid + 1)
}

/// Paths of groups by their number.
pub type GroupNames = BTreeMap<u32, String>;

/// The names of every group.
pub(super) fn groups<S: Sink>(session: &Session<'_, S>) -> GroupNames {
    session.groups().collect()
}

/// The names of every task so far.
pub(super) fn names<S: Sink>(session: &Session<'_, S>) -> TaskNames {
    session.tasks().map(|task| (task.pid, task.name)).collect()
}
