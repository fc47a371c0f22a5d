//! Physics: time, the event queue, CPUs with an execution rate, costs, shared objects, checkers.
//!
//! [`run`] takes a [`schedlab_spec::RunSpec`] and sends every event of the run to a sink. Decisions come from `schedlab-policy`; this
//! crate alone advances time.

mod cgroup;
mod channel;
mod check;
mod cost;
mod cpu;
mod dispatch;
mod effect;
mod engine;
mod error;
mod exec;
mod interrupts;
mod look;
mod objects;
mod queue;
mod session;
mod setup;
mod spawn;
mod sync;
mod task;
mod wake;

pub use cpu::CpuTime;
pub use engine::{run, Ended, Outcome};
pub use error::SimError;
pub use queue::{EventQueue, Phase};
pub use session::{CpuView, Decided, Detail, Session, TaskView};
