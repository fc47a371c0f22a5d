//! Physics: time, the event queue, machines with CPUs that execute at a rate, kernels on them, and their tasks' programs.
//!
//! [`run`] takes a [`schedlab_spec::RunSpec`] and sends every event of the run to a sink. Decisions come from
//! `schedlab-policy`; this crate alone advances time. From the bottom up: `run` (what all share), `machine`, `kernel`,
//! `programs`, `world` (the event loop), `session` (a run looked at instant by instant).

mod check;
mod error;
mod kernel;
mod machine;
mod programs;
mod run;
mod session;
mod world;

pub use error::SimError;
pub use machine::CpuTime;
pub use run::{EventQueue, Phase, Watch};
pub use session::{CpuView, Decided, Detail, Session, TaskView};
pub use world::{kernel_seed, run, Ended, Outcome, System, Systems, World};
