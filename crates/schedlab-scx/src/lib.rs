//! The core of sched_ext (kernel/sched/ext.c of 6.12) with a scheduler that is a BPF object, and random loads that find
//! out whether the scheduler stalls or fails.
//!
//! Not modelled: bypass, control groups, core scheduling, hotplug, tasks of other classes, caches and NUMA nodes in
//! `select_cpu_dfl`, and the time that operations take.

mod class;
mod core;
mod dispatch;
mod kfunc;
mod layout;
mod scheduler;
mod stress;

pub use crate::core::{Exit, ExitKind, TaskNo};
pub use scheduler::Scheduler;
pub use stress::{stress, Outcome, Stress};
