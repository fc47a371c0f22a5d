//! A trace reader that can be cancelled, and its errors.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use schedlab_trace::{Fault, Header, Place, Record, TraceError, TraceReader};

/// A reader that fails once the flag is set.
pub struct CancellableReader {
    reader: Box<dyn TraceReader>,
    file: PathBuf,
    flag: Arc<AtomicBool>,
}

impl CancellableReader {
    pub fn open(path: &Path, buffer: Option<&str>, flag: Arc<AtomicBool>) -> Result<CancellableReader, TraceError> {
        Ok(CancellableReader { reader: schedlab_trace::open_buffer(path, buffer)?, file: path.to_owned(), flag })
    }
}

impl TraceReader for CancellableReader {
    fn header(&self) -> &Header {
        self.reader.header()
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        if self.flag.load(Ordering::Relaxed) {
            let fault = Fault::Io(io::ErrorKind::Interrupted.into());
            return Err(TraceError { file: self.file.clone(), at: Place::File, fault });
        }
        self.reader.next_record()
    }

    fn notes(&self) -> Vec<String> {
        self.reader.notes()
    }
}

/// What went wrong. The kind of failure determines the exit code.
pub enum TraceFailure {
    /// The trace that is read, or an argument.
    Input(TraceError),
    /// The file that is written.
    Output(TraceError),
    /// The file would be written over itself.
    Same(PathBuf),
    /// A kernel that has no row, or a trace that does not name one.
    Kernel { message: String, hint: String },
}

impl TraceFailure {
    /// Whether the error means that reading was cancelled.
    pub fn is_cancelled(error: &TraceError) -> bool {
        matches!(&error.fault, Fault::Io(io) if io.kind() == io::ErrorKind::Interrupted)
    }
}
