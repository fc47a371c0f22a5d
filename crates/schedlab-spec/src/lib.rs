//! What a run is, fully resolved: the machine and its costs, the kernel, the workloads and the control groups.
//!
//! Data only. `schedlab-scenario` builds a [`RunSpec`] from a file, `schedlab-sim` simulates it, and `schedlab-agent` runs it
//! on a real kernel.

mod cgroup;
mod machine;
mod run;

pub use cgroup::{Cgroup, CpuMax};
pub use machine::{Costs, IdleState, Machine};
pub use run::RunSpec;
