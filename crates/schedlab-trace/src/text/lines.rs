//! Lines of a text file, plain or gzipped, one at a time and of bounded length, with a bounded view of those to come.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use crate::error::{Fault, Place, TraceError};

/// Input with longer lines is not a trace.
const LINE_BYTES: usize = 1 << 16;
/// The mark that some editors and Windows programs put before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The source of lines.
pub struct Lines {
    file: PathBuf,
    input: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    /// Lines that were looked at and not yet returned.
    ahead: VecDeque<Vec<u8>>,
    number: u64,
}

impl Lines {
    pub fn new(input: Box<dyn BufRead + Send>, file: &Path) -> Lines {
        Lines { file: file.to_owned(), input, line: Vec::new(), ahead: VecDeque::new(), number: 0 }
    }

    /// Reads the next line; false at the end.
    pub fn advance(&mut self) -> Result<bool, TraceError> {
        self.number += 1;
        if let Some(line) = self.ahead.pop_front() {
            self.line = line;
            return Ok(true);
        }
        let first = self.number == 1;
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let whole = self.read(&mut line)?;
        self.line = line;
        if first && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        match whole {
            Some(false) => {
                Err(self.malformed(format!("a line of more than {LINE_BYTES} bytes: not a trace in text form")))
            }
            whole => Ok(whole.is_some()),
        }
    }

    /// Reads lines of any length up to one that contains `text`, which becomes the line just read; false if none does.
    pub fn skip_to(&mut self, text: &str) -> Result<bool, TraceError> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let Some(whole) = self.read(&mut line)? else { return Ok(false) };
            self.number += u64::from(whole);
            if line.windows(text.len()).any(|part| part == text.as_bytes()) {
                self.line = line;
                return Ok(true);
            }
        }
    }

    /// Looks at up to `most` of the lines that follow, while `wanted` has not returned an answer.
    pub fn look_ahead<T>(
        &mut self,
        most: usize,
        mut wanted: impl FnMut(&str) -> Option<T>,
    ) -> Result<Option<T>, TraceError> {
        for nth in 0..most {
            if nth >= self.ahead.len() {
                let mut line = Vec::new();
                if self.read(&mut line)? != Some(true) && line.is_empty() {
                    break;
                }
                self.ahead.push_back(line);
            }
            let found = self.ahead.get(nth).and_then(|line| wanted(&String::from_utf8_lossy(line)));
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Appends a line without its end, or as much of it as a line may hold. `Some(false)`: it is longer; `None`: the
    /// input has ended.
    fn read(&mut self, line: &mut Vec<u8>) -> Result<Option<bool>, TraceError> {
        let read = self.input.by_ref().take(LINE_BYTES as u64).read_until(b'\n', line);
        let read = read.map_err(|error| self.fault(io_fault(error)))?;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if read == LINE_BYTES {
            return Ok(Some(false));
        }
        Ok((read > 0).then_some(true))
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
