//! Reads trace text in the formats in use, recognised line by line:
//!
//! - ftrace, as `/sys/kernel/tracing/trace` prints it: `comm-pid (tgid) [cpu] flags seconds.fraction: event: fields`
//! - `trace-cmd report`: the same, without flags, with the name of an instance before it
//! - `perf script`: `comm pid/tid [cpu] seconds.fraction: system:event: fields`

use std::io::BufRead;
use std::path::Path;

use schedlab_model::{CpuId, Nanos, Pid, MAX_CPUS};

use super::body;
use super::lines::Lines;
use crate::error::{Fault, TraceError};
use crate::record::{Header, Record, TraceReader};
use crate::Flags;

/// Input with more comment lines than this in a row is not a trace.
const COMMENTS_MAX: usize = 10_000;

/// Reads a trace in text form.
pub struct TextReader {
    lines: Lines,
    header: Header,
    /// Whether the current line is an event that the header's reading ran into.
    pending: bool,
    /// Whether it is the output of trace-cmd report.
    trace_cmd: bool,
    last: Nanos,
    lost: u64,
    line: String,
}

/// A line up to its body.
struct Prefix<'a> {
    comm: &'a str,
    pid: Pid,
    cpu: CpuId,
    flags: Flags,
    time: Nanos,
    name: &'a str,
    body: &'a str,
}

impl TextReader {
    /// Reads the header. `file` is what errors call the input.
    pub fn new(input: Box<dyn BufRead + Send>, file: &Path) -> Result<TextReader, TraceError> {
        let lines = Lines::new(input, file);
        let mut reader = TextReader {
            lines,
            header: Header::default(),
            pending: false,
            trace_cmd: false,
            last: 0,
            lost: 0,
            line: String::new(),
        };
        reader.read_header()?;
        Ok(reader)
    }

    fn read_header(&mut self) -> Result<(), TraceError> {
        for _ in 0..COMMENTS_MAX {
            if !self.lines.advance()? {
                return Ok(());
            }
            let line = self.lines.line();
            let Some(comment) = line.strip_prefix('#') else {
                if line.trim().is_empty() {
                    continue;
                }
                self.pending = true;
                return Ok(());
            };
            // The legend of the columns is indented by more than one space.
            match comment.strip_prefix(' ') {
                Some(words) if !words.starts_with(' ') => self.header.learn(words.trim_end()),
                _ => {}
            }
        }
        Err(self.lines.malformed(format!("{COMMENTS_MAX} comment lines and no event: not a trace")))
    }

    /// Moves to the next line that is an event and keeps it in `self.line`.
    fn next_event_line(&mut self) -> Result<bool, TraceError> {
        for _ in 0..COMMENTS_MAX {
            if !std::mem::take(&mut self.pending) && !self.lines.advance()? {
                return Ok(false);
            }
            let line = self.lines.line();
            let text = line.trim_start();
            if let Some(lost) = lost_events(text) {
                self.lost = self.lost.saturating_add(lost);
            } else if let Some(count) = text.strip_prefix("cpus=") {
                // The first line of trace-cmd report.
                self.header.nr_cpus = self.header.nr_cpus.or(count.trim().parse().ok());
                self.trace_cmd = true;
            } else if !text.is_empty() && !line.starts_with('#') && !text.starts_with("=> ") {
                self.line.clear();
                self.line.push_str(if self.trace_cmd { without_instance(text) } else { &line });
                return Ok(true);
            }
        }
        Err(self.lines.malformed(format!("{COMMENTS_MAX} lines without an event: not a trace")))
    }
}

impl TraceReader for TextReader {
    fn lost(&self) -> u64 {
        self.lost
    }

    fn header(&self) -> &Header {
        &self.header
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        if !self.next_event_line()? {
            return Ok(None);
        }
        let prefix = prefix(&self.line).map_err(|what| self.lines.malformed(what))?;
        let body = body::parse(prefix.name, prefix.body).map_err(|what| self.lines.malformed(what))?;
        let before = std::mem::replace(&mut self.last, prefix.time);
        if prefix.time < before {
            return Err(self.lines.fault(Fault::Backwards { before, after: prefix.time }));
        }
        let Prefix { comm, pid, cpu, flags, time, .. } = prefix;
        Ok(Some(Record { time, cpu, comm, pid, flags, body }))
    }
}

