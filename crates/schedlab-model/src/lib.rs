//! The words every other crate speaks: ids, time, weights' carriers, CPU masks, topology.
//!
//! No IO, no clock, nothing that can fail at run time.

mod ids;
mod mask;
mod nearest;
mod rng;
mod topology;
mod vruntime;

pub use ids::{CpuId, KernelId, Pid, TaskId};
pub use mask::{CpuMask, MAX_CPUS};
pub use nearest::{closest, nearest, suggest};
pub use rng::{stream, Stream};
pub use topology::{CpuPlace, Distance, Level, Topology, TopologyError};
pub use vruntime::Vruntime;

/// Nanoseconds: of simulated or of recorded time, always unsigned, counted from the start of the run.
pub type Nanos = u64;

/// One microsecond in [`Nanos`].
pub const USEC: Nanos = 1_000;
/// One millisecond in [`Nanos`].
pub const MSEC: Nanos = 1_000_000;
/// One second in [`Nanos`].
pub const SEC: Nanos = 1_000_000_000;
