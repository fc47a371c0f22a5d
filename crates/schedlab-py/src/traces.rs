//! A trace being read by something that a person may stop, and what may go wrong with it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use schedlab_trace::{Fault, Header, Place, Record, TraceError, TraceReader};

/// A reader that ends with an error once the flag is set.
pub struct Stoppable {
    reader: Box<dyn TraceReader>,
    file: PathBuf,
    flag: Arc<AtomicBool>,
}

impl Stoppable {
    pub fn open(path: &Path, flag: Arc<AtomicBool>) -> Result<Stoppable, TraceError> {
        Ok(Stoppable { reader: schedlab_trace::open(path)?, file: path.to_owned(), flag })
    }
}

impl TraceReader for Stoppable {
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

    fn lost(&self) -> u64 {
        self.reader.lost()
    }
}

/// Whose fault it is decides the exit code.
pub enum TraceFailure {
    /// The trace that is read, or a name that was typed.
    Input(TraceError),
    /// The file that is written.
    Output(TraceError),
    /// A kernel that has no row, or a trace that does not name one.
    Kernel { message: String, hint: String },
}

impl TraceFailure {
    /// Whether the person stopped it.
    pub fn is_stopped(error: &TraceError) -> bool {
        matches!(&error.fault, Fault::Io(io) if io.kind() == io::ErrorKind::Interrupted)
    }
}
