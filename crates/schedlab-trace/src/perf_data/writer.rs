//! Writes `perf.data` in file mode, streaming; the sizes in its head are filled in at the end.

use schedlab_model::{Nanos, Pid};

use super::attr::sample;
use super::{
    FEATURE_CMDLINE, FEATURE_EVENT_DESC, FEATURE_NRCPUS, FEATURE_OSRELEASE, FEATURE_TRACING_DATA, HEAD_BYTES, MAGIC,
    RECORD_COMM, RECORD_FINISHED_ROUND, RECORD_LOST, RECORD_SAMPLE,
};
use crate::error::TraceError;
use crate::names::Names;
use crate::output::Output;
use crate::record::{Body, Header, Record};
use crate::tracepoint::{encode, event_types, tracing_data, EventType};
use crate::writer::RecordWriter;

/// Bytes of `struct perf_event_attr` (PERF_ATTR_SIZE_VER5), and of an entry with the place of its ids.
const ATTR_BYTES: u64 = 112;
const ENTRY_BYTES: u64 = ATTR_BYTES + 16;
/// PERF_TYPE_TRACEPOINT.
const TRACEPOINT: u32 = 2;
const SAMPLE_TYPE: u64 =
    sample::IDENTIFIER | sample::IP | sample::TID | sample::TIME | sample::CPU | sample::PERIOD | sample::RAW;
/// Every record ends in task, time, CPU and event (attr.sample_id_all); perf finds the task of a name by it.
const SAMPLE_ID_ALL: u64 = 1 << 18;
/// Records of one round; a reader holds two rounds.
const ROUND: u32 = 1024;
/// Strings are padded to a multiple of this.
const TEXT_ALIGNMENT: usize = 64;

/// Writes `perf.data`.
pub struct PerfDataWriter {
    out: Output,
    header: Header,
    /// Bytes of records so far.
    size: u64,
    in_round: u32,
    /// Time of the last sample.
    last: Nanos,
    raw: Vec<u8>,
    buffer: Vec<u8>,
}

impl PerfDataWriter {
    /// Writes the head, whose sizes are not yet right, and the attributes.
    pub fn new(mut out: Output, header: &Header) -> PerfDataWriter {
        let mut start = head(0, true);
        let types = event_types();
        let ids_at = HEAD_BYTES + ENTRY_BYTES * types.len() as u64;
        for (index, event_type) in types.iter().enumerate() {
            start.extend_from_slice(&attr(event_type));
            start.extend_from_slice(&(ids_at + 8 * index as u64).to_le_bytes());
            start.extend_from_slice(&8u64.to_le_bytes());
        }
        types.iter().for_each(|event_type| start.extend_from_slice(&sample_id(event_type).to_le_bytes()));
        out.keep(|out| out.write_all(&start));
        let (raw, buffer) = (Vec::new(), Vec::new());
        PerfDataWriter { out, header: header.clone(), size: 0, in_round: 0, last: 0, raw, buffer }
    }

    /// Writes the record whose body is in `self.buffer` behind 8 bytes of space.
    fn flush(&mut self, kind: u32) {
        let size = self.buffer.len();
        self.buffer[..4].copy_from_slice(&kind.to_le_bytes());
        self.buffer[6..8].copy_from_slice(&(size as u16).to_le_bytes());
        let buffer = &self.buffer;
        self.out.keep(|out| out.write_all(buffer));
        self.size += size as u64;
    }

    fn begin(&mut self) {
        self.buffer.clear();
        self.buffer.resize(8, 0);
    }
}

impl RecordWriter for PerfDataWriter {
    fn write(&mut self, record: &Record<'_>) {
        if let Body::Lost(count) = record.body {
            self.begin();
            self.last = self.last.max(record.time);
            let any_event = sample_id(&event_types()[0]);
            // Which event it was, how many, and the end that all records have.
            for number in [any_event, count, 0, record.time, u64::from(record.cpu.0), any_event] {
                self.buffer.extend_from_slice(&number.to_le_bytes());
            }
            return self.flush(RECORD_LOST);
        }
        let event_type = encode(&record.body, record.flags, record.pid, &mut self.raw);
        self.begin();
        self.last = record.time;
        let pid = record.pid.to_le_bytes();
        // The raw record and its 32-bit length together fill a multiple of 8 bytes.
        let length = (self.raw.len() + 4).next_multiple_of(8) - 4;
        let parts: [&[u8]; 10] = [
            &sample_id(event_type).to_le_bytes(),
            &0u64.to_le_bytes(),
            &pid,
            &pid,
            &record.time.to_le_bytes(),
            &record.cpu.0.to_le_bytes(),
            &[0; 4],
            &1u64.to_le_bytes(),
            &(length as u32).to_le_bytes(),
            &self.raw,
        ];
        parts.iter().for_each(|part| self.buffer.extend_from_slice(part));
        self.buffer.resize(self.buffer.len() + length - self.raw.len(), 0);
        self.flush(RECORD_SAMPLE);
        self.in_round += 1;
        if self.in_round == ROUND {
            self.in_round = 0;
            self.begin();
            self.flush(RECORD_FINISHED_ROUND);
        }
    }

