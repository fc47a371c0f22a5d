//! Perfetto's protobuf traces (`.pftrace`): packets of ftrace events, one bundle per CPU and flush.

mod message;
mod writer;

pub use writer::PerfettoWriter;
