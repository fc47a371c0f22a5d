//! The file's head and feature sections: what was recorded, where, and how its records are to be read.

use schedlab_model::Pid;

use super::attr::Attrs;
use super::{FEATURE_CMDLINE, FEATURE_NRCPUS, FEATURE_OSRELEASE, FEATURE_TRACING_DATA, HEAD_BYTES, MAGIC};
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
        let fixed = Fixed::read(bytes, endian)?;
        let (offset, size) = fixed.attrs;
        let attrs = Attrs::read(bytes, endian, offset, size, fixed.attr_size)?;
        let (start, size) = fixed.data;
        let end = start.checked_add(size).filter(|end| *end <= bytes.size());
        let Some(end) = end else { return Err(bytes.fault(start, Fault::Truncated("the records"))) };
        if size == 0 {
            return Err(bytes.malformed(32, "no records: perf did not end its recording"));
        }
        let mut head = Head {
            endian,
            attrs,
            decoder: Decoder::default(),
            names: Vec::new(),
            header: Header::default(),
            data: (start, end),
        };
        head.features(bytes, end, fixed.features)?;
        Ok(head)
    }

    /// The sections whose places stand behind the records, one for each bit set.
    fn features(&mut self, bytes: &mut Bytes, table: u64, bits: [u64; 4]) -> Result<(), TraceError> {
        let set = (0..256u32).filter(|bit| bits[*bit as usize / 64] >> (bit % 64) & 1 == 1);
        let mut present = false;
        for (index, feature) in set.enumerate() {
            bytes.seek(table + 16 * index as u64, "the table of features")?;
            let place = bytes.array::<16>("the table of features")?;
            let (offset, size) = (self.endian.number(&place[..8]), self.endian.number(&place[8..]));
            if ![FEATURE_TRACING_DATA, FEATURE_OSRELEASE, FEATURE_NRCPUS, FEATURE_CMDLINE].contains(&feature) {
                continue;
            }
            bytes.seek(offset, "a feature")?;
            let content = bytes.take(size, "a feature")?;
            let mut cursor = Cursor::new(&content, self.endian);
            match feature {
                FEATURE_TRACING_DATA => {
                    self.tracing_data(&mut cursor).map_err(|what| bytes.fault(offset, Fault::Truncated(what)))?;
                    present = true;
                }
                FEATURE_OSRELEASE => self.header.kernel = text(&mut cursor),
                FEATURE_NRCPUS => self.header.nr_cpus = cursor.u32().map(|count| count as usize),
                _ => self.command_line(&mut cursor),
            }
        }
        match present {
            true => Ok(()),
            false => {
                Err(bytes.malformed(72, "no tracepoints: record with perf sched record or perf record -e sched:*"))
            }
        }
    }

    fn tracing_data(&mut self, cursor: &mut Cursor<'_>) -> Result<(), &'static str> {
        let preamble = Preamble::parse(cursor)?;
        let metadata = Metadata::parse(cursor)?;
        self.decoder = Decoder::new(metadata.formats, preamble.endian);
        self.names = metadata.names;
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
    fn read(bytes: &mut Bytes, endian: Endian) -> Result<Fixed, TraceError> {
        let size = endian.number(&bytes.array::<8>("the head")?);
        if size == 16 {
            return Err(bytes.malformed(8, "perf.data in pipe mode; write a file with perf inject -i IN -o OUT"));
        }
        if size != HEAD_BYTES {
            return Err(bytes.malformed(8, format!("a head of {size} bytes")));
        }
        let rest = bytes.array::<88>("the head")?;
        let number = |index: usize| endian.number(&rest[8 * index..8 * index + 8]);
        Ok(Fixed {
            attr_size: number(0),
            attrs: (number(1), number(2)),
            data: (number(3), number(4)),
            features: [number(7), number(8), number(9), number(10)],
        })
    }
}

/// A string with its padded length before it.
fn text(cursor: &mut Cursor<'_>) -> Option<String> {
    let length = cursor.u32()?;
    let bytes = cursor.take(u64::from(length))?;
    Some(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)).into_owned())
}
