//! One run: owns machines, kernels and programs, and advances their time.

mod actions;
mod host_side;
mod housekeeping;
mod idle_hints;
mod look;
mod outcome;
mod pause_loop;
mod power;
mod state;
mod system;
mod vcpu;
mod vcpu_threads;
mod vcpu_wakeup;
mod virtual_systems;

pub use outcome::{Ended, Outcome};
pub use state::{run, run_virtual, World};
pub use system::{kernel_seed, System, Systems};
pub use vcpu::VcpuTime;
pub use virtual_systems::{GuestReport, VirtualSystems};
