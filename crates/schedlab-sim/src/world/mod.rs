//! One run: owns machines, kernels and programs, and lets time pass for them.

mod look;
mod outcome;
mod state;
mod system;

pub use outcome::{Ended, Outcome};
pub use state::{run, World};
pub use system::{kernel_seed, System, Systems};
