//! Perfetto's protobuf traces (`.pftrace`): packets of ftrace events, one bundle per CPU and flush.

mod expand;
mod left_out;
mod message;
mod packets;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use message::TracePacket;
pub use reader::PerfettoReader;
pub use writer::PerfettoWriter;

/// Track of metric 0; those of the others follow.
const TRACK_BASE: u64 = 0x5ced_1ab0_0000;
/// A generic event that carries one comment line of the header: the format has no other place for it.
const HEADER_EVENT: &str = "schedlab_header";
