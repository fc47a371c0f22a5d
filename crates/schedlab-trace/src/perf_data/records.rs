//! The records of a file one after the other, compressed ones unpacked.

use std::collections::VecDeque;

use super::unpack::Unpacker;
use super::{RECORD_AUXTRACE, RECORD_COMPRESSED, RECORD_COMPRESSED2, RECORD_FINISHED_ROUND, RECORD_TRACING_DATA};
use crate::error::{Fault, TraceError};
use crate::input::Bytes;
use crate::tracepoint::{Cursor, Endian};

/// Bytes of a record's head.
const HEAD: usize = 8;

/// The records of a file.
pub struct Records {
    bytes: Bytes,
    endian: Endian,
    next: u64,
    end: u64,
    unpacker: Unpacker,
    /// Ends of rounds that follow records which are not yet unpacked: how much precedes them.
    rounds: VecDeque<u64>,
}

/// One record.
pub struct RecordAt {
    /// The offset to name in errors about it.
    pub offset: u64,
    pub kind: u32,
    pub body: Vec<u8>,
}

impl Records {
    /// The records between two offsets.
    pub fn new(mut bytes: Bytes, endian: Endian, (start, end): (u64, u64)) -> Result<Records, TraceError> {
        bytes.seek(start, "the records")?;
        Ok(Records { bytes, endian, next: start, end, unpacker: Unpacker::default(), rounds: VecDeque::new() })
    }

    /// The next record; `None` at the end.
    pub fn next(&mut self) -> Result<Option<RecordAt>, TraceError> {
        loop {
            if let Some(record) = self.unpacked()? {
                return Ok(Some(record));
            }
            if self.next >= self.end {
                self.unpacker.finish().map_err(|what| self.bytes.malformed(self.end, what))?;
                return self.unpacked();
            }
            let record = self.read()?;
            let content = match record.kind {
                RECORD_COMPRESSED => &record.body[..],
                RECORD_COMPRESSED2 => {
                    let mut cursor = Cursor::new(&record.body, self.endian);
                    let content = cursor.u64().and_then(|size| cursor.take(size));
                    content.ok_or_else(|| self.bytes.fault(record.offset, Fault::Truncated("a compressed record")))?
                }
                // Only where nothing is kept back is the end of a round due at once.
                RECORD_FINISHED_ROUND if self.unpacker.written() != Some(self.unpacker.taken()) => {
                    self.rounds.extend(self.unpacker.written());
                    continue;
                }
                _ => return Ok(Some(record)),
            };
            self.unpacker.push(content).map_err(|what| self.bytes.malformed(record.offset, what))?;
        }
    }

    /// An error at an offset.
    pub fn malformed(&self, offset: u64, what: impl Into<String>) -> TraceError {
        self.bytes.malformed(offset, what)
    }

    /// An error at an offset.
    pub fn fault(&self, offset: u64, fault: Fault) -> TraceError {
        self.bytes.fault(offset, fault)
    }

    /// The next record of the unpacked ones.
    fn unpacked(&mut self) -> Result<Option<RecordAt>, TraceError> {
        let offset = self.next;
        if self.rounds.front().is_some_and(|at| *at <= self.unpacker.taken()) {
            self.rounds.pop_front();
            return Ok(Some(RecordAt { offset, kind: RECORD_FINISHED_ROUND, body: Vec::new() }));
        }
        let Some(head) = self.unpacker.peek(HEAD) else { return Ok(None) };
        let (kind, size) = (self.endian.number(&head[..4]) as u32, self.endian.number(&head[6..]) as usize);
        if size < HEAD {
            return Err(self.bytes.malformed(offset, format!("a compressed record of {size} bytes")));
        }
        let body = self.unpacker.take(size).map(|bytes| bytes[HEAD..].to_vec());
        Ok(body.map(|body| RecordAt { offset, kind, body }))
    }

    fn read(&mut self) -> Result<RecordAt, TraceError> {
        let offset = self.next;
        let head = self.bytes.array::<HEAD>("a record")?;
        let (kind, size) = (self.endian.number(&head[..4]) as u32, self.endian.number(&head[6..]));
        if size < HEAD as u64 {
            return Err(self.bytes.malformed(offset, format!("a record of {size} bytes")));
        }
        let mut body = self.bytes.take(size - HEAD as u64, "a record")?;
        self.next = offset + size;
        let mut cursor = Cursor::new(&body, self.endian);
        match kind {
            RECORD_AUXTRACE => {
                let length = cursor.u64().unwrap_or(0);
                self.next = self.next.saturating_add(length);
                self.bytes.seek(self.next, "a hardware trace")?;
            }
            // What it announces stands behind it.
            RECORD_TRACING_DATA => {
                let length = u64::from(cursor.u32().unwrap_or(0));
                body = self.bytes.take(length, "the formats of tracepoints")?;
                self.next = self.bytes.position();
            }
            _ => {}
        }
        Ok(RecordAt { offset, kind, body })
    }
}
