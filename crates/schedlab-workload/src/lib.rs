//! What runs: task programs, the benchmark catalogue, rt-app files, seeded distributions.
//!
//! A workload is plain data ([`Workload`]). The simulator and the agent execute the same programs.

mod build;
pub mod catalogue;
pub mod cpu_stat;
mod distribution;
pub mod identity;
mod lower;
mod program;
pub mod rtapp;
pub mod verbs;
mod workload;

pub use distribution::{Dist, DistError};
pub use lower::lower;
pub use program::{Amount, DistId, Label, ObjectId, Op, Program, ProgramId, Reg, TaskKind, REGISTERS};
pub use workload::{Better, MetricDecl, MetricKind, ObjectSpec, Policy, TaskSpec, TimerMode, Unit, Workload};
