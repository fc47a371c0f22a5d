//! One run: owns machines, kernels and programs, and lets time pass for them.

mod look;
mod outcome;
mod state;

pub use outcome::{Ended, Outcome};
pub use state::{kernel_seed, run, World};
