//! Reads `perf.data`.
//!
//! perf drains the CPUs' buffers in rounds: a record of one round is never older than the newest record two rounds
//! before. So at the end of a round, everything up to the newest record of the previous round can be returned in order.

use std::collections::VecDeque;
use std::path::Path;

use schedlab_model::{CpuId, Nanos, Pid, MAX_CPUS};

use super::attr::READ_BYTES;
use super::head::{no_tracepoints, Head};
use super::records::{RecordAt, Records};
use super::sample::{other, Sample};
use super::{
    RECORD_COMM, RECORD_FINISHED_ROUND, RECORD_HEADER_ATTR, RECORD_HEADER_FEATURE, RECORD_LOST, RECORD_LOST_SAMPLES,
    RECORD_SAMPLE, RECORD_TRACING_DATA,
};
use crate::error::{Fault, TraceError};
use crate::input::{Bytes, Input};
use crate::item::{Item, What};
use crate::names::Names;
use crate::record::{Header, Record, TraceReader};
use crate::tracepoint::Cursor;
use crate::Flags;

/// Reads `perf.data`.
pub struct PerfDataReader {
    records: Records,
    head: Head,
    names: Names,
    /// Samples in order, each with its offset.
    ready: VecDeque<(u64, Item)>,
    /// Samples that a later round may still precede.
    pending: Vec<(u64, Item)>,
    /// Newest time of the round before, and of all.
    settled: Nanos,
    newest: Nanos,
    last: Nanos,
    /// Events of the records of losses that no later total of perf has counted again.
    lost: u64,
    ended: bool,
    item: Option<Item>,
}

impl PerfDataReader {
    /// Reads what precedes the records. `file` is what errors call the input.
    pub fn new(input: Box<dyn Input>, file: &Path) -> Result<PerfDataReader, TraceError> {
        let mut bytes = Bytes::new(input, file)?;
        let head = Head::read(&mut bytes)?;
        let mut reader = PerfDataReader {
            records: Records::new(bytes, head.endian, head.data)?,
            head,
            names: Names::default(),
            ready: VecDeque::new(),
            pending: Vec::new(),
            settled: 0,
            newest: 0,
            last: 0,
            lost: 0,
            ended: false,
            item: None,
        };
        // In pipe mode what describes the file are records, before the first sample.
        while reader.head.pipe && reader.pending.is_empty() && !reader.ended {
            reader.read()?;
        }
        let Head { names, .. } = &mut reader.head;
        for (pid, name) in std::mem::take(names) {
            reader.names.set(pid, &name);
        }
        Ok(reader)
    }

    /// Reads one record.
    fn read(&mut self) -> Result<(), TraceError> {
        match self.records.next()? {
            Some(RecordAt { offset, kind, body }) => self.take(offset, kind, &body),
            None => {
                self.ended = true;
                self.settle(Nanos::MAX);
                Ok(())
            }
        }
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
            RECORD_LOST => self.lose(offset, body, cursor.u64().and(cursor.u64()).unwrap_or(1)),
            RECORD_LOST_SAMPLES => self.lose(offset, body, cursor.u64().unwrap_or(1)),
            RECORD_HEADER_ATTR if self.head.pipe => self.attr(offset, body)?,
            RECORD_HEADER_FEATURE if self.head.pipe => {
                if let Some(feature) = cursor.u64() {
                    self.head.feature(feature as u32, &body[cursor.position()..]);
                }
            }
            RECORD_TRACING_DATA if self.head.pipe => {
                let read = self.head.tracing_data(body);
                read.map_err(|what| self.records.fault(offset, Fault::Truncated(what)))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// An attribute and the ids of its event, as a record of pipe mode.
    fn attr(&mut self, offset: u64, body: &[u8]) -> Result<(), TraceError> {
        let endian = self.head.endian;
        let size = body.get(4..8).map_or(0, |bytes| endian.number(bytes)) as usize;
        if size < READ_BYTES as usize || size > body.len() {
            return Err(self.records.malformed(offset, format!("attributes of {size} bytes")));
        }
        let (attr, ids) = body.split_at(size);
        self.head.attrs.add(attr, ids, endian).map_err(|what| self.records.malformed(offset, what))
    }

    fn sample(&mut self, offset: u64, body: &[u8]) -> Result<(), TraceError> {
        let head = &self.head;
        let layout = if head.pipe {
            head.attrs.check().map(|()| head.attrs.of(body, head.endian))
        } else {
            Ok(head.attrs.of(body, head.endian))
        };
        let layout = layout.map_err(|what| self.records.malformed(offset, what))?.unwrap_or_default();
        if !head.formats {
            return Err(self.records.fault(offset, no_tracepoints()));
        }
        let sample = Sample::parse(body, layout, head.endian);
        let Some(sample) = sample.map_err(|what| self.records.malformed(offset, what))? else { return Ok(()) };
        if sample.cpu as usize >= MAX_CPUS {
            return Err(self.records.malformed(offset, format!("CPU {}, which no kernel has", sample.cpu)));
        }
        let decoded = head.decoder.decode(sample.raw).map_err(|what| self.records.malformed(offset, what))?;
        if let Some((flags, pid, what)) = decoded {
            self.newest = self.newest.max(sample.time);
            let item = Item { time: sample.time, cpu: CpuId(sample.cpu), pid, flags, what };
            self.pending.push((offset, item));
        }
        Ok(())
    }

    /// Events of a CPU were lost. A recording without `sample_id_all` does not say when and where.
    fn lose(&mut self, offset: u64, body: &[u8], count: u64) {
        let layout = self.head.attrs.of_other(body, self.head.endian).unwrap_or_default();
        let (time, cpu) = other(body, layout, self.head.endian);
        // perf itself writes the totals of its events at the end of the file, without a time. What the kernel has
        // reported where it was lost is in them, too.
        let time = time.filter(|time| *time > 0);
        let known = if time.is_none() { self.lost.min(count) } else { 0 };
        self.lost -= known;
        let count = count - known;
        if count == 0 {
            return;
        }
        self.lost += if time.is_some() { count } else { 0 };
        let time = time.unwrap_or(self.newest);
        let cpu = CpuId(cpu.filter(|cpu| (*cpu as usize) < MAX_CPUS).unwrap_or(0));
        self.newest = self.newest.max(time);
        self.pending.push((offset, Item { time, cpu, pid: 0, flags: Flags::NONE, what: What::Lost(count) }));
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

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        while self.ready.is_empty() && !self.ended {
            self.read()?;
        }
        let Some((offset, item)) = self.ready.pop_front() else { return Ok(None) };
        let before = std::mem::replace(&mut self.last, item.time);
        if item.time < before {
            return Err(self.records.fault(offset, Fault::Backwards { before, after: item.time }));
        }
        item.teach(&mut self.names);
        let item = self.item.insert(item);
        item.record(&self.names).map(Some).map_err(|what| self.records.malformed(offset, what))
    }
}
