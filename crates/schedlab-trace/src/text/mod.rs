//! Text formats, one event a line.

pub mod body;
mod ftrace_reader;
mod ftrace_writer;
mod lines;

pub use ftrace_reader::FtraceReader;
pub use ftrace_writer::FtraceWriter;
