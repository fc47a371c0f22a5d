//! One way to open and one to create a trace: by content when reading, by suffix when writing.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use crate::error::{Fault, Place, TraceError};
use crate::input::Input;
use crate::output::Output;
use crate::perf_data::{PerfDataReader, PerfDataWriter};
use crate::perfetto::{PerfettoReader, PerfettoWriter};
use crate::record::{Header, TraceReader, TraceWriter};
use crate::sniff::{self, Content};
use crate::text::{FtraceWriter, TextReader};
use crate::trace_dat::{TraceDatReader, TraceDatWriter};
use crate::writer::Writer;

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
    open_buffer(path, None)
}

/// Opens a trace. Of several ring buffers, as trace-cmd records them, the one of this name is read; by default the top
/// one, or the first one if the top one has no events.
pub fn open_buffer(path: &Path, buffer: Option<&str>) -> Result<Box<dyn TraceReader>, TraceError> {
    if path.is_dir() {
        return Err(TraceError { file: path.to_owned(), at: Place::File, fault: sniff::directory(path) });
    }
    let file = File::open(path).map_err(|error| io(path, error))?;
    open_input(Box::new(BufReader::with_capacity(1 << 16, file)), path, buffer)
}

/// Opens a trace that comes from anywhere; `path` is what errors call it.
pub(crate) fn open_input(
    mut input: Box<dyn Input>,
    path: &Path,
    buffer: Option<&str>,
) -> Result<Box<dyn TraceReader>, TraceError> {
    let content = content(&mut *input, path)?;
    if let (Some(name), Content::PerfData | Content::Perfetto) = (buffer, content) {
        let what = format!("no buffer '{name}': this format holds a single one");
        return Err(TraceError { file: path.to_owned(), at: Place::File, fault: TraceError::not_a_trace(what) });
    }
    match content {
        Content::Gzip => open_gzip(input, path, buffer),
        Content::PerfData => Ok(Box::new(PerfDataReader::new(input, path)?)),
        Content::TraceDat => Ok(Box::new(TraceDatReader::new(input, path, buffer)?)),
        Content::Perfetto => Ok(Box::new(PerfettoReader::new(input, path)?)),
        Content::Text => Ok(Box::new(TextReader::new(input, path, buffer)?)),
        Content::Atrace => {
            input.consume(sniff::ATRACE.len());
            let text = BufReader::with_capacity(1 << 16, ZlibDecoder::new(input));
            Ok(Box::new(TextReader::new(Box::new(text), path, buffer)?))
        }
    }
}

/// Text streams through gzip; binary formats are read by offset, which a compressed stream does not allow.
fn open_gzip(input: Box<dyn Input>, path: &Path, buffer: Option<&str>) -> Result<Box<dyn TraceReader>, TraceError> {
    let mut input = BufReader::with_capacity(1 << 16, MultiGzDecoder::new(input));
    match content(&mut input, path)? {
        Content::Text => Ok(Box::new(TextReader::new(Box::new(input), path, buffer)?)),
        _ => {
            let fault = Fault::foreign("a gzipped binary trace", "unpack it with gunzip first");
            Err(TraceError { file: path.to_owned(), at: Place::File, fault })
        }
    }
}

fn content(input: &mut (impl BufRead + ?Sized), path: &Path) -> Result<Content, TraceError> {
    let start = input.fill_buf().map_err(|error| io(path, error))?;
    Content::of(start).map_err(|fault| TraceError { file: path.to_owned(), at: Place::File, fault })
}

fn io(path: &Path, error: std::io::Error) -> TraceError {
    TraceError { file: path.to_owned(), at: Place::File, fault: Fault::Io(error) }
}

fn unknown(path: &Path, what: &str) -> TraceError {
    TraceError { file: path.to_owned(), at: Place::File, fault: Fault::UnknownFormat(what.to_owned()) }
}
