//! Everything before the pages: formats, names, options, and where each CPU's pages lie.

use std::io::Read;

use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;
use schedlab_model::{CpuId, MAX_CPUS};

use super::clock::{self, Clock};
use crate::error::{Fault, TraceError};
use crate::input::Bytes;
use crate::record::Header;
use crate::text::no_buffer;
use crate::tracepoint::{Cursor, Endian, Metadata, Preamble};

/// No part of the metadata is larger.
const PART_BYTES: u64 = 256 << 20;
/// What version 6 writes before the places of the pages.
pub const FLYRECORD: &[u8] = b"flyrecord\0";
/// What helps with a file that only trace-cmd reads.
const AS_TEXT: &str = "print it as text: trace-cmd report FILE > trace.txt";
/// No file has more option sections.
const OPTION_SECTIONS: usize = 1000;

/// What precedes the pages.
#[derive(Debug)]
pub struct Head {
    pub endian: Endian,
    pub page_size: u32,
    pub metadata: Metadata,
    pub header: Header,
    pub compression: Compression,
    /// The top buffer first.
    pub buffers: Vec<Buffer>,
    /// The clock of the recording, and the multiplier of the CPU's counter.
    clock: Option<String>,
    scale: Option<(u32, u32)>,
}

/// One ring buffer, which has a part for each CPU.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Buffer {
    /// Empty for the top buffer.
    pub name: String,
    clock: Option<String>,
    pub cpus: Vec<CpuBuffer>,
}

impl Buffer {
    fn has_events(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.size > 0)
    }
}

/// Where one CPU's pages lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuBuffer {
    pub cpu: CpuId,
    pub offset: u64,
    pub size: u64,
    pub compressed: bool,
}

/// How sections and pages are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    None,
    Zlib,
    Zstd,
}

// Ids of options.
const DONE: u16 = 0;
const BUFFER: u16 = 3;
const TRACECLOCK: u16 = 4;
pub const UNAME: u16 = 5;
pub const CPUCOUNT: u16 = 8;
pub const VERSION: u16 = 9;
const TSC2NSEC: u16 = 14;
const HEADER_INFO: u16 = 16;
const FTRACE_EVENTS: u16 = 17;
const EVENT_FORMATS: u16 = 18;
const CMDLINES: u16 = 21;

impl Compression {
    /// Unpacks one block. The error says what is wrong with it.
    pub fn unpack(self, block: &[u8], size: u64) -> Result<Vec<u8>, String> {
        if size > PART_BYTES {
            return Err(format!("a compressed block that claims to unpack to {size} bytes"));
        }
        let mut content = Vec::new();
        let read = match self {
            Compression::None => Err("a compressed block in a file without compression".to_owned())?,
            Compression::Zlib => ZlibDecoder::new(block).take(size).read_to_end(&mut content),
            Compression::Zstd => {
                let decoder = StreamingDecoder::new(block).map_err(|error| format!("zstd: {error}"))?;
                decoder.take(size).read_to_end(&mut content)
            }
        };
        read.map_err(|error| format!("a compressed block: {error}"))?;
        Ok(content)
    }
}

impl Head {
    /// Reads it.
    pub fn read(bytes: &mut Bytes) -> Result<Head, TraceError> {
        // Version 6 does not say how long its metadata is: read more until it is whole.
        let mut length = 1 << 20;
        loop {
            bytes.seek(0, "the head")?;
            let content = bytes.take(bytes.size().min(length), "the head")?;
            let mut cursor = Cursor::new(&content, Endian::Little);
            match Head::parse(&mut cursor, bytes) {
                Err(HeadError::Ends(_)) if length < bytes.size() && length < PART_BYTES => length *= 16,
                Err(HeadError::Ends(what)) => {
                    return Err(bytes.fault(cursor.position() as u64, Fault::Truncated(what)));
                }
                Err(HeadError::Is(error)) => return Err(error),
                Ok(head) => return Ok(head),
            }
        }
    }

    fn parse(cursor: &mut Cursor<'_>, bytes: &mut Bytes) -> Result<Head, HeadError> {
        let preamble = Preamble::parse(cursor)?;
        if !preamble.page_size.is_power_of_two() || !(512..=1 << 20).contains(&preamble.page_size) {
            return Err(bytes.malformed(0, format!("pages of {} bytes", preamble.page_size)).into());
        }
        let mut head = Head {
            endian: preamble.endian,
            page_size: preamble.page_size,
            metadata: Metadata::default(),
            header: Header::default(),
            compression: Compression::None,
            buffers: Vec::new(),
            clock: None,
            scale: None,
        };
        match preamble.version.as_str() {
            "6" => head.version_6(cursor, bytes)?,
            "7" => head.version_7(cursor, bytes)?,
            other => {
                let what = format!("version {other} of trace.dat; 6 and 7 are known");
                return Err(bytes.fault(10, Fault::foreign(what, AS_TEXT)).into());
            }
        }
        Ok(head)
    }

