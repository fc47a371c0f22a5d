//! One run from its specification to its report: the engine with metrics, digest and trace file.

mod ablate;
mod determinism;
pub mod explain;
mod guard;
mod header;
mod run;

pub use ablate::{differences, hybrid, Difference};
pub use determinism::{check_determinism, Determinism};
pub use guard::{guard, remember_panics, Panicked};
pub use run::{run, LabError, Run};
pub use schedlab_sim::{SimError, Watch};
pub use schedlab_spec::RunSpec;

/// The engine's version, part of every result.
pub const ENGINE: &str = env!("CARGO_PKG_VERSION");
