//! What stands before the fields of an event: task, CPU, context, time and name, in the layout of each tool.

use schedlab_model::{CpuId, Nanos, Pid, MAX_CPUS};

use super::columns::Columns;
use crate::Flags;

/// What the error says about a word in the place of the time.
pub const NO_TIME: &str = "is no time in seconds (trace_clock must be local, global, mono or boot)";

/// A line up to its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix<'a> {
    pub comm: &'a str,
    pub pid: Pid,
    pub cpu: CpuId,
    pub flags: Flags,
    pub time: Nanos,
    /// The name of the event without its system; empty for the lines of function tracers.
    pub name: &'a str,
    pub body: &'a str,
    /// perf printed it: lines of call chains may follow.
    pub perf: bool,
}

/// Reads the prefix of a line. The error says what was expected.
pub fn prefix<'a>(line: &'a str, columns: &Columns) -> Result<Prefix<'a>, String> {
    match task_and_cpu(line) {
        Some(found) => bracketed(found, columns),
        None => latency(line, columns)
            .or_else(|| latency_report(line, columns))
            .ok_or_else(|| "expected 'task-pid [cpu] time: event: fields'".to_owned()),
    }
}

/// `comm-pid [cpu] flags seconds.fraction: event: fields`
fn bracketed<'a>(found: TaskAndCpu<'a>, columns: &Columns) -> Result<Prefix<'a>, String> {
    let TaskAndCpu { comm, pid, cpu, perf, rest } = found;
    let cpu = cpu.filter(|cpu| (*cpu as usize) < MAX_CPUS).ok_or("a CPU number that no kernel has")?;
    let (word, after) = word(rest);
    let (flags, stamp, after) = match word.ends_with(':') {
        true => (Flags::NONE, word, after),
        false => {
            let flags = columns.parse(word).ok_or_else(|| format!("'{word}' is no column of context flags"))?;
            let (stamp, after) = self::word(after);
            (flags, stamp, after)
        }
    };
    let time = timestamp(stamp)?;
    let (name, body) = event_name(after);
    Ok(Prefix { comm, pid, cpu: CpuId(cpu), flags, time, name, body, perf })
}

/// ftrace with the option latency-format: `comm-pid   cpuflags   12us+: event: fields`.
fn latency<'a>(line: &'a str, columns: &Columns) -> Option<Prefix<'a>> {
    let (at, _) = line.match_indices("us").find(|(at, _)| {
        let (before, after) = (&line.as_bytes()[..*at], &line.as_bytes()[at + 2..]);
        let marked = matches!(after, [b':', ..] | [b' ' | b'+' | b'!' | b'#' | b'*' | b'@' | b'$', b':', ..]);
        marked && before.last().is_some_and(u8::is_ascii_digit)
    })?;
    let body = line[at + 2..].split_once(':')?.1;
    let (head, time) = line[..at].trim_end().rsplit_once(char::is_whitespace)?;
    placed(head, time.parse::<u64>().ok()?.checked_mul(1000)?, body, columns)
}

/// `trace-cmd report -l`: `comm-pid   cpuflags   seconds.fraction: event: fields`.
fn latency_report<'a>(line: &'a str, columns: &Columns) -> Option<Prefix<'a>> {
    let (head, time, body) = line.match_indices(": ").find_map(|(at, _)| {
        let (head, stamp) = line[..=at].rsplit_once(char::is_whitespace)?;
        Some((head, timestamp(stamp).ok()?, &line[at + 1..]))
    })?;
    placed(head, time, body, columns)
}

/// The CPU and the flags are one word.
fn placed<'a>(head: &'a str, time: Nanos, body: &'a str, columns: &Columns) -> Option<Prefix<'a>> {
    let (task, place) = head.trim().rsplit_once(char::is_whitespace)?;
    let digits = place.bytes().take_while(u8::is_ascii_digit).count();
    let (cpu, flags) = place.split_at(digits);
    let cpu = cpu.parse::<u32>().ok().filter(|cpu| (*cpu as usize) < MAX_CPUS)?;
    let (comm, pid) = task.trim_end().rsplit_once('-')?;
    let (name, body) = event_name(body);
    let (pid, flags) = (pid.parse().ok()?, columns.parse(flags)?);
    Some(Prefix { comm, pid, cpu: CpuId(cpu), flags, time, name, body, perf: false })
}

struct TaskAndCpu<'a> {
    comm: &'a str,
    pid: Pid,
    cpu: Option<u32>,
    /// perf separates the pid by a blank.
    perf: bool,
    rest: &'a str,
}

/// `comm-pid` or `comm pid/tid`, an optional `(tgid)`, `[cpu]`. A comm may itself contain such a bracket: the first
/// that fits counts.
fn task_and_cpu(line: &str) -> Option<TaskAndCpu<'_>> {
    line.match_indices(" [").find_map(|(open, bracket)| {
        let (cpu, rest) = line[open + bracket.len()..].split_once(']')?;
        let digits = !cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit());
        let (comm, pid, perf) = task(line[..open].trim())?;
        digits.then_some(TaskAndCpu { comm, pid, cpu: cpu.parse().ok(), perf, rest })
    })
}

fn task(text: &str) -> Option<(&str, Pid, bool)> {
    let is_tgid = |text: &str| text.trim().bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let text = match text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        Some((task, tgid)) if is_tgid(tgid) => task.trim_end(),
        _ => text,
    };
    let (comm, pid) = text.rsplit_once('-').unwrap_or((text, ""));
    if let Ok(pid) = pid.parse() {
        return Some((comm, pid, false));
    }
    let (comm, pid) = text.rsplit_once(char::is_whitespace)?;
    let tid = pid.rsplit_once('/').map_or(pid, |(_, tid)| tid);
    Some((comm.trim_end(), tid.parse().ok()?, true))
}

/// The first word and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// `seconds.fraction:` in ns.
fn timestamp(stamp: &str) -> Result<Nanos, String> {
    let parse = || {
        let (seconds, fraction) = stamp.strip_suffix(':')?.split_once('.')?;
        let all_digits = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
        let scale = 10u64.pow(9u32.checked_sub(u32::try_from(fraction.len()).ok()?)?);
        let fraction = if all_digits { fraction.parse::<u64>().ok()? * scale } else { return None };
        seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
    };
    parse().ok_or_else(|| format!("'{stamp}' {NO_TIME}"))
}

/// `event: fields` or `system:event: fields`; lines of function tracers have no event name. Before it may stand the
/// period (`perf script -F +period`) or the time since the event before (`trace-cmd report --ts-diff`).
fn event_name(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (first, body) = word(text);
    match first.strip_suffix(':') {
        Some(name) => (name.rsplit_once(':').map_or(name, |(_, event)| event), body.trim_start()),
        None if is_extra(first) && word(body).0.ends_with(':') => event_name(body),
        None => ("", text),
    }
}

fn is_extra(word: &str) -> bool {
    let number = word.strip_prefix("(+").and_then(|word| word.strip_suffix(')')).unwrap_or(word);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
