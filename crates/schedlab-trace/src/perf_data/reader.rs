//! Reads `perf.data`.
//!
//! perf drains the CPUs' buffers in rounds: a record of one round is never older than the newest record two rounds
//! before. So at the end of a round, everything up to the newest record of the previous round can be returned in order.

use std::collections::VecDeque;
use std::path::Path;

use schedlab_model::{CpuId, Nanos, Pid, MAX_CPUS};

use super::head::Head;
use super::sample::Sample;
use super::{
    RECORD_AUXTRACE, RECORD_COMM, RECORD_COMPRESSED, RECORD_COMPRESSED2, RECORD_FINISHED_ROUND, RECORD_LOST,
    RECORD_SAMPLE,
};
use crate::error::{Fault, TraceError};
use crate::input::{Bytes, Input};
use crate::item::Item;
use crate::names::Names;
use crate::record::{Header, Record, TraceReader};
use crate::tracepoint::Cursor;

/// Reads `perf.data`.
pub struct PerfDataReader {
    bytes: Bytes,
    head: Head,
    names: Names,
    /// Where the next record lies.
    next: u64,
    /// Samples in order, each with its offset.
    ready: VecDeque<(u64, Item)>,
    /// Samples that a later round may still precede.
    pending: Vec<(u64, Item)>,
    /// Newest time of the round before, and of all.
    settled: Nanos,
    newest: Nanos,
    last: Nanos,
    lost: u64,
    item: Option<Item>,
}

impl PerfDataReader {
    /// Reads what precedes the records. `file` is what errors call the input.
    pub fn new(input: Box<dyn Input>, file: &Path) -> Result<PerfDataReader, TraceError> {
        let mut bytes = Bytes::new(input, file)?;
        let head = Head::read(&mut bytes)?;
        let mut names = Names::default();
        head.names.iter().for_each(|(pid, name)| {
            names.set(*pid, name);
        });
        let next = head.data.0;
        bytes.seek(next, "the records")?;
        Ok(PerfDataReader {
            bytes,
            head,
            names,
            next,
            ready: VecDeque::new(),
            pending: Vec::new(),
            settled: 0,
            newest: 0,
            last: 0,
            lost: 0,
            item: None,
        })
    }

    /// Reads up to the end of a round that makes records ready, or to the end of the records.
    fn read_round(&mut self) -> Result<(), TraceError> {
        while self.ready.is_empty() && self.next < self.head.data.1 {
            let offset = self.next;
            let head = self.bytes.array::<8>("a record")?;
            let endian = self.head.endian;
            let (kind, size) = (endian.number(&head[..4]) as u32, endian.number(&head[6..]));
            if size < 8 {
                return Err(self.bytes.malformed(offset, format!("a record of {size} bytes")));
            }
            let body = self.bytes.take(size - 8, "a record")?;
            self.next = offset + size;
            self.take(offset, kind, &body)?;
        }
        if self.ready.is_empty() {
            self.settle(Nanos::MAX);
        }
        Ok(())
    }

    fn take(&mut self, offset: u64, kind: u32, body: &[u8]) -> Result<(), TraceError> {
        let mut cursor = Cursor::new(body, self.head.endian);
        match kind {
            RECORD_SAMPLE => self.sample(offset, body)?,
            RECORD_FINISHED_ROUND => {
                self.settle(self.settled);
                self.settled = self.newest;
            }
            RECORD_COMM => {
                let ids = cursor.u32().and(cursor.u32());
                if let Some((tid, name)) = ids.zip(cursor.text()) {
                    self.names.set(tid as Pid, &name);
                }
            }
            RECORD_LOST => self.lost = self.lost.saturating_add(cursor.u64().and(cursor.u64()).unwrap_or(1)),
            RECORD_AUXTRACE => {
                let length = cursor.u64().unwrap_or(0);
                self.next = self.next.saturating_add(length);
                self.bytes.seek(self.next, "a hardware trace")?;
            }
            RECORD_COMPRESSED | RECORD_COMPRESSED2 => {
                let what = "compressed records (perf record -z); unpack them with perf inject -i IN -o OUT";
                return Err(self.bytes.malformed(offset, what));
            }
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, offset: u64, body: &[u8]) -> Result<(), TraceError> {
        let layout = self.head.attrs.of(body, self.head.endian);
        let sample = Sample::parse(body, layout, self.head.endian);
        let Some(sample) = sample.map_err(|what| self.bytes.malformed(offset, what))? else { return Ok(()) };
        if sample.cpu as usize >= MAX_CPUS {
            return Err(self.bytes.malformed(offset, format!("CPU {}, which no kernel has", sample.cpu)));
        }
        let decoded = self.head.decoder.decode(sample.raw).map_err(|what| self.bytes.malformed(offset, what))?;
        if let Some((flags, pid, what)) = decoded {
            self.newest = self.newest.max(sample.time);
            let item = Item { time: sample.time, cpu: CpuId(sample.cpu), pid, flags, what };
            self.pending.push((offset, item));
        }
        Ok(())
    }

    /// Returns, in order, what is not newer than `until`.
    fn settle(&mut self, until: Nanos) {
        self.pending.sort_by_key(|(_, item)| item.time);
        let count = self.pending.partition_point(|(_, item)| item.time <= until);
        self.ready.extend(self.pending.drain(..count));
    }
}

impl TraceReader for PerfDataReader {
    fn header(&self) -> &Header {
        &self.head.header
    }

    fn lost(&self) -> u64 {
        self.lost
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        if self.ready.is_empty() {
            self.read_round()?;
        }
        let Some((offset, item)) = self.ready.pop_front() else { return Ok(None) };
        let before = std::mem::replace(&mut self.last, item.time);
        if item.time < before {
            return Err(self.bytes.fault(offset, Fault::Backwards { before, after: item.time }));
        }
        item.teach(&mut self.names);
        let item = self.item.insert(item);
        item.record(&self.names).map(Some).map_err(|what| self.bytes.malformed(offset, what))
    }
}
