//! Why two variants part, and why a task waits: the first decision that differs, with the queue it was taken from.
//!
//! Nothing is reconstructed: the runs are deterministic, so they are taken again with the policy's decisions recorded.

mod behind;
mod costs;
mod item;
mod lane;
mod part;
mod side_by_side;
mod told;
mod why;

pub use costs::{Costs, Moved};
pub use part::{explain, Parting, Side};
pub use told::{DecisionView, GroupNames, TaskNames};
pub use why::{why, Who, Why, WhyError};
