//! Text formats, one event a line.

pub mod body;
mod buffers;
mod columns;
mod ftrace_writer;
mod lines;
mod marks;
mod options;
mod prefix;
mod reader;

pub use buffers::{no_buffer, not_read};
pub use ftrace_writer::FtraceWriter;
pub use reader::TextReader;
