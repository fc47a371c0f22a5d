//! Writes a Perfetto trace: ftrace events in bundles, task names as a process tree, samples as counter tracks too.
//!
//! A bundle holds consecutive events of one CPU, so that the file keeps the total order of events and not only their
//! times. Kinds that Perfetto has no message for travel as generic events under the names the text format uses.

use prost::Message;
use schedlab_model::{CpuId, Nanos, Pid};

use super::message::*;
use super::{HEADER_EVENT, TRACK_BASE};
use crate::error::TraceError;
use crate::names::Names;
use crate::output::Output;
use crate::record::{Body, Fields, Header, Record, Words};
use crate::tracepoint::LOST_EVENT;
use crate::writer::RecordWriter;
use crate::{state, Kind};

/// Events of one CPU that share a packet.
const BUNDLE_EVENTS: usize = 512;
/// All packets come from one writer.
const SEQUENCE: u32 = 1;
/// SEQ_INCREMENTAL_STATE_CLEARED: nothing before this packet is needed to read what follows.
const STATE_CLEARED: u32 = 1;
/// TrackEvent::TYPE_COUNTER.
const COUNTER: i32 = 4;
/// Writes a Perfetto trace.
pub struct PerfettoWriter {
    out: Output,
    bundle: FtraceEventBundle,
    metrics: usize,
    /// Comment lines of the header, until the first event gives them a time.
    comments: Vec<String>,
    buffer: Vec<u8>,
}

impl PerfettoWriter {
    /// Writes what precedes the events: the machine and the counter tracks.
    pub fn new(out: Output, header: &Header) -> PerfettoWriter {
        let mut writer = PerfettoWriter {
            out,
            bundle: FtraceEventBundle::default(),
            metrics: header.metrics.len(),
            comments: header.comments.clone(),
            buffer: Vec::new(),
        };
        writer.packet(&TracePacket { system_info: Some(system_info(header)), ..sequenced(STATE_CLEARED) });
        for (index, (name, unit)) in header.metrics.iter().enumerate() {
            let track_descriptor = Some(TrackDescriptor {
                uuid: Some(TRACK_BASE + index as u64),
                name: Some(name.clone()),
                counter: Some(CounterDescriptor { unit_name: Some(unit.clone()) }),
            });
            writer.packet(&TracePacket { track_descriptor, ..sequenced(0) });
        }
        writer
    }

    fn packet(&mut self, packet: &TracePacket) {
        self.buffer.clear();
        // Field 1 of the message Trace, length-delimited. A Vec never refuses what prost writes.
        prost::encoding::message::encode(1, packet, &mut self.buffer);
        let buffer = &self.buffer;
        self.out.keep(|out| out.write_all(buffer));
    }

    fn flush_bundle(&mut self) {
        if !self.bundle.event.is_empty() {
            let ftrace_events = Some(std::mem::take(&mut self.bundle));
            self.packet(&TracePacket { ftrace_events, ..sequenced(0) });
        }
    }

    fn push(&mut self, cpu: CpuId, event: FtraceEvent) {
        for line in std::mem::take(&mut self.comments) {
            let comment = GenericField { name: Some("line".into()), str_value: Some(line), ..GenericField::default() };
            let generic = Some(Generic { event_name: Some(HEADER_EVENT.into()), field: vec![comment] });
            self.push(cpu, FtraceEvent { timestamp: event.timestamp, pid: Some(0), generic, ..FtraceEvent::default() });
        }
        if self.bundle.cpu != Some(cpu.0) || self.bundle.event.len() == BUNDLE_EVENTS {
            self.flush_bundle();
            self.bundle.cpu = Some(cpu.0);
        }
        self.bundle.event.push(event.encode_to_vec());
    }

    /// Shows a sample on its metric's counter track.
    fn count_on_track(&mut self, time: Nanos, metric: u16, value: u64) {
        if usize::from(metric) < self.metrics {
            let track_event = Some(TrackEvent {
                r#type: Some(COUNTER),
                track_uuid: Some(TRACK_BASE + u64::from(metric)),
                counter_value: Some(i64::try_from(value).unwrap_or(i64::MAX)),
            });
            self.packet(&TracePacket { timestamp: Some(time), track_event, ..sequenced(0) });
        }
    }
}

impl RecordWriter for PerfettoWriter {
    fn write(&mut self, record: &Record<'_>) {
        let mut message = match &record.body {
            Body::Lost(count) => {
                self.flush_bundle();
                self.bundle.lost_events = Some(true);
                self.bundle.cpu = Some(record.cpu.0);
                let count = format!("count={count}");
                other(record.time, record.pid, LOST_EVENT, Fields(&count))
            }
            Body::Event(kind, words) => {
                if let Kind::Sample { metric, value, .. } = *kind {
                    self.count_on_track(record.time, metric, value);
                }
                of_kind(record.time, record.pid, kind, words)
            }
            Body::Other { name, fields } => other(record.time, record.pid, name, *fields),
        };
        message.common_flags = Some(u32::from(record.flags.to_bits().0));
        self.push(record.cpu, message);
    }

