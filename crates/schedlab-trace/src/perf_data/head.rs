//! The file's head and feature sections: what was recorded, where, and how its records are to be read.

use schedlab_model::Pid;

use super::attr::Attrs;
use super::{
    FEATURE_CMDLINE, FEATURE_NRCPUS, FEATURE_OSRELEASE, FEATURE_TRACING_DATA, HEAD_BYTES, MAGIC, PIPE_HEAD_BYTES,
    SIMPLEPERF_FEATURES,
};
use crate::error::{Fault, TraceError};
use crate::input::Bytes;
use crate::record::Header;
use crate::tracepoint::{Cursor, Decoder, Endian, Metadata, Preamble};

/// What precedes and follows the records.
#[derive(Debug)]
pub struct Head {
    pub endian: Endian,
    pub attrs: Attrs,
    pub decoder: Decoder,
    pub names: Vec<(Pid, String)>,
    pub header: Header,
    /// Where the records begin and end.
    pub data: (u64, u64),
    /// Attributes, formats and features are records among the others: the output of perf was a pipe.
    pub pipe: bool,
    /// It has the formats of tracepoints.
    pub formats: bool,
}

/// The fixed part.
struct Fixed {
    attr_size: u64,
    attrs: (u64, u64),
    data: (u64, u64),
    features: [u64; 4],
}

impl Head {
    /// Reads it.
    pub fn read(bytes: &mut Bytes) -> Result<Head, TraceError> {
        let magic: [u8; 8] = bytes.array("the head")?;
        let endian = if magic == *MAGIC { Endian::Little } else { Endian::Big };
        let mut head = Head {
            endian,
            attrs: Attrs::default(),
            decoder: Decoder::default(),
            names: Vec::new(),
            header: Header::default(),
            data: (PIPE_HEAD_BYTES, bytes.size()),
            pipe: false,
            formats: false,
        };
        let Some(fixed) = Fixed::read(bytes, endian)? else {
            head.pipe = true;
            return Ok(head);
        };
        let (offset, size) = fixed.attrs;
        head.attrs = Attrs::read(bytes, endian, offset, size, fixed.attr_size)?;
        let (start, size) = fixed.data;
        let end = start.checked_add(size).filter(|end| *end <= bytes.size());
        let Some(end) = end else { return Err(bytes.fault(start, Fault::Truncated("the records"))) };
        if size == 0 {
            return Err(bytes.malformed(32, "no records: perf did not end its recording"));
        }
        head.data = (start, end);
        head.features(bytes, end, fixed.features)?;
        Ok(head)
    }

    /// The sections whose places stand behind the records, one for each bit set.
    fn features(&mut self, bytes: &mut Bytes, table: u64, bits: [u64; 4]) -> Result<(), TraceError> {
        let set = (0..256u32).filter(|bit| bits[*bit as usize / 64] >> (bit % 64) & 1 == 1);
        let mut simpleperf = false;
        for (index, feature) in set.enumerate() {
            simpleperf |= feature >= SIMPLEPERF_FEATURES;
            bytes.seek(table + 16 * index as u64, "the table of features")?;
            let place = bytes.array::<16>("the table of features")?;
            let (offset, size) = (self.endian.number(&place[..8]), self.endian.number(&place[8..]));
            if ![FEATURE_TRACING_DATA, FEATURE_OSRELEASE, FEATURE_NRCPUS, FEATURE_CMDLINE].contains(&feature) {
                continue;
            }
            bytes.seek(offset, "a feature")?;
            let content = bytes.take(size, "a feature")?;
            match feature {
                FEATURE_TRACING_DATA => {
                    self.tracing_data(&content).map_err(|what| bytes.fault(offset, Fault::Truncated(what)))?;
                }
                _ => self.feature(feature, &content),
            }
        }
        match (self.formats, simpleperf) {
            (true, _) => Ok(()),
            (false, true) => Err(bytes.fault(72, simpleperf_file())),
            (false, false) => Err(bytes.fault(72, no_tracepoints())),
        }
    }

    /// What a feature says about the machine; `content` as in its section.
    pub fn feature(&mut self, feature: u32, content: &[u8]) {
        let mut cursor = Cursor::new(content, self.endian);
        match feature {
            FEATURE_OSRELEASE => self.header.kernel = text(&mut cursor),
            FEATURE_NRCPUS => self.header.nr_cpus = cursor.u32().map(|count| count as usize),
            FEATURE_CMDLINE => self.command_line(&mut cursor),
            _ => {}
        }
    }

    /// The formats of tracepoints.
    pub fn tracing_data(&mut self, content: &[u8]) -> Result<(), &'static str> {
        let mut cursor = Cursor::new(content, self.endian);
        let preamble = Preamble::parse(&mut cursor)?;
        let metadata = Metadata::parse(&mut cursor)?;
        self.decoder = Decoder::new(metadata.formats, preamble.endian);
        self.names = metadata.names;
        self.formats = true;
        Ok(())
    }

    /// The words after this crate's own name are header lines; those of perf become one.
    fn command_line(&mut self, cursor: &mut Cursor<'_>) {
        let count = cursor.u32().unwrap_or(0);
        let words: Vec<String> = (0..count).map_while(|_| text(cursor)).collect();
        match words.split_first() {
            Some((program, lines)) if program == "schedlab" => lines.iter().for_each(|line| self.header.learn(line)),
            _ => self.header.comments.push(format!("cmdline {}", words.join(" "))),
        }
    }
}

impl Fixed {
    /// Reads it; `None` in pipe mode, where there is none.
    fn read(bytes: &mut Bytes, endian: Endian) -> Result<Option<Fixed>, TraceError> {
        let size = endian.number(&bytes.array::<8>("the head")?);
        if size == PIPE_HEAD_BYTES {
            return Ok(None);
        }
        if size != HEAD_BYTES {
            return Err(bytes.malformed(8, format!("a head of {size} bytes")));
        }
        let rest = bytes.array::<88>("the head")?;
        let number = |index: usize| endian.number(&rest[8 * index..8 * index + 8]);
        Ok(Some(Fixed {
            attr_size: number(0),
            attrs: (number(1), number(2)),
            data: (number(3), number(4)),
            features: [number(7), number(8), number(9), number(10)],
        }))
    }
}

/// A recording without tracepoints.
pub fn no_tracepoints() -> Fault {
    Fault::foreign("a recording without tracepoints", "record with perf sched record or perf record -e 'sched:*' -a")
}

fn simpleperf_file() -> Fault {
    let hint =
        "record the scheduler on Android with Perfetto (data source linux.ftrace, events sched/*) or atrace sched";
    Fault::foreign("a recording of simpleperf without tracepoints", hint)
}

/// A string with its padded length before it.
fn text(cursor: &mut Cursor<'_>) -> Option<String> {
    let length = cursor.u32()?;
    let bytes = cursor.take(u64::from(length))?;
    Some(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)).into_owned())
}