    fn version_6(&mut self, cursor: &mut Cursor<'_>, bytes: &mut Bytes) -> Result<(), HeadError> {
        self.metadata = Metadata::parse(cursor)?;
        let cpus = cursor.u32().ok_or("the number of CPUs")?;
        if cpus as usize > MAX_CPUS {
            return Err(bytes.malformed(cursor.position() as u64, format!("{cpus} CPUs")).into());
        }
        self.header.nr_cpus = Some(cpus as usize);
        let mut instances = Vec::new();
        if cursor.skip(b"options  \0") {
            loop {
                let id = cursor.u16().ok_or("an option")?;
                if id == DONE {
                    break;
                }
                let length = cursor.u32().ok_or("an option")?;
                let content = cursor.take(u64::from(length)).ok_or("an option")?;
                if id == BUFFER {
                    let mut option = Cursor::new(content, self.endian);
                    if let Some(offset) = option.u64() {
                        instances.push((offset, option.text().unwrap_or_default()));
                    }
                }
                self.learn(id, content);
            }
        }
        if cursor.skip(b"latency  \0") {
            let what = "text of a latency tracer instead of ring-buffer pages";
            return Err(bytes.fault(cursor.position() as u64, Fault::foreign(what, AS_TEXT)).into());
        }
        self.flyrecord(String::new(), cpus, cursor)?;
        for (offset, name) in instances {
            bytes.seek(offset, "an instance's buffer")?;
            let places = bytes.take(FLYRECORD.len() as u64 + 16 * u64::from(cpus), "an instance's buffer")?;
            self.flyrecord(name, cpus, &mut Cursor::new(&places, self.endian))?;
        }
        Ok(())
    }

    /// Where version 6 keeps the pages of each CPU.
    fn flyrecord(&mut self, name: String, cpus: u32, cursor: &mut Cursor<'_>) -> Result<(), HeadError> {
        if !cursor.skip(FLYRECORD) {
            return Err(HeadError::Ends("the kind of its data"));
        }
        let mut buffer = Buffer { name, ..Buffer::default() };
        for cpu in 0..cpus {
            let (offset, size) = cursor.u64().zip(cursor.u64()).ok_or("the place of a CPU's pages")?;
            buffer.cpus.push(CpuBuffer { cpu: CpuId(cpu), offset, size, compressed: false });
        }
        self.buffers.push(buffer);
        Ok(())
    }

    fn version_7(&mut self, cursor: &mut Cursor<'_>, bytes: &mut Bytes) -> Result<(), HeadError> {
        let name = cursor.text().ok_or("the compression's name")?;
        cursor.text().ok_or("the compression's version")?;
        self.compression = match name.as_str() {
            "none" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            other => {
                let what = format!("compression '{other}'; none, zlib and zstd are known");
                return Err(bytes.fault(18, Fault::foreign(what, AS_TEXT)).into());
            }
        };
        let mut next = cursor.u64().ok_or("the place of the options")?;
        for _ in 0..OPTION_SECTIONS {
            if next == 0 {
                return Ok(());
            }
            let content = self.section(bytes, next, 0)?;
            next = self.options(bytes, next, &content)?;
        }
        Err(bytes.malformed(next, "option sections without end").into())
    }

    /// Reads one section of options; returns where the next is, 0 for nowhere.
    fn options(&mut self, bytes: &mut Bytes, offset: u64, content: &[u8]) -> Result<u64, HeadError> {
        let mut cursor = Cursor::new(content, self.endian);
        while let Some(id) = cursor.u16() {
            let length = cursor.u32().ok_or("an option")?;
            let data = cursor.take(u64::from(length)).ok_or("an option")?;
            let mut option = Cursor::new(data, self.endian);
            match id {
                DONE => return Ok(option.u64().unwrap_or(0)),
                BUFFER => self.buffer(bytes, offset, &mut option)?,
                HEADER_INFO | FTRACE_EVENTS | EVENT_FORMATS | CMDLINES => {
                    let at = option.u64().ok_or("the place of a section")?;
                    let content = self.section(bytes, at, id)?;
                    let mut part = Cursor::new(&content, self.endian);
                    let read = match id {
                        HEADER_INFO => self.metadata.header_info(&mut part),
                        FTRACE_EVENTS => self.metadata.ftrace_formats(&mut part),
                        EVENT_FORMATS => self.metadata.event_formats(&mut part),
                        _ => self.metadata.saved_names(&mut part),
                    };
                    read.ok_or_else(|| bytes.malformed(at, format!("section {id} ends inside an entry")))?;
                }
                _ => self.learn(id, data),
            }
        }
        Ok(0)
    }

    /// Options that both versions have.
    fn learn(&mut self, id: u16, data: &[u8]) {
        let text = || String::from_utf8_lossy(data.split(|byte| *byte == 0).next().unwrap_or(data)).into_owned();
        match id {
            UNAME => self.header.kernel = text().split_ascii_whitespace().nth(2).map(str::to_owned),
            TRACECLOCK => self.clock = clock::chosen(&text()),
            TSC2NSEC if data.len() >= 8 => {
                let number = |at: usize| self.endian.number(&data[at..at + 4]) as u32;
                self.scale = Some((number(0), number(4)));
            }
            CPUCOUNT if data.len() == 4 => self.header.nr_cpus = Some(self.endian.number(data) as usize),
            VERSION => {
                // What this crate's writer says about the trace stands below its own name.
                text().lines().skip(1).for_each(|line| self.header.learn(line));
            }
            _ => {}
        }
    }

