//! Decisions, tasks and groups of the simulator as `explain` reports them: tasks by pid, groups by number.

use std::collections::BTreeMap;

use crate::erased::ErasedSession;
use schedlab_model::Pid;
use schedlab_policy::decision::Decision;
pub use schedlab_policy::decision_view::DecisionView;
use schedlab_policy::Version;
use schedlab_sim::Decided;

/// The name `workload/program` of each task, by pid.
pub type TaskNames = BTreeMap<Pid, String>;

/// A recorded decision with the CPUs that it considered; the queue is left out.
pub(super) fn recorded_view(kept: &Decided, version: &Version) -> DecisionView {
    DecisionView { candidates: kept.candidates.clone(), ..decision_view(&kept.decision, version) }
}

/// A decision that was recorded without its queue and without the CPUs that it considered.
pub(super) fn decision_view(decision: &Decision, version: &Version) -> DecisionView {
    DecisionView::of(decision, pid_of(decision), None, version)
}

/// The pid of the task that a decision of a session is about; `None` if it is about a group.
pub(super) fn pid_of(decision: &Decision) -> Option<Pid> {
    decision.task().map(|task| task.0 as Pid + 1)
}

/// The path of each control group, by number.
pub type GroupNames = BTreeMap<u32, String>;

/// The paths of all groups.
pub(super) fn groups(session: &ErasedSession<'_>) -> GroupNames {
    session.groups().collect()
}

/// The names of all tasks created so far.
pub(super) fn names(session: &ErasedSession<'_>) -> TaskNames {
    session.tasks().map(|task| (task.pid, task.name)).collect()
}
