//! The agent: the same task programs on real threads and processes of the running kernel.
//!
//! The agent is one static binary without Python. It parses a scenario, runs one variant with one seed and writes the
//! same report as the simulator: application events, timestamped in the programs, and the kernel's scheduler
//! tracepoints are reduced to metrics by the same code ([`schedlab_metrics`]).

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
mod launch;
mod life;
mod log;
mod memory;
mod memory_work;
mod merge;
mod objects;
mod probe;
pub mod program;
mod program_results;
mod result;
mod run;
pub mod sections;
mod settings;
mod shared_state;
mod start;
mod stream;
mod supervise;
mod sync;
#[allow(unsafe_code)]
mod sys;
mod task;
mod tracing;

pub use error::{AgentError, Result};
pub use probe::probe;
pub use run::run;
pub use settings::Settings;
