//! What each event's samples hold (`struct perf_event_attr`).

use std::collections::BTreeMap;

use crate::error::TraceError;
use crate::input::Bytes;
use crate::tracepoint::{Cursor, Endian};

/// The part of an attribute that says how a sample is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Layout {
    pub sample_type: u64,
    pub read_format: u64,
    /// Records that are no samples end in task, time, CPU and event as well.
    pub sample_id_all: bool,
}

/// `perf_event_attr.flags`.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// PERF_SAMPLE_*: what a sample may hold, in the order in which it holds it up to `RAW`.
pub mod sample {
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const ID: u64 = 1 << 6;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const RAW: u64 = 1 << 10;
}

/// The attributes of a file.
#[derive(Clone, Default, Debug)]
pub struct Attrs {
    layouts: Vec<Layout>,
    of_id: BTreeMap<u64, usize>,
    uniform: bool,
}

/// Bytes of the part of an attribute that is read here.
pub const READ_BYTES: u64 = 48;
/// Input with more ids is not a trace: there is one per event and CPU.
const IDS_MAX: u64 = 1 << 20;

impl Attrs {
    /// Reads the section of attributes. Each is followed by where its ids are.
    pub fn read(
        bytes: &mut Bytes,
        endian: Endian,
        offset: u64,
        size: u64,
        attr_size: u64,
    ) -> Result<Attrs, TraceError> {
        if !(READ_BYTES + 16..=4096).contains(&attr_size) {
            return Err(bytes.malformed(16, format!("attributes of {attr_size} bytes")));
        }
        bytes.seek(offset, "the attributes")?;
        let content = bytes.take(size, "the attributes")?;
        let mut attrs = Attrs::default();
        for entry in content.chunks_exact(attr_size as usize) {
            let number = |at: usize| endian.number(&entry[at..at + 8]);
            let (ids_at, ids_size) = (number(entry.len() - 16), number(entry.len() - 8));
            bytes.seek(ids_at, "the ids of an event")?;
            let ids = bytes.take(ids_size.min(8 * (IDS_MAX + 1)), "the ids of an event")?;
            attrs.add(entry, &ids, endian).map_err(|what| bytes.malformed(offset, what))?;
        }
        attrs.check().map_err(|what| bytes.malformed(offset, what))?;
        Ok(attrs)
    }

    /// Takes an attribute of at least [`READ_BYTES`] and the ids of its event.
    pub fn add(&mut self, attr: &[u8], ids: &[u8], endian: Endian) -> Result<(), String> {
        let number = |at: usize| attr.get(at..at + 8).map(|bytes| endian.number(bytes)).unwrap_or(0);
        if ids.len() as u64 / 8 + self.of_id.len() as u64 > IDS_MAX {
            return Err(format!("{} ids for one event", ids.len() / 8));
        }
        let index = self.layouts.len();
        let sample_id_all = number(40) & SAMPLE_ID_ALL != 0;
        self.layouts.push(Layout { sample_type: number(24), read_format: number(32), sample_id_all });
        self.of_id.extend(ids.chunks_exact(8).map(|id| (endian.number(id), index)));
        self.uniform = self.layouts.iter().all(|layout| *layout == self.layouts[0]);
        Ok(())
    }

    /// Whether samples can be read with these attributes. The error says why not.
    pub fn check(&self) -> Result<(), &'static str> {
        let identified = self.layouts.iter().all(|layout| layout.sample_type & sample::IDENTIFIER != 0);
        match (self.layouts.is_empty(), self.uniform || identified) {
            (true, _) => Err("no event"),
            (false, false) => Err("events of several layouts without identifiers"),
            (false, true) => Ok(()),
        }
    }

    /// The layout of the end of a record that is no sample.
    pub fn of_other(&self, body: &[u8], endian: Endian) -> Option<Layout> {
        let start = body.len().checked_sub(8);
        self.layout(start.map(|start| endian.number(&body[start..])))
    }

    /// By the id of the event, where events differ.
    fn layout(&self, id: Option<u64>) -> Option<Layout> {
        let index = if self.uniform { None } else { id.and_then(|id| self.of_id.get(&id)).copied() };
        self.layouts.get(index.unwrap_or(0)).copied()
    }

    /// The layout of a sample.
    pub fn of(&self, body: &[u8], endian: Endian) -> Option<Layout> {
        self.layout(Cursor::new(body, endian).u64())
    }
}
