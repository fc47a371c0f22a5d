//! One page of the kernel's ring buffer (kernel/trace/ring_buffer.c): a time, a length, then events with time deltas.

use schedlab_model::Nanos;

use crate::tracepoint::{Endian, PageLayout};

/// Flags in the page's length.
const LENGTH_MASK: u64 = (1 << 27) - 1;
pub const MISSED_EVENTS: u64 = 1 << 31;
pub const MISSED_STORED: u64 = 1 << 30;

/// `type_len` values that are not lengths.
const PADDING: u64 = 29;
const TIME_EXTEND: u64 = 30;
const TIME_STAMP: u64 = 31;
const DELTA_BITS: u32 = 27;

/// A page that is being read.
#[derive(Clone, Default, Debug)]
pub struct Page {
    data: Vec<u8>,
    endian: Endian,
    at: usize,
    end: usize,
    time: Nanos,
    /// Events lost before this page.
    pub lost: u64,
}

impl Page {
    /// Reads the head. The error says what is wrong with it.
    pub fn new(data: Vec<u8>, layout: PageLayout, endian: Endian) -> Result<Page, String> {
        let field = |offset: usize, size: usize| {
            let bytes = offset.checked_add(size).and_then(|end| data.get(offset..end));
            bytes.map(|bytes| endian.number(bytes)).ok_or("a page without a head")
        };
        let time = field(0, 8)?;
        let commit = field(layout.commit_offset, layout.commit_size)?;
        let length = (commit & LENGTH_MASK) as usize;
        let end = layout.data_offset + length;
        if end > data.len() {
            return Err(format!("a page of {} bytes that claims {length} bytes of events", data.len()));
        }
        let stored = || field(end, layout.commit_size).unwrap_or(1);
        let lost = match (commit & MISSED_EVENTS != 0, commit & MISSED_STORED != 0) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => stored(),
        };
        Ok(Page { at: layout.data_offset, end, time, lost, endian, data })
    }

    /// The time that its first event's is counted from.
    pub fn begins(&self) -> Nanos {
        self.time
    }

    /// The next event: its time and its bytes. The error says what is wrong with it.
    pub fn next(&mut self) -> Result<Option<(Nanos, &[u8])>, String> {
        while self.at + 4 <= self.end {
            let (type_len, delta) = self.head();
            let extension = self.word(self.at + 4);
            self.time = match type_len {
                // The clock's top 5 bits do not fit and are those of the time before.
                TIME_STAMP => self.time & !(u64::MAX >> 5) | extension.unwrap_or(0) << DELTA_BITS | delta,
                TIME_EXTEND => self.time.wrapping_add(extension.unwrap_or(0) << DELTA_BITS | delta),
                _ => self.time.wrapping_add(delta),
            };
            let start = self.at + 4;
            match type_len {
                PADDING if delta == 0 => return Ok(None),
                PADDING => self.at = start + extension.ok_or("padding without a length")? as usize,
                TIME_EXTEND | TIME_STAMP => self.at = start + 4,
                0 => {
                    let length = extension.ok_or("an event without a length")? as usize;
                    self.at = start + length.next_multiple_of(4);
                    return self.event(start + 4, start + length).map(Some);
                }
                words => {
                    self.at = start + 4 * words as usize;
                    return self.event(start, self.at).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// `type_len` and `time_delta`: a C bit field, so the byte order also orders the bits.
    fn head(&self) -> (u64, u64) {
        let word = self.word(self.at).unwrap_or(0);
        match self.endian {
            Endian::Little => (word & 31, word >> 5),
            Endian::Big => (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1)),
        }
    }

    fn word(&self, at: usize) -> Option<u64> {
        let end = at.checked_add(4).filter(|end| *end <= self.end)?;
        Some(self.endian.number(&self.data[at..end]))
    }

    fn event(&self, start: usize, end: usize) -> Result<(Nanos, &[u8]), String> {
        let inside = start <= end && end <= self.end;
        let bytes = if inside { self.data.get(start..end) } else { None };
        bytes.map(|bytes| (self.time, bytes)).ok_or_else(|| "an event that leaves its page".to_owned())
    }
}