/// `CPU:3 [LOST 123 EVENTS]`, or without a number where the kernel could not store it.
fn lost_events(line: &str) -> Option<u64> {
    let count = line.strip_prefix("CPU:")?.split_once("[LOST")?.1;
    count.split_ascii_whitespace().next()?.parse().ok().or(Some(1))
}

fn prefix(line: &str) -> Result<Prefix<'_>, String> {
    let (comm, pid, cpu, rest) = task_and_cpu(line).ok_or("expected 'task-pid [cpu] time: event: fields'")?;
    let cpu = cpu.filter(|cpu| (*cpu as usize) < MAX_CPUS).ok_or("a CPU number that no kernel has")?;
    let (word, after) = word(rest);
    let (flags, stamp, after) = match word.ends_with(':') {
        true => (Flags::NONE, word, after),
        false => {
            let flags = Flags::parse(word).ok_or_else(|| format!("'{word}' is no column of context flags"))?;
            let (stamp, after) = self::word(after);
            (flags, stamp, after)
        }
    };
    let time = timestamp(stamp)?;
    let (name, body) = event_name(after);
    Ok(Prefix { comm, pid, cpu: CpuId(cpu), flags, time, name, body })
}

/// `instance:   comm-pid ...`: the names of instances stand before the tasks'.
fn without_instance(line: &str) -> &str {
    match line.split_once(':') {
        Some((instance, rest)) if !instance.contains(char::is_whitespace) && rest.starts_with("  ") => rest,
        _ => line,
    }
}

/// `comm-pid` or `comm pid/tid`, an optional `(tgid)`, `[cpu]`. A comm may itself contain such a bracket: the first
/// that fits counts.
fn task_and_cpu(line: &str) -> Option<(&str, Pid, Option<u32>, &str)> {
    line.match_indices(" [").find_map(|(open, bracket)| {
        let (cpu, rest) = line[open + bracket.len()..].split_once(']')?;
        let digits = !cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit());
        let (comm, pid) = task(line[..open].trim())?;
        digits.then_some((comm, pid, cpu.parse().ok(), rest))
    })
}

fn task(text: &str) -> Option<(&str, Pid)> {
    let is_tgid = |text: &str| text.trim().bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let text = match text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        Some((task, tgid)) if is_tgid(tgid) => task.trim_end(),
        _ => text,
    };
    let (comm, pid) = text.rsplit_once('-').unwrap_or((text, ""));
    if let Ok(pid) = pid.parse() {
        return Some((comm, pid));
    }
    let (comm, pid) = text.rsplit_once(char::is_whitespace)?;
    let tid = pid.rsplit_once('/').map_or(pid, |(_, tid)| tid);
    Some((comm.trim_end(), tid.parse().ok()?))
}

/// The first word and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// `seconds.fraction:` in ns.
pub(super) fn timestamp(stamp: &str) -> Result<Nanos, String> {
    let parse = || {
        let (seconds, fraction) = stamp.strip_suffix(':')?.split_once('.')?;
        let all_digits = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
        let scale = 10u64.pow(9u32.checked_sub(u32::try_from(fraction.len()).ok()?)?);
        let fraction = if all_digits { fraction.parse::<u64>().ok()? * scale } else { return None };
        seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
    };
    parse().ok_or_else(|| format!("'{stamp}' is no time in seconds (trace_clock must be local, global, mono or boot)"))
}

/// `event: fields` or `system:event: fields`; lines of function tracers have no event name.
fn event_name(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (first, body) = word(text);
    match first.strip_suffix(':') {
        Some(name) => (name.rsplit_once(':').map_or(name, |(_, event)| event), body.trim_start()),
        None => ("", text),
    }
}
