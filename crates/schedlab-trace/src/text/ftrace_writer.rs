//! Writes ftrace text, streaming. Times have nine decimals, where the kernel rounds to six.

use std::borrow::Cow;
use std::io::Write;

use crate::error::TraceError;
use crate::names::Names;
use crate::output::Output;
use crate::record::{Body, Header, Record, Words};
use crate::writer::RecordWriter;
use crate::Kind;

/// Writes ftrace text.
pub struct FtraceWriter {
    out: Output,
}

impl FtraceWriter {
    /// Writes the header.
    pub fn new(mut out: Output, header: &Header) -> FtraceWriter {
        out.keep(|out| write_header(out, header));
        FtraceWriter { out }
    }
}

impl RecordWriter for FtraceWriter {
    fn write(&mut self, record: &Record<'_>) {
        let text = match &record.body {
            Body::Lost(count) => {
                return self.out.keep(|out| writeln!(out, "CPU:{} [LOST {count} EVENTS]", record.cpu.0));
            }
            Body::Event(kind, words) => body(kind, words),
            Body::Other { name: "", fields } => fields.0.to_owned(),
            Body::Other { name, fields } => format!("{name}: {}", fields.0),
        };
        let Record { time, cpu, comm, pid, flags, .. } = record;
        let (seconds, ns) = (time / 1_000_000_000, time % 1_000_000_000);
        let (comm, text) = (one_line(comm), one_line(&text));
        self.out.keep(|out| writeln!(out, "{comm:>16}-{pid:<7} [{:03}] {flags} {seconds:5}.{ns:09}: {text}", cpu.0));
    }

    fn finish(self, _names: &Names) -> Result<(), TraceError> {
        self.out.finish()
    }
}

/// Text without control characters and without marks that change the direction of writing. A comm may hold any byte,
/// and a record is one line.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.into();
    }
    let marks = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() || marks(c) { '?' } else { c }).collect()
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
        Kind::Sample { .. }
        | Kind::Count { .. }
        | Kind::Scan { .. }
        | Kind::Fault { .. }
        | Kind::Resched { .. }
        | Kind::NonPreemptible { .. }
        | Kind::Extension { .. }
        | Kind::Refill { .. }
        | Kind::Numa { .. }
        | Kind::LockWait { .. } => kind.to_string(),
        _ => {
            // Every other kind prints `name: pid=...`, and the kernel's format has the comm before it.
            let text = kind.to_string();
            text.replacen(": ", &format!(": comm={comm} "), 1)
        }
    }
}

/// Perfetto recognizes ftrace text by its first line, so that line precedes the comments about the file's origin.
fn write_header(out: &mut dyn Write, header: &Header) -> std::io::Result<()> {
    writeln!(out, "# tracer: nop\n#")?;
    header.lines().try_for_each(|line| writeln!(out, "# {}", one_line(&line)))?;
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
