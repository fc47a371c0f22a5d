//! Decisions and tasks of the simulator by their pids.

use std::collections::BTreeMap;

use schedlab_model::Pid;
use schedlab_policy::decision::Decision;
pub use schedlab_policy::decision_view::DecisionView;
use schedlab_policy::Version;
use schedlab_sim::{Decided, Session};
use schedlab_trace::Sink;

/// `workload/program` by pid.
pub type TaskNames = BTreeMap<Pid, String>;

/// A decision of the simulator, without the queue.
pub(super) fn tell(kept: &Decided, version: &Version) -> DecisionView {
    DecisionView { looked: kept.looked.clone(), ..tell_alone(&kept.decision, version) }
}

/// The same of a decision of which nothing else was kept.
pub(super) fn tell_alone(decision: &Decision, version: &Version) -> DecisionView {
    DecisionView::of(decision, pid_of(decision), None, version)
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