    fn named(&mut self, pid: Pid, name: &str) {
        self.begin();
        self.buffer.extend_from_slice(&pid.to_le_bytes());
        self.buffer.extend_from_slice(&pid.to_le_bytes());
        self.buffer.extend_from_slice(&name.as_bytes()[..name.len().min(255)]);
        let padded = (self.buffer.len() + 1).next_multiple_of(8);
        self.buffer.resize(padded, 0);
        let any_event = sample_id(&event_types()[0]).to_le_bytes();
        let sample_id: [&[u8]; 5] =
            [&pid.to_le_bytes(), &pid.to_le_bytes(), &self.last.to_le_bytes(), &[0; 8], &any_event];
        sample_id.iter().for_each(|part| self.buffer.extend_from_slice(part));
        self.flush(RECORD_COMM);
    }

    fn finish(mut self, _names: &Names) -> Result<(), TraceError> {
        let end = records_at() + self.size;
        let features = features(&self.header);
        let mut place = end + 16 * features.len() as u64;
        let mut table = Vec::new();
        for (_, content) in &features {
            table.extend_from_slice(&place.to_le_bytes());
            table.extend_from_slice(&(content.len() as u64).to_le_bytes());
            place += content.len() as u64;
        }
        features.iter().for_each(|(_, content)| table.extend_from_slice(content));
        self.out.keep(|out| out.write_all(&table));
        self.out.patch(0, &head(self.size, false));
        self.out.finish()
    }
}

/// Where the records begin.
fn records_at() -> u64 {
    HEAD_BYTES + (ENTRY_BYTES + 8) * event_types().len() as u64
}

fn sample_id(event_type: &EventType) -> u64 {
    u64::from(event_type.id())
}

fn head(data_size: u64, unfinished: bool) -> Vec<u8> {
    let features = [FEATURE_TRACING_DATA, FEATURE_OSRELEASE, FEATURE_NRCPUS, FEATURE_CMDLINE, FEATURE_EVENT_DESC];
    let bits = if unfinished { 0 } else { features.iter().fold(0u64, |bits, feature| bits | 1 << feature) };
    let attrs_size = ENTRY_BYTES * event_types().len() as u64;
    let numbers = [HEAD_BYTES, ENTRY_BYTES, HEAD_BYTES, attrs_size, records_at(), data_size, 0, 0, bits, 0, 0, 0];
    let mut head = MAGIC.to_vec();
    numbers.iter().for_each(|number| head.extend_from_slice(&number.to_le_bytes()));
    head
}

fn attr(event_type: &EventType) -> Vec<u8> {
    let mut attr = Vec::new();
    attr.extend_from_slice(&TRACEPOINT.to_le_bytes());
    attr.extend_from_slice(&(ATTR_BYTES as u32).to_le_bytes());
    // config, sample_period, sample_type, read_format, flags
    for number in [sample_id(event_type), 1, SAMPLE_TYPE, 0, SAMPLE_ID_ALL] {
        attr.extend_from_slice(&number.to_le_bytes());
    }
    attr.resize(ATTR_BYTES as usize, 0);
    attr
}

/// The feature sections in the order of their bits.
fn features(header: &Header) -> [(u32, Vec<u8>); 5] {
    let cpus = header.nr_cpus.unwrap_or(1) as u32;
    let mut command_line = Vec::new();
    let words: Vec<String> = std::iter::once("schedlab".to_owned()).chain(header.lines()).collect();
    command_line.extend_from_slice(&(words.len() as u32).to_le_bytes());
    words.iter().for_each(|word| text(&mut command_line, word));
    let mut release = Vec::new();
    text(&mut release, header.kernel.as_deref().unwrap_or("unknown"));
    let mut descriptions = Vec::new();
    descriptions.extend_from_slice(&(event_types().len() as u32).to_le_bytes());
    descriptions.extend_from_slice(&(ATTR_BYTES as u32).to_le_bytes());
    for event_type in event_types() {
        descriptions.extend_from_slice(&attr(event_type));
        descriptions.extend_from_slice(&1u32.to_le_bytes());
        text(&mut descriptions, &format!("{}:{}", event_type.system, event_type.name));
        descriptions.extend_from_slice(&sample_id(event_type).to_le_bytes());
    }
    [
        (FEATURE_TRACING_DATA, tracing_data("0.6", 4096, "")),
        (FEATURE_OSRELEASE, release),
        (FEATURE_NRCPUS, [cpus.to_le_bytes(), cpus.to_le_bytes()].concat()),
        (FEATURE_CMDLINE, command_line),
        (FEATURE_EVENT_DESC, descriptions),
    ]
}

fn text(out: &mut Vec<u8>, text: &str) {
    let padded = (text.len() + 1).next_multiple_of(TEXT_ALIGNMENT);
    out.extend_from_slice(&(padded as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len() + padded - text.len(), 0);
}
