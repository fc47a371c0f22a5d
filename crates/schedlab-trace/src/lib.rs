//! Scheduler events, simulated or recorded, and the file formats in which they are stored.
//!
//! One event model ([`Event`]) stands between every reader, every writer, the metrics and the replay. Files are opened
//! with [`open`] and created with [`create`]; both stream, whatever the size of the trace.
//!
//! ```
//! use schedlab_model::CpuId;
//! use schedlab_trace::{Digest, Event, Kind, Sink};
//!
//! let wakeup = Kind::Wakeup { pid: 7, prio: 120, target_cpu: CpuId(1) };
//! let mut digest = Digest::default();
//! digest.event(&Event::new(1_000, CpuId(0), wakeup));
//! assert_eq!(digest.events(), 1);
//! ```

mod continuity;
mod digest;
mod display;
mod divergence;
mod error;
mod event;
mod flags;
mod format;
mod input;
mod item;
mod named;
mod names;
mod output;
mod perf_data;
mod perfetto;
mod record;
#[cfg(test)]
mod round_trip;
mod sink;
mod sniff;
mod state;
#[cfg(test)]
mod testing;
mod text;
mod trace_dat;
mod tracepoint;
mod writer;

pub use continuity::Continuity;
pub use digest::Digest;
pub use divergence::{lockstep, Divergence, Recorder};
pub use error::{Fault, Place, TraceError};
pub use event::{Event, Kind, ScanTimes, TaskState};
pub use flags::Flags;
pub use format::{create, open, open_buffer, Format};
pub use named::{Call, Extension, Lock, Section};
pub use record::{copy, Body, Fields, Header, Record, TraceReader, TraceWriter, Words};
pub use sink::{Discard, Sink, Tee};
