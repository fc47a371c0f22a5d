//! Why the runs of two variants differ, and why a task waits: the first decision that differs, with the state of the
//! queue at that moment; and on which decisions the slow samples of a metric depend.
//!
//! Nothing is reconstructed. Runs are deterministic, so they are repeated with the policy's decisions recorded.

mod costs;
mod first_difference;
mod metric;
mod question;
mod samples;
mod sched_event;
mod side_by_side;
mod stepper;
mod views;
mod waits;
mod why;

pub use costs::{Costs, MovedEvent};
pub use first_difference::{explain, FirstDifference, Side};
pub use metric::{explain_metric, Cause, MetricDifference, Rule, Shown};
pub use question::Question;
pub use schedlab_policy::decision_view::{ActionKind, TaskState};
pub use views::{DecisionView, GroupNames, TaskNames};
pub use why::{why, TaskSelector, Why, WhyError};
