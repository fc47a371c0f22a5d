//! One way to open and one to create a trace: by content when reading, by suffix when writing.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::error::{Fault, Place, TraceError};
use crate::output::Output;
use crate::perfetto::PerfettoWriter;
use crate::record::{Header, TraceReader, TraceWriter};
use crate::text::{FtraceReader, FtraceWriter};

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// ftrace text, as the kernel prints it.
    Ftrace,
    /// Perfetto protobuf.
    Perfetto,
}

/// Suffixes by which a file is written; `.gz` may follow those of text.
const SUFFIXES: [(&str, Format); 4] = [
    (".ftrace", Format::Ftrace),
    (".txt", Format::Ftrace),
    (".pftrace", Format::Perfetto),
    (".perfetto-trace", Format::Perfetto),
];

impl Format {
    /// The format a file of that name is written in.
    pub fn of_path(path: &Path) -> Result<Format, TraceError> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let (name, gzip) = name.strip_suffix(".gz").map_or((name.as_str(), false), |name| (name, true));
        let known = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix)).map(|(_, format)| *format);
        match known {
            Some(Format::Perfetto) if gzip => Err(unknown(path, "Perfetto traces are written without .gz")),
            Some(format) => Ok(format),
            None => Err(unknown(path, "no trace format has this suffix")),
        }
    }
}

/// Creates a trace file in the format of its suffix.
pub fn create(path: &Path, header: &Header) -> Result<Box<dyn TraceWriter>, TraceError> {
    let format = Format::of_path(path)?;
    let out = Output::create(path)?;
    Ok(match format {
        Format::Ftrace => Box::new(FtraceWriter::new(out, header)),
        Format::Perfetto => Box::new(PerfettoWriter::new(out, header)),
    })
}

/// Opens a trace, whatever its name: gzip and the format are told by the first bytes.
pub fn open(path: &Path) -> Result<Box<dyn TraceReader>, TraceError> {
    let file = File::open(path).map_err(|error| io(path, error))?;
    open_stream(Box::new(BufReader::with_capacity(1 << 16, file)), path)
}

/// Opens a trace that comes from anywhere; `path` is what errors call it.
pub(crate) fn open_stream(mut input: Box<dyn BufRead + Send>, path: &Path) -> Result<Box<dyn TraceReader>, TraceError> {
    if input.fill_buf().map_err(|error| io(path, error))?.starts_with(&[0x1f, 0x8b]) {
        input = Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(input)));
    }
    Ok(Box::new(FtraceReader::new(input, path)?))
}

fn io(path: &Path, error: std::io::Error) -> TraceError {
    TraceError { file: path.to_owned(), at: Place::File, fault: Fault::Io(error) }
}

fn unknown(path: &Path, what: &str) -> TraceError {
    TraceError { file: path.to_owned(), at: Place::File, fault: Fault::UnknownFormat(what.to_owned()) }
}
