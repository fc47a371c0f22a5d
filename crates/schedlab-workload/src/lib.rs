//! Workloads: task programs, the benchmark catalogue, rt-app files, seeded distributions.
//!
//! A workload is plain data ([`Workload`]). The simulator and the agent execute the same programs.
//!
//! ```
//! use schedlab_workload::catalogue::{self, OptionValue, Where};
//!
//! // `perf bench sched pipe --loop 1000` on a machine with two CPUs.
//! let options = [("loop".to_owned(), OptionValue::Int(1000), Where::default())];
//! let workload = catalogue::build("perf-pipe", &options, "pipe", false, 2)?;
//! assert!(workload.ends, "the benchmark ends by itself");
//! assert!(workload.metrics.iter().any(|metric| metric.name == "usecs_per_op"));
//! assert!(workload.programs.iter().all(|program| !program.ops.is_empty()));
//! # Ok::<(), catalogue::BuildError>(())
//! ```

mod build;
pub mod catalogue;
pub mod cpu_stat;
mod distribution;
pub mod housekeeping;
pub mod identity;
mod local_clients;
mod lower;
mod policy;
mod program;
mod relocate;
mod remote;
pub mod rtapp;
pub mod verbs;
mod workload;

pub use distribution::{Dist, DistError};
pub use lower::lower;
pub use policy::{Deadline, Policy};
pub use program::{
    Amount, DistId, Label, MemoryWork, ObjectId, Op, Program, ProgramId, Reg, Section, SectionContext, TaskKind,
    TimerMode, REGISTERS,
};
pub use remote::{Remote, Sends};
pub use workload::{
    Better, MetricDecl, MetricKind, ObjectSpec, OfTasks, SpinLockSpec, TaskMemory, TaskSpec, Timers, Unit, Workload,
};