    /// One buffer: that of the machine or of an instance.
    fn buffer(&mut self, bytes: &mut Bytes, offset: u64, option: &mut Cursor<'_>) -> Result<(), HeadError> {
        let at = option.u64().ok_or("a buffer")?;
        let (name, clock) = option.text().zip(option.text()).ok_or("a buffer's name")?;
        let page_size = option.u32().ok_or("a buffer's page size")?;
        if page_size != self.page_size {
            return Err(bytes.malformed(offset, format!("a buffer with pages of {page_size} bytes")).into());
        }
        let count = option.u32().ok_or("a buffer's CPUs")?;
        let mut buffer = Buffer { name, clock: clock::chosen(&clock), cpus: Vec::new() };
        bytes.seek(at, "a buffer")?;
        let [_, _, low, high, ..] = bytes.array::<16>("a buffer")?;
        let compressed = self.endian.number(&[low, high]) & 1 == 1;
        for _ in 0..count {
            let cpu = option.u32().ok_or("a buffer's CPU")?;
            let (offset, size) = option.u64().zip(option.u64()).ok_or("the place of a CPU's pages")?;
            if cpu as usize >= MAX_CPUS {
                return Err(bytes.malformed(offset, format!("CPU {cpu}, which no kernel has")).into());
            }
            buffer.cpus.push(CpuBuffer { cpu: CpuId(cpu), offset, size, compressed });
        }
        // The top buffer may stand behind instances.
        let at = if buffer.name.is_empty() { 0 } else { self.buffers.len() };
        self.buffers.insert(at, buffer);
        Ok(())
    }

    /// The buffer of this name and the names of the others that have events. By default the top one, or the first one
    /// with events.
    pub fn choose(&self, name: Option<&str>) -> Result<(Buffer, Vec<String>), Fault> {
        let filled = || self.buffers.iter().filter(|buffer| buffer.has_events());
        let names = || filled().map(|buffer| buffer.name.clone());
        let chosen = match name {
            Some("top") => filled().find(|buffer| buffer.name.is_empty()),
            Some(name) => filled().find(|buffer| buffer.name == name),
            None => return Ok(self.first_with_events()),
        };
        let Some(chosen) = chosen else {
            let name = name.unwrap_or_default();
            let others: Vec<String> = names().collect();
            let what = no_buffer(name, others.iter().map(String::as_str));
            return Err(Fault::foreign(what, "name one of its buffers, or omit --buffer"));
        };
        Ok((chosen.clone(), names().filter(|other| *other != chosen.name).collect()))
    }

    fn first_with_events(&self) -> (Buffer, Vec<String>) {
        let mut filled = self.buffers.iter().filter(|buffer| buffer.has_events());
        let first = filled.next().cloned().unwrap_or_default();
        (first, filled.map(|buffer| buffer.name.clone()).collect())
    }

    /// The clock of a buffer.
    pub fn clock(&self, buffer: &Buffer) -> Result<Clock, Fault> {
        Clock::of(buffer.clock.as_deref().or(self.clock.as_deref()), self.scale)
    }

    /// The content of a section, unpacked.
    fn section(&self, bytes: &mut Bytes, offset: u64, id: u16) -> Result<Vec<u8>, HeadError> {
        bytes.seek(offset, "a section")?;
        let head = bytes.array::<16>("a section")?;
        let mut cursor = Cursor::new(&head, self.endian);
        let fields = cursor.u16().zip(cursor.u16()).zip(cursor.u32().and(cursor.u64()));
        let ((found, flags), size) = fields.ok_or("a section")?;
        if found != id {
            return Err(bytes.malformed(offset, format!("section {found} where {id} should be")).into());
        }
        let content = bytes.take(size, "a section")?;
        if flags & 1 == 0 {
            return Ok(content);
        }
        let mut cursor = Cursor::new(&content, self.endian);
        let (packed, unpacked) = cursor.u32().zip(cursor.u32()).ok_or("a compressed section")?;
        let block = cursor.take(u64::from(packed)).ok_or("a compressed section")?;
        let content = self.compression.unpack(block, u64::from(unpacked));
        content.map_err(|what| bytes.malformed(offset, what).into())
    }
}

/// Why the head could not be read.
enum HeadError {
    /// The available bytes end inside this.
    Ends(&'static str),
    /// Anything else.
    Is(TraceError),
}

impl From<&'static str> for HeadError {
    fn from(what: &'static str) -> Self {
        HeadError::Ends(what)
    }
}

impl From<TraceError> for HeadError {
    fn from(error: TraceError) -> Self {
        HeadError::Is(error)
    }
}
