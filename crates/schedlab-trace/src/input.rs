//! The input of binary readers: a seekable file, with errors that name the offset.

use std::io::{BufRead, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{Fault, Place, TraceError};

/// A source that can be read and is seekable.
pub trait Input: BufRead + Seek + Send {}

impl<T: BufRead + Seek + Send> Input for T {}

/// A binary file being read.
pub struct Bytes {
    input: Box<dyn Input>,
    file: PathBuf,
    position: u64,
    size: u64,
}

impl Bytes {
    pub fn new(mut input: Box<dyn Input>, file: &Path) -> Result<Bytes, TraceError> {
        let size = input.seek(SeekFrom::End(0)).and_then(|size| input.rewind().map(|()| size));
        let failed = |error| TraceError { file: file.to_owned(), at: Place::File, fault: Fault::Io(error) };
        Ok(Bytes { input, file: file.to_owned(), position: 0, size: size.map_err(failed)? })
    }

    /// The offset of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How long the file is.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Moves to an offset within the file.
    pub fn seek(&mut self, to: u64, what: &'static str) -> Result<(), TraceError> {
        if to > self.size {
            return Err(self.fault(self.size, Fault::Truncated(what)));
        }
        self.input.seek(SeekFrom::Start(to)).map_err(|error| self.fault(to, Fault::Io(error)))?;
        self.position = to;
        Ok(())
    }

    /// Reads `length` bytes; no more is allocated than the file holds.
    pub fn take(&mut self, length: u64, what: &'static str) -> Result<Vec<u8>, TraceError> {
        let start = self.position;
        if length > self.size.saturating_sub(start) {
            return Err(self.fault(start, Fault::Truncated(what)));
        }
        let mut bytes = Vec::with_capacity(length as usize);
        let read = self.input.by_ref().take(length).read_to_end(&mut bytes);
        let read = read.map_err(|error| self.fault(start, Fault::Io(error)))? as u64;
        self.position += read;
        if read < length {
            return Err(self.fault(start, Fault::Truncated(what)));
        }
        Ok(bytes)
    }

    /// Reads a fixed number of bytes.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], TraceError> {
        let start = self.position;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.fault(start, Fault::Truncated(what)),
            _ => self.fault(start, Fault::Io(error)),
        })?;
        self.position += N as u64;
        Ok(bytes)
    }

    /// An error at an offset.
    pub fn fault(&self, offset: u64, fault: Fault) -> TraceError {
        TraceError { file: self.file.clone(), at: Place::Byte(offset), fault }
    }

    /// An error at an offset.
    pub fn malformed(&self, offset: u64, what: impl Into<String>) -> TraceError {
        self.fault(offset, Fault::Malformed(what.into()))
    }
}
