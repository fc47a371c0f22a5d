//! The simulator: time, the event queue, machines whose CPUs execute at a rate, kernels on them, and the tasks'
//! programs.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use schedlab_scenario::Scenario;
//! use schedlab_trace::Digest;
//!
//! let text = r#"
//! machine = "laptop-8"
//! duration = "20ms"
//! workload = [{ use = "hog", threads = 3 }]
//! variant = [{ name = "base", kernel = "6.12.0" }]
//! "#;
//! let spec = Scenario::parse(text, "example.toml", None)?.run_spec("base", 1)?;
//! let mut digest = Digest::default();
//! let outcome = schedlab_sim::run(&spec, &mut digest, &AtomicBool::new(false))?;
//! assert_eq!(outcome.now, 20_000_000);
//! assert!(outcome.switches > 0 && digest.events() > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`run`] takes a [`schedlab_spec::RunSpec`] and sends every event of the run to a sink. Decisions come from
//! `schedlab-policy`; this crate alone advances time. From the bottom up: `run` (what all share), `machine`, `kernel`,
//! `programs`, `world` (the event loop), `session` (a run that is advanced instant by instant).

mod check;
mod error;
mod kernel;
mod machine;
mod programs;
mod run;
mod session;
mod world;

pub use error::SimError;
pub use kernel::{Life, Placements};
pub use machine::CpuTime;
pub use run::{EventQueue, Phase, Watch};
pub use session::{CpuView, Decided, Detail, Session, TaskView};
pub use world::{
    kernel_seed, run, run_virtual, Ended, GuestReport, Outcome, System, Systems, VcpuTime, VirtualSystems, World,
};
