//! Writes ftrace text, streaming. Times have nine decimals, where the kernel rounds to six.

use std::io::Write;

use schedlab_model::{CpuId, Nanos, Pid};

use crate::error::TraceError;
use crate::names::Names;
use crate::output::Output;
use crate::record::{pids, Body, Header, Record, TraceWriter, Words};
use crate::{Event, Flags, Kind, Sink};

/// Writes ftrace text.
pub struct FtraceWriter {
    out: Output,
    names: Names,
    /// What runs on each CPU.
    running: Vec<Pid>,
}

impl FtraceWriter {
    /// Writes the header.
    pub fn new(mut out: Output, header: &Header) -> FtraceWriter {
        out.keep(|out| write_header(out, header));
        FtraceWriter { out, names: Names::default(), running: Vec::new() }
    }

    fn line(&mut self, time: Nanos, cpu: CpuId, (comm, pid): (&str, Pid), flags: Flags, body: &str) {
        let (seconds, ns) = (time / 1_000_000_000, time % 1_000_000_000);
        let cpu = cpu.0;
        self.out.keep(|out| writeln!(out, "{comm:>16}-{pid:<7} [{cpu:03}] {flags} {seconds:5}.{ns:09}: {body}"));
    }

    fn running(&self, cpu: CpuId) -> Pid {
        self.running.get(cpu.index()).copied().unwrap_or(0)
    }

    /// Follows who runs where, for the task column of simulated events.
    fn follow(&mut self, cpu: CpuId, kind: &Kind) {
        if let Kind::Switch { next, .. } = kind {
            if self.running.len() <= cpu.index() {
                self.running.resize(cpu.index() + 1, 0);
            }
            self.running[cpu.index()] = *next;
        }
    }
}

impl Sink for FtraceWriter {
    fn event(&mut self, event: &Event) {
        let running = match event.kind {
            Kind::Switch { prev, .. } => prev,
            Kind::Sample { pid, .. } | Kind::Count { pid, .. } => pid,
            _ => self.running(event.cpu),
        };
        let names = std::mem::take(&mut self.names);
        let idle = format!("swapper/{}", event.cpu.0);
        let name = |pid| if pid == 0 { idle.as_str() } else { names.get(pid) };
        let [first, second] = pids(&event.kind);
        let prev_state = match event.kind {
            Kind::Switch { prev_state, .. } => prev_state.to_string(),
            _ => String::new(),
        };
        let words = Words { comm: name(first), other_comm: name(second), prev_state: &prev_state };
        let body = body(&event.kind, &words);
        let comm = if running == 0 { "<idle>" } else { names.get(running) };
        self.line(event.time, event.cpu, (comm, running), Flags::NONE, &body);
        self.names = names;
        self.follow(event.cpu, &event.kind);
    }

    fn name(&mut self, pid: Pid, name: &str) {
        self.names.set(pid, name);
    }
}

impl TraceWriter for FtraceWriter {
    fn record(&mut self, record: &Record<'_>) {
        let text = match &record.body {
            Body::Event(kind, words) => body(kind, words),
            Body::Other { name: "", fields } => fields.0.to_owned(),
            Body::Other { name, fields } => format!("{name}: {}", fields.0),
        };
        self.line(record.time, record.cpu, (record.comm, record.pid), record.flags, &text);
    }

    fn finish(self: Box<Self>) -> Result<(), TraceError> {
        self.out.finish()
    }
}

/// The tracepoint's own print format.
fn body(kind: &Kind, words: &Words<'_>) -> String {
    let Words { comm, other_comm, prev_state } = words;
    match *kind {
        Kind::Switch { prev, prev_prio, next, next_prio, .. } => format!(
            "sched_switch: prev_comm={comm} prev_pid={prev} prev_prio={prev_prio} prev_state={prev_state} \
             ==> next_comm={other_comm} next_pid={next} next_prio={next_prio}"
        ),
        Kind::Fork { parent, child } => {
            format!("sched_process_fork: comm={comm} pid={parent} child_comm={other_comm} child_pid={child}")
        }
        Kind::Sample { .. } | Kind::Count { .. } | Kind::Scan { .. } => kind.to_string(),
        _ => {
            // Every other kind prints `name: pid=...`, and the kernel's format has the comm before it.
            let text = kind.to_string();
            text.replacen(": ", &format!(": comm={comm} "), 1)
        }
    }
}

/// Perfetto knows ftrace text by its first line, so that comes before what the file says about its origin.
fn write_header(out: &mut dyn Write, header: &Header) -> std::io::Result<()> {
    writeln!(out, "# tracer: nop\n#")?;
    if header.comments.iter().all(|line| !line.starts_with("kernel ")) {
        if let Some(kernel) = &header.kernel {
            writeln!(out, "# kernel {kernel} cpus {}", header.nr_cpus.unwrap_or(1))?;
        }
    }
    header.comments.iter().try_for_each(|line| writeln!(out, "# {line}"))?;
    for (index, (name, unit)) in header.metrics.iter().enumerate() {
        writeln!(out, "# metric {index} {name} {unit}")?;
    }
    let cpus = header.nr_cpus.map(|count| format!("   #P:{count}")).unwrap_or_default();
    writeln!(out, "#\n# entries-in-buffer/entries-written: 0/0{cpus}\n#")?;
    out.write_all(COLUMNS.as_bytes())
}

/// The legend of the columns, as the kernel draws it.
const COLUMNS: &str = "\
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";
