//! Why a trace could not be read or written: the file, the place in it, what was found, and what would help.

use std::io;
use std::path::PathBuf;

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
#[error("{}{at}: {fault}", .file.display())]
pub struct TraceError {
    /// The file.
    pub file: PathBuf,
    /// The place in it.
    pub at: Place,
    /// What was found there.
    pub fault: Fault,
}

/// A place in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of text, from 1 (of the uncompressed text).
    Line(u64),
    /// A byte offset (of the uncompressed content).
    Byte(u64),
}

/// What was found.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The content is not what its format says.
    #[error("{0}")]
    Malformed(String),
    /// The content ends in the middle of something.
    #[error("the file ends inside {0}")]
    Truncated(&'static str),
    /// Events are not in time order.
    #[error("time goes back from {before} to {after} ns")]
    Backwards {
        /// Time of the event before.
        before: u64,
        /// Time of this event.
        after: u64,
    },
    /// There is no writer for the format.
    #[error("{0}")]
    UnknownFormat(String),
    /// The content is whole, but it is not read.
    #[error("{what}")]
    Foreign {
        /// What it is.
        what: String,
        /// How to get what can be read.
        hint: String,
    },
}

/// The formats, for errors.
const KNOWN: &str = "known: .ftrace .txt (text of ftrace, trace-cmd report or perf script, also with .gz), .pftrace \
                     (Perfetto), .dat (trace-cmd), .data (perf)";

impl Fault {
    /// A file that is not read.
    pub(crate) fn foreign(what: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault::Foreign { what: what.into(), hint: hint.into() }
    }
}

impl TraceError {
    /// What the user can do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match &self.fault {
            Fault::Truncated(_) => Some("the recording was cut short: record again, or cut the file at a whole event"),
            Fault::Backwards { .. } => {
                Some("sort the trace by time; ftrace, perf script and trace-cmd report already do")
            }
            Fault::UnknownFormat(_) => Some(KNOWN),
            Fault::Malformed(_) => Some("the file is damaged there"),
            Fault::Foreign { hint, .. } => Some(hint),
            Fault::Io(_) => None,
        }
    }

    /// An error about something that is whole but is not read.
    pub(crate) fn not_a_trace(what: String) -> Fault {
        Fault::foreign(what, KNOWN)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::File => Ok(()),
            Place::Line(line) => write!(f, ":{line}"),
            Place::Byte(offset) => write!(f, ": byte {offset}"),
        }
    }
}
