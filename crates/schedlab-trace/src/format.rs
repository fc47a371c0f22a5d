//! One way to open and one to create a trace: by content when reading, by suffix when writing.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::error::{Fault, Place, TraceError};
use crate::input::Input;
use crate::output::Output;
use crate::perf_data::{PerfDataReader, PerfDataWriter};
use crate::perfetto::{PerfettoReader, PerfettoWriter};
use crate::record::{Header, TraceReader, TraceWriter};
use crate::text::{FtraceWriter, TextReader};
use crate::trace_dat::{TraceDatReader, TraceDatWriter};
use crate::writer::Writer;
use crate::{perf_data, tracepoint};

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// ftrace text, as the kernel prints it.
    Ftrace,
    /// Perfetto protobuf.
    Perfetto,
    /// trace-cmd's `trace.dat`.
    TraceDat,
    /// `perf.data`.
    PerfData,
}

/// Suffixes by which a file is written; `.gz` may follow those of text.
const SUFFIXES: [(&str, Format); 6] = [
    (".ftrace", Format::Ftrace),
    (".txt", Format::Ftrace),
    (".pftrace", Format::Perfetto),
    (".perfetto-trace", Format::Perfetto),
    (".dat", Format::TraceDat),
    (".data", Format::PerfData),
];

impl Format {
    /// The format a file of that name is written in.
    pub fn of_path(path: &Path) -> Result<Format, TraceError> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let (name, gzip) = name.strip_suffix(".gz").map_or((name.as_str(), false), |name| (name, true));
        let known = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix)).map(|(_, format)| *format);
        match known {
            Some(format) if gzip && format != Format::Ftrace => Err(unknown(path, "only text is written with .gz")),
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
        Format::Ftrace => Box::new(Writer::new(FtraceWriter::new(out, header))),
        Format::PerfData => Box::new(Writer::new(PerfDataWriter::new(out, header))),
        Format::TraceDat => {
            let scratch = Box::new(Output::scratch(path)?);
            Box::new(Writer::new(TraceDatWriter::new(out, header, scratch)))
        }
        Format::Perfetto => Box::new(Writer::new(PerfettoWriter::new(out, header))),
    })
}

/// Opens a trace, whatever its name: gzip and the format are recognised by the first bytes.
pub fn open(path: &Path) -> Result<Box<dyn TraceReader>, TraceError> {
    let file = File::open(path).map_err(|error| io(path, error))?;
    open_input(Box::new(BufReader::with_capacity(1 << 16, file)), path)
}

/// Opens a trace that comes from anywhere; `path` is what errors call it.
pub(crate) fn open_input(mut input: Box<dyn Input>, path: &Path) -> Result<Box<dyn TraceReader>, TraceError> {
    let magic = input.fill_buf().map_err(|error| io(path, error))?;
    match magic {
        [] => Err(unknown(path, "the file is empty")),
        [0x1f, 0x8b, ..] => open_gzip(input, path),
        magic => match Binary::of(magic) {
            Some(Binary::PerfData) => Ok(Box::new(PerfDataReader::new(input, path)?)),
            Some(Binary::TraceDat) => Ok(Box::new(TraceDatReader::new(input, path)?)),
            Some(Binary::Perfetto) => Ok(Box::new(PerfettoReader::new(input, path)?)),
            None => Ok(Box::new(TextReader::new(input, path)?)),
        },
    }
}

/// Text streams through gzip; binary formats are read by offset, which a compressed stream does not allow.
fn open_gzip(input: Box<dyn Input>, path: &Path) -> Result<Box<dyn TraceReader>, TraceError> {
    let mut input = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(input));
    let magic = input.fill_buf().map_err(|error| io(path, error))?;
    match Binary::of(magic) {
        Some(_) => Err(unknown(path, "a gzipped binary trace: unpack it with gunzip first")),
        None => Ok(Box::new(TextReader::new(Box::new(input), path)?)),
    }
}

/// The binary formats.
enum Binary {
    Perfetto,
    TraceDat,
    PerfData,
}

impl Binary {
    /// The format that begins like this. A Perfetto trace begins with the key of its first packet, a line feed, and
    /// its length: the second byte distinguishes it from text that begins with an empty line.
    fn of(magic: &[u8]) -> Option<Binary> {
        match magic {
            magic if magic.starts_with(tracepoint::MAGIC) => Some(Binary::TraceDat),
            magic if magic.starts_with(perf_data::MAGIC) || magic.starts_with(b"2ELIFREP") => Some(Binary::PerfData),
            [b'\n', length, ..] if !matches!(length, b'\n' | b'\r' | b' ' | b'#') => Some(Binary::Perfetto),
            _ => None,
        }
    }
}

fn io(path: &Path, error: std::io::Error) -> TraceError {
    TraceError { file: path.to_owned(), at: Place::File, fault: Fault::Io(error) }
}

fn unknown(path: &Path, what: &str) -> TraceError {
    TraceError { file: path.to_owned(), at: Place::File, fault: Fault::UnknownFormat(what.to_owned()) }
}
