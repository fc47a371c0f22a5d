//! Raw tracepoint records, as perf.data and trace.dat carry them, and the format files that say how to read them.

mod cursor;
mod decode;
mod encode;
mod format;
mod metadata;

pub use cursor::{Cursor, Endian};
pub use decode::Decoder;
pub use encode::{encode, event_types, tracing_data, EventType, LOST_EVENT, TEXT_EVENT};
pub use format::{Field, Format, Shape};
pub use metadata::{Metadata, PageLayout, Preamble, MAGIC};
