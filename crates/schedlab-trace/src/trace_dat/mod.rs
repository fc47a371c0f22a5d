//! trace-cmd's `trace.dat`, versions 6 and 7: metadata, then the pages of the kernel's ring buffers, per CPU.

mod clock;
mod head;
mod page;
mod pages;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::TraceDatReader;
pub use writer::TraceDatWriter;
