//! The hardware: CPUs that execute segments of work at a rate, cores that share it, idle states, and what everything
//! costs.
//!
//! Costs are applied here and nowhere else. Nothing here depends on tasks or on a kernel's decisions: a kernel puts a
//! segment on a CPU, charges overhead to it, and reads when it will be through.

mod changed;
mod charge_exit;
mod choose_frequency;
mod cost;
mod cpu;
mod cpuidle;
mod exits;
mod frequency;
mod governed;
mod haltpoll;
mod idle;
mod idle_choice;
mod lines;
mod lock;
mod memory;
mod menu;
mod numa;
mod refill;
mod segment;
mod share_memory;
mod state;
mod stay;
mod teo;
pub mod touched;
mod warmth;

pub use changed::{Changed, Stall};
pub use cost::{CostTables, Dice};
pub use cpu::{Activity, Cpu, CpuTime};
pub use exits::{Exit, Exits, EXITS};
pub use lines::Lines;
pub use lock::{Arrival, Lock};
pub use segment::{Mode, Segment, NS, WORK_SHIFT};
pub use state::Machine;
pub use warmth::Code;