    fn named(&mut self, pid: Pid, name: &str) {
        let process = Process { pid: Some(pid), ppid: Some(0), cmdline: vec![name.to_owned()] };
        let process_tree = Some(ProcessTree { processes: vec![process] });
        self.packet(&TracePacket { process_tree, ..sequenced(0) });
    }

    fn finish(mut self, _names: &Names) -> Result<(), TraceError> {
        self.flush_bundle();
        self.out.finish()
    }
}

fn sequenced(flags: u32) -> TracePacket {
    let sequence_flags = (flags != 0).then_some(flags);
    TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), sequence_flags, ..TracePacket::default() }
}

/// Perfetto decodes task states by the kernel release, so there must be one: without it, that of any recent kernel.
fn system_info(header: &Header) -> SystemInfo {
    let release = header.kernel.clone().unwrap_or_else(|| "6.12.0".to_owned());
    let text = |text: &str| Some(text.to_owned());
    let utsname =
        Utsname { sysname: text("Linux"), version: text("#1"), release: Some(release), machine: text("x86_64") };
    SystemInfo { utsname: Some(utsname), num_cpus: header.nr_cpus.and_then(|count| u32::try_from(count).ok()) }
}

/// An event without its flags.
fn of_kind(time: Nanos, pid: Pid, kind: &Kind, words: &Words<'_>) -> FtraceEvent {
    let mut event = FtraceEvent { timestamp: Some(time), pid: u32::try_from(pid).ok(), ..FtraceEvent::default() };
    let comm = || Some(words.comm.to_owned());
    let other_comm = || Some(words.other_comm.to_owned());
    let cpu = |cpu: CpuId| i32::try_from(cpu.0).ok();
    let wakeup = |pid, prio, target_cpu| {
        Some(SchedWakeup { comm: comm(), pid: Some(pid), prio: Some(prio), target_cpu: cpu(target_cpu) })
    };
    match *kind {
        Kind::Switch { prev, prev_prio, prev_state, next, next_prio } => {
            event.sched_switch = Some(SchedSwitch {
                prev_comm: comm(),
                prev_pid: Some(prev),
                prev_prio: Some(prev_prio),
                prev_state: Some(state::bits(words.prev_state, prev_state)),
                next_comm: other_comm(),
                next_pid: Some(next),
                next_prio: Some(next_prio),
            });
        }
        Kind::Waking { pid, prio, target_cpu } => event.sched_waking = wakeup(pid, prio, target_cpu),
        Kind::Wakeup { pid, prio, target_cpu } => event.sched_wakeup = wakeup(pid, prio, target_cpu),
        Kind::WakeupNew { pid, prio, target_cpu } => event.sched_wakeup_new = wakeup(pid, prio, target_cpu),
        Kind::Migrate { pid, prio, orig_cpu, dest_cpu } => {
            event.sched_migrate_task = Some(SchedMigrateTask {
                comm: comm(),
                pid: Some(pid),
                prio: Some(prio),
                orig_cpu: cpu(orig_cpu),
                dest_cpu: cpu(dest_cpu),
            });
        }
        Kind::Fork { parent, child } => {
            event.sched_process_fork = Some(SchedProcessFork {
                parent_comm: comm(),
                parent_pid: Some(parent),
                child_comm: other_comm(),
                child_pid: Some(child),
            });
        }
        Kind::Exit { pid, prio } => {
            let tgid = Some(pid);
            event.sched_process_exit = Some(SchedProcessExit { comm: comm(), pid: Some(pid), tgid, prio: Some(prio) });
        }
        _ => event.generic = Some(of_kind_without_message(kind, words)),
    }
    event
}

/// A kind that Perfetto has no message for, in the words of the text format.
fn of_kind_without_message(kind: &Kind, words: &Words<'_>) -> Generic {
    let text = kind.to_string();
    let (name, fields) = text.split_once(": ").unwrap_or((&text, ""));
    let mut generic = generic(name, Fields(fields));
    if matches!(kind, Kind::Runtime { .. }) {
        let comm = GenericField {
            name: Some("comm".into()),
            str_value: Some(words.comm.to_owned()),
            ..GenericField::default()
        };
        generic.field.insert(0, comm);
    }
    generic
}

fn other(time: Nanos, pid: Pid, name: &str, fields: Fields<'_>) -> FtraceEvent {
    let generic = Some(generic(name, fields));
    FtraceEvent { timestamp: Some(time), pid: u32::try_from(pid).ok(), generic, ..FtraceEvent::default() }
}

fn generic(name: &str, fields: Fields<'_>) -> Generic {
    let field = |(key, value): (&str, &str)| {
        let mut field = GenericField { name: Some(key.to_owned()), ..GenericField::default() };
        match (value.parse::<u64>(), value.parse::<i64>()) {
            // Only numbers that print back as they were are stored as numbers: 007 is text.
            (Ok(number), _) if number.to_string() == value => field.uint_value = Some(number),
            (_, Ok(number)) if number.to_string() == value => field.int_value = Some(number),
            _ => field.str_value = Some(value.to_owned()),
        }
        field
    };
    Generic { event_name: Some(name.to_owned()), field: fields.iter().map(field).collect() }
}
