//! Scheduler events, simulated or recorded, and the file formats people have for them.
//!
//! One event model ([`Event`]) stands between every reader, every writer, the metrics and the replay.

mod event;
mod sink;

pub use event::{Event, Kind, TaskState};
pub use sink::{Discard, Sink, Tee};
