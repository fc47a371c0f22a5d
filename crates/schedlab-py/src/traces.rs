//! A trace reader that can be cancelled, and its errors.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use schedlab_trace::{Body, Continuity, Fault, Header, Place, Record, TraceError, TraceReader};

/// A reader that fails once the flag is set, and notes where records are missing without a mark of the recorder.
pub struct CancellableReader {
    reader: Box<dyn TraceReader>,
    file: PathBuf,
    flag: Arc<AtomicBool>,
    continuity: Continuity,
    breaks: u64,
}

impl CancellableReader {
    pub fn open(path: &Path, buffer: Option<&str>, flag: Arc<AtomicBool>) -> Result<CancellableReader, TraceError> {
        let reader = schedlab_trace::open_buffer(path, buffer)?;
        Ok(CancellableReader { reader, file: path.to_owned(), flag, continuity: Continuity::default(), breaks: 0 })
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
        let record = self.reader.next_record()?;
        match record.as_ref().map(|record| (record.cpu, &record.body)) {
            Some((cpu, Body::Event(kind, _))) => self.breaks += u64::from(self.continuity.breaks(cpu, kind)),
            Some((_, Body::Lost(_))) => self.continuity.forget(),
            _ => {}
        }
        Ok(record)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.reader.notes();
        if self.breaks > 0 {
            let switches = if self.breaks == 1 { "switch comes" } else { "switches come" };
            notes.push(format!(
                "records are missing without a mark of the recorder: {} {switches} from a task to which the CPU had not switched",
                self.breaks
            ));
        }
        notes
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
