//! The types that all crates share: ids, time, CPU masks, topology, random streams.
//!
//! No IO and no clock; nothing here fails at run time.
//!
//! ```
//! use schedlab_model::{CpuId, CpuMask, Distance, Topology};
//!
//! // One node, two last-level caches of two cores of two threads; siblings have adjacent numbers.
//! let topology = Topology::regular(1, 2, 2, 2, true)?;
//! assert_eq!(topology.nr_cpus(), 8);
//! assert_eq!(topology.distance(CpuId(0), CpuId(1)), Distance::Smt);
//! assert_eq!(topology.llc(CpuId(5)).to_list(), "4-7");
//!
//! let allowed = CpuMask::from_list("0-2,7").unwrap_or_default();
//! assert_eq!(allowed.and(topology.llc(CpuId(5))).lowest(), Some(CpuId(7)));
//!
//! // The same seed and label always give the same numbers.
//! assert_eq!(schedlab_model::stream(1, "cost").next_u64(), schedlab_model::stream(1, "cost").next_u64());
//! # Ok::<(), schedlab_model::TopologyError>(())
//! ```

mod capacity;
mod ids;
mod mask;
mod nearest;
mod rarely;
mod rng;
mod table;
mod ties;
mod topology;
mod vruntime;

pub use capacity::{Capacities, CapacityError, PerfDomain, PerfState, FULL_CAPACITY};
pub use ids::{CpuId, KernelId, Pid, TaskId};
pub use mask::{CpuMask, MAX_CPUS};
pub use nearest::{closest, nearest, suggest};
pub use rarely::rarely;
pub use rng::{stream, Stream};
pub use table::Table;
pub use ties::Ties;
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
