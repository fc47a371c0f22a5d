//! What all writers have in common: simulated events get the names, the running task and the strings that a
//! recorded one has, so that a format only has to write records.

use schedlab_model::{CpuId, KernelId, Nanos, Pid};

use crate::error::TraceError;
use crate::names::Names;
use crate::record::{pids, Body, Fields, Record, TraceWriter, Words};
use crate::{Event, Flags, Kind, Sink};

/// A format that can write records.
pub trait RecordWriter {
    /// Writes one record. Errors are kept until the end.
    fn write(&mut self, record: &Record<'_>);

    /// A task got a name that was not known before.
    fn named(&mut self, _pid: Pid, _name: &str) {}

    /// Writes what is still buffered; `names` are those of all tasks seen. Returns the first error of all.
    fn finish(self, names: &Names) -> Result<(), TraceError>;
}

/// Writes events and records in a format.
pub struct Writer<F> {
    format: F,
    completer: Completer,
}

/// Adds what a simulated event leaves out.
#[derive(Default)]
struct Completer {
    names: Names,
    /// What runs on each CPU, and its idle task's name.
    cpus: Vec<(Pid, String)>,
    /// The context flags of the next event.
    flags: Flags,
}

impl<F: RecordWriter> Writer<F> {
    pub fn new(format: F) -> Writer<F> {
        Writer { format, completer: Completer::default() }
    }
}

impl<F: RecordWriter> Writer<F> {
    fn rename(&mut self, pid: Pid, name: &str) {
        if self.completer.names.set(pid, name) {
            self.format.named(pid, name);
        }
    }
}

impl<F: RecordWriter> Sink for Writer<F> {
    fn event(&mut self, event: &Event) {
        let record = self.completer.record(event);
        self.format.write(&record);
        if let Kind::Switch { next, .. } = event.kind {
            self.completer.cpus[event.cpu.index()].0 = next;
        }
    }

    fn name(&mut self, _kernel: KernelId, pid: Pid, name: &str) {
        self.rename(pid, name);
    }

    fn is_trace(&self) -> bool {
        true
    }

    fn flags(&mut self, flags: Flags) {
        self.completer.flags = flags;
    }

    fn trace_only(&mut self, event: &Event) {
        self.event(event);
    }

    fn note(&mut self, time: Nanos, cpu: CpuId, name: &str, fields: &str) {
        let record = self.completer.note(time, cpu, name, fields);
        self.format.write(&record);
    }
}

impl<F: RecordWriter + Send> TraceWriter for Writer<F> {
    fn record(&mut self, record: &Record<'_>) {
        record.names().for_each(|(pid, comm)| self.rename(pid, comm));
        if record.pid != 0 && !record.comm.is_empty() {
            self.rename(record.pid, record.comm);
        }
        self.format.write(record);
    }

    fn finish(self: Box<Self>) -> Result<(), TraceError> {
        self.format.finish(&self.completer.names)
    }
}

impl Completer {
    /// The record of a simulated event.
    fn record(&mut self, event: &Event) -> Record<'_> {
        let cpu = event.cpu.index();
        for number in self.cpus.len()..=cpu {
            self.cpus.push((0, format!("swapper/{number}")));
        }
        let pid = match event.kind {
            Kind::Switch { prev, .. } => prev,
            Kind::Sample { pid, .. } | Kind::Count { pid, .. } => pid,
            _ => self.cpus[cpu].0,
        };
        let flags = std::mem::take(&mut self.flags);
        let [first, second] = pids(&event.kind);
        let prev_state = match event.kind {
            Kind::Switch { prev_state, .. } => prev_state.letter(),
            _ => "",
        };
        let has_second = matches!(event.kind, Kind::Switch { .. } | Kind::Fork { .. });
        let other_comm = if has_second { self.name(second, event.cpu) } else { "" };
        let words = match event.kind {
            Kind::Sample { .. }
            | Kind::Count { .. }
            | Kind::Scan { .. }
            | Kind::Fault { .. }
            | Kind::Resched { .. }
            | Kind::NonPreemptible { .. }
            | Kind::Extension { .. }
            | Kind::Refill { .. }
            | Kind::Numa { .. }
            | Kind::LockWait { .. } => Words::default(),
            _ => Words { comm: self.name(first, event.cpu), other_comm, prev_state },
        };
        let comm = if pid == 0 { "<idle>" } else { self.names.get(pid) };
        let body = Body::Event(event.kind, words);
        Record { time: event.time, cpu: event.cpu, comm, pid, flags, body }
    }

    /// The record of a note.
    fn note<'a>(&'a mut self, time: Nanos, cpu: CpuId, name: &'a str, fields: &'a str) -> Record<'a> {
        let flags = std::mem::take(&mut self.flags);
        let pid = self.cpus.get(cpu.index()).map_or(0, |(pid, _)| *pid);
        let comm = if pid == 0 { "<idle>" } else { self.names.get(pid) };
        Record { time, cpu, comm, pid, flags, body: Body::Other { name, fields: Fields(fields) } }
    }

    fn name(&self, pid: Pid, cpu: CpuId) -> &str {
        if pid == 0 {
            &self.cpus[cpu.index()].1
        } else {
            self.names.get(pid)
        }
    }
}
