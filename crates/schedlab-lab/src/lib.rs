//! One run from its specification to its report: the engine with metrics, digest and trace file.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use schedlab_lab::explain::explain;
//! use schedlab_scenario::Scenario;
//!
//! let text = r#"
//! machine = "laptop-8"
//! duration = "50ms"
//! workload = [{ use = "hog", threads = 16 }]
//! variant = [{ name = "a", kernel = "6.6" }, { name = "b", kernel = "6.6", knobs = { base_slice = "1ms" } }]
//! "#;
//! let scenario = Scenario::parse(text, "example.toml", None)?;
//! let [a, b] = [scenario.run_spec("a", 1)?, scenario.run_spec("b", 1)?];
//! let cancel = AtomicBool::new(false);
//!
//! // The same specification always gives the same events.
//! let run = schedlab_lab::run(&a, None, &cancel)?;
//! assert_eq!(run.digest, schedlab_lab::run(&a, None, &cancel)?.digest);
//! assert!(run.report.metric("sched.switches").is_some_and(|switches| switches > 0.0));
//!
//! // The first decision that differs between two variants.
//! assert_eq!(explain([&a, &a], &cancel)?, None);
//! assert!(explain([&a, &b], &cancel)?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ablate;
mod determinism;
mod erased;
pub mod explain;
mod guard;
mod guests;
mod header;
mod run;
mod tail;
mod timeline;

pub use ablate::{differences, hybrid, Difference};
pub use determinism::{check_determinism, Determinism};
pub use guard::{guard, remember_panics, Panicked};
pub use run::{run, run_keeping, simulate, LabError, Run};
pub use schedlab_sim::{SimError, Watch};
pub use schedlab_spec::RunSpec;
pub use tail::{tail, Kept, Question};
pub use timeline::timeline;

/// The engine's version, part of every result.
pub const ENGINE: &str = env!("CARGO_PKG_VERSION");
