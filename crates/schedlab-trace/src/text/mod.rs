//! Text formats, one event a line.

pub mod body;
mod ftrace_writer;
mod lines;
mod reader;

pub use ftrace_writer::FtraceWriter;
pub use reader::TextReader;
