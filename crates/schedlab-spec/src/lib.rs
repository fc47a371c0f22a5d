//! The complete description of a run: the machine and its costs, the kernel, the workloads and the control groups.
//!
//! Data only. `schedlab-scenario` builds a [`RunSpec`] from a file, `schedlab-sim` simulates it, and `schedlab-agent`
//! runs it on a real kernel.
//!
//! ```
//! use schedlab_scenario::Scenario;
//!
//! let text = r#"
//! machine = "laptop-8"
//! duration = "1s"
//! workload = [{ use = "hog" }]
//! variant = [{ name = "base", kernel = "6.12.0" }]
//! "#;
//! let spec = Scenario::parse(text, "example.toml", None)?.run_spec("base", 1)?;
//! assert_eq!(spec.machine.topology.nr_cpus(), 8);
//!
//! // The same machine with system calls twice as expensive.
//! let mut machine = (*spec.machine).clone();
//! assert!(machine.scale("syscall", 2.0, 1_000_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod caches;
mod cgroup;
mod frequency;
mod guest;
mod hotplug;
mod machine;
mod physics;
mod run;
mod sections;

pub use caches::{CacheLevel, Caches, FrontEnd, SharedBy};
pub use cgroup::{Cgroup, CpuMax};
pub use frequency::Frequency;
pub use guest::{GuestAction, IdleHint, Platform, PlatformCosts};
pub use hotplug::CpuChange;
pub use machine::{Costs, IdleState, Machine, Memory};
pub use physics::{Mechanism, Physics};
pub use run::{Guest, RunSpec};
pub use sections::CallSections;
