//! The sinks of a run with guests: one reduction and one trace file per kernel, and one digest of all events.

use std::path::{Path, PathBuf};

use schedlab_metrics::{GuestTotals, GuestWakeups, Metrics, Plan, Report};
use schedlab_model::{CpuId, KernelId, Nanos, Pid};
use schedlab_sim::{GuestReport, Outcome};
use schedlab_spec::{Guest, RunSpec};
use schedlab_trace::{Digest, Event, Flags, Sink, TraceError, TraceWriter};

use crate::header::header;

/// Passes the events of each kernel to sinks of its own.
pub struct PerKernel {
    pub digest: Digest,
    metrics: Vec<Metrics>,
    traces: Vec<Box<dyn TraceWriter>>,
    /// The kernel of the last event, to which flags belong.
    flagged: usize,
}

impl PerKernel {
    /// Sinks for the host and its guests. The host's trace goes to `trace`, that of guest NAME to the file of the same
    /// name with `-NAME` before the suffix, as trace-cmd names them.
    pub fn new(spec: &RunSpec, host: Plan, trace: Option<&Path>) -> Result<Self, TraceError> {
        let guest = |guest: &Guest| {
            let nr_cpus = guest.run.machine.topology.nr_cpus();
            Plan::of(&guest.run.workloads, nr_cpus, spec.warmup).lasting(spec.duration)
        };
        let plans: Vec<Plan> = std::iter::once(host).chain(spec.guests.iter().map(guest)).collect();
        let mut traces = Vec::new();
        if let Some(path) = trace {
            traces.push(schedlab_trace::create(path, &header(spec, &plans[0]))?);
            for (guest, plan) in spec.guests.iter().zip(&plans[1..]) {
                traces.push(schedlab_trace::create(&of_guest(path, &guest.name), &header(&guest.run, plan))?);
            }
        }
        let metrics = plans.into_iter().map(Metrics::new).collect();
        Ok(PerKernel { digest: Digest::default(), metrics, traces, flagged: 0 })
    }

    /// Closes the trace files; why one of them could not be written.
    pub fn finish_traces(&mut self) -> Option<TraceError> {
        std::mem::take(&mut self.traces).into_iter().fold(None, |first, trace| first.or(trace.finish().err()))
    }

    /// The host's report with what its guests measured.
    pub fn report(self, outcomes: &[Outcome], guests: &[GuestReport]) -> (Digest, Report) {
        let end = outcomes.first().map_or(0, |outcome| outcome.now);
        let mut reports = self.metrics.into_iter().map(|metrics| metrics.finish(end));
        let mut report = reports.next().unwrap_or_default();
        for (guest, found) in guests.iter().zip(reports) {
            report.add_guest(&guest.name, found, &totals(guest, end));
        }
        (self.digest, report)
    }
}

fn totals(guest: &GuestReport, end: Nanos) -> GuestTotals<'_> {
    GuestTotals {
        time: end,
        vcpus: guest.vcpus.iter().map(|vcpu| (vcpu.run, vcpu.stolen, vcpu.halted)).collect(),
        exits: &guest.exits,
        holders_preempted: guest.holders_preempted,
        wakeups: GuestWakeups {
            idle: guest.wakeups.idle,
            halted: guest.wakeups.halted,
            preempted: guest.wakeups.preempted,
        },
    }
}

/// `trace.dat` becomes `trace-NAME.dat`, and `trace.txt.gz` `trace-NAME.txt.gz`.
fn of_guest(path: &Path, name: &str) -> PathBuf {
    let file = path.file_name().map_or_else(String::new, |file| file.to_string_lossy().into_owned());
    let (stem, suffixes) =
        file.split_once('.').map_or((file.as_str(), String::new()), |(stem, rest)| (stem, format!(".{rest}")));
    path.with_file_name(format!("{stem}-{name}{suffixes}"))
}

impl Sink for PerKernel {
    fn event(&mut self, event: &Event) {
        self.digest.event(event);
        let kernel = event.kernel.index();
        let own = Event { kernel: KernelId::FIRST, ..*event };
        self.metrics[kernel].event(&own);
        if let Some(trace) = self.traces.get_mut(kernel) {
            trace.event(&own);
        }
    }

    fn name(&mut self, kernel: KernelId, pid: Pid, name: &str) {
        self.digest.name(kernel, pid, name);
        self.metrics[kernel.index()].name(KernelId::FIRST, pid, name);
        if let Some(trace) = self.traces.get_mut(kernel.index()) {
            trace.name(KernelId::FIRST, pid, name);
        }
    }

    fn is_trace(&self) -> bool {
        self.traces.iter().any(|trace| trace.is_trace())
    }

    fn kernel(&mut self, kernel: KernelId) {
        self.flagged = kernel.index();
    }

    fn flags(&mut self, flags: Flags) {
        if let Some(trace) = self.traces.get_mut(self.flagged) {
            trace.flags(flags);
        }
    }

    fn trace_only(&mut self, event: &Event) {
        if let Some(trace) = self.traces.get_mut(event.kernel.index()) {
            trace.trace_only(&Event { kernel: KernelId::FIRST, ..*event });
        }
    }

    fn note(&mut self, time: Nanos, cpu: CpuId, name: &str, fields: &str) {
        if let Some(trace) = self.traces.get_mut(self.flagged) {
            trace.note(time, cpu, name, fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guests_trace_stands_beside_its_hosts() {
        for (path, want) in [("/a/t.dat", "/a/t-vm.dat"), ("t.txt.gz", "t-vm.txt.gz"), ("t", "t-vm")] {
            assert_eq!(of_guest(Path::new(path), "vm"), Path::new(want));
        }
    }
}
