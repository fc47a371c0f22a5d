//! The agent: the same task programs on real threads and processes of the running kernel.
//!
//! One binary without Python. It parses a scenario, runs one variant with one seed, and writes the report that the
//! simulator writes: application events stamped in the programs and the kernel's own scheduler tracepoints go through
//! the same reduction ([`schedlab_metrics`]).

mod attributes;
mod burn;
pub mod calibrate;
mod calls;
mod cgroups;
mod clock;
mod counters;
mod error;
mod exec;
mod inherited;
mod life;
mod log;
mod memory;
mod merge;
mod objects;
mod probe;
pub mod program;
mod reals;
mod result;
mod run;
mod settings;
mod start;
mod supervise;
#[allow(unsafe_code)]
mod sys;
mod task;
mod tracing;
mod words;
mod world;

pub use error::{AgentError, Result};
pub use probe::probe;
pub use run::run;
pub use settings::Settings;
