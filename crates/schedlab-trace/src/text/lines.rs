//! Lines of a text file, plain or gzipped, one at a time and of bounded length.

use std::borrow::Cow;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use crate::error::{Fault, Place, TraceError};

/// Input with longer lines is not a trace.
const LINE_BYTES: usize = 1 << 16;

/// The source of lines.
pub struct Lines {
    file: PathBuf,
    input: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    pub fn new(input: Box<dyn BufRead + Send>, file: &Path) -> Lines {
        Lines { file: file.to_owned(), input, line: Vec::new(), number: 0 }
    }

    /// Reads the next line; false at the end.
    pub fn advance(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        self.number += 1;
        let read = self.input.by_ref().take(LINE_BYTES as u64).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| self.fault(io_fault(error)))?;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if read == LINE_BYTES {
            return Err(self.malformed(format!("a line of more than {LINE_BYTES} bytes: not a trace in text form")));
        }
        Ok(read > 0)
    }

    /// The line just read, without its end. Bytes that are not UTF-8 are replaced.
    pub fn line(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.line.strip_suffix(b"\r").unwrap_or(&self.line))
    }

    /// An error at the line just read.
    pub fn fault(&self, fault: Fault) -> TraceError {
        TraceError { file: self.file.clone(), at: Place::Line(self.number), fault }
    }

    /// An error at the line just read.
    pub fn malformed(&self, what: impl Into<String>) -> TraceError {
        self.fault(Fault::Malformed(what.into()))
    }
}

/// A compressed stream that stops short shows as an unexpected end.
fn io_fault(error: std::io::Error) -> Fault {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Fault::Truncated("the compressed stream"),
        _ => Fault::Io(error),
    }
}
