//! Scheduler events, simulated or recorded, and the file formats people have for them.
//!
//! One event model ([`Event`]) stands between every reader, every writer, the metrics and the replay.

mod digest;
mod display;
mod divergence;
mod event;
mod sink;
#[cfg(test)]
mod testing;

pub use digest::Digest;
pub use divergence::{lockstep, Divergence, Recorder};
pub use event::{Event, Kind, TaskState};
pub use sink::{Discard, Sink, Tee};
