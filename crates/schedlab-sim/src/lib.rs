//! Physics: time, the event queue, CPUs with an execution rate, costs, shared objects, checkers.

mod machine;
mod spec;

pub use machine::{Costs, IdleState, Machine};
pub use spec::RunSpec;
