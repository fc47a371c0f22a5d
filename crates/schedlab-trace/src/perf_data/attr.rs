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
}

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
const READ_BYTES: u64 = 40;
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
        for (index, entry) in content.chunks_exact(attr_size as usize).enumerate() {
            let number = |at: usize| endian.number(&entry[at..at + 8]);
            attrs.layouts.push(Layout { sample_type: number(24), read_format: number(32) });
            let (ids_at, ids_size) = (number(entry.len() - 16), number(entry.len() - 8));
            if ids_size / 8 + attrs.of_id.len() as u64 > IDS_MAX {
                return Err(bytes.malformed(offset, format!("{} ids for one event", ids_size / 8)));
            }
            bytes.seek(ids_at, "the ids of an event")?;
            let ids = bytes.take(ids_size, "the ids of an event")?;
            attrs.of_id.extend(ids.chunks_exact(8).map(|id| (endian.number(id), index)));
        }
        let Some(first) = attrs.layouts.first() else {
            return Err(bytes.malformed(offset, "no event"));
        };
        attrs.uniform = attrs.layouts.iter().all(|layout| layout == first);
        let identified = attrs.layouts.iter().all(|layout| layout.sample_type & sample::IDENTIFIER != 0);
        if !attrs.uniform && !identified {
            return Err(bytes.malformed(offset, "events of several layouts without identifiers"));
        }
        Ok(attrs)
    }

    /// The layout of a sample.
    pub fn of(&self, body: &[u8], endian: Endian) -> Layout {
        let id = || Cursor::new(body, endian).u64().and_then(|id| self.of_id.get(&id)).copied();
        let index = if self.uniform { 0 } else { id().unwrap_or(0) };
        self.layouts[index]
    }
}
