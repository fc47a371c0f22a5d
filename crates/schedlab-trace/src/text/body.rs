//! What stands after the event's name in `ftrace` text and in `perf script`: the tracepoints' own print formats.
//!
//! include/trace/events/sched.h prints `comm=%s pid=%d ...`; a comm may hold any character, so it is cut at the LAST
//! occurrence of the key that follows it.

use schedlab_model::{CpuId, Pid, MAX_CPUS};

use crate::record::{Body, Fields, Words};
use crate::{state, Kind};

/// Reads the body of the event `name`. The error says what is wrong with it.
pub fn parse<'a>(name: &'a str, text: &'a str) -> Result<Body<'a>, String> {
    let parsed = match name {
        "sched_switch" => switch(text),
        "sched_waking" => {
            task(text, |pid, f| Some(Kind::Waking { pid, prio: f.number("prio")?, target_cpu: cpu(f, "target_cpu")? }))
        }
        "sched_wakeup" => {
            task(text, |pid, f| Some(Kind::Wakeup { pid, prio: f.number("prio")?, target_cpu: cpu(f, "target_cpu")? }))
        }
        "sched_wakeup_new" => task(text, |pid, f| {
            Some(Kind::WakeupNew { pid, prio: f.number("prio")?, target_cpu: cpu(f, "target_cpu")? })
        }),
        "sched_migrate_task" => task(text, |pid, f| {
            let (orig_cpu, dest_cpu) = (cpu(f, "orig_cpu")?, cpu(f, "dest_cpu")?);
            Some(Kind::Migrate { pid, prio: f.number("prio")?, orig_cpu, dest_cpu })
        }),
        "sched_process_exit" => task(text, |pid, f| Some(Kind::Exit { pid, prio: f.number("prio")? })),
        "sched_stat_runtime" => task(text, |pid, f| {
            let vruntime = f.get("vruntime").map_or(Some(None), |_| f.number("vruntime").map(Some))?;
            Some(Kind::Runtime { pid, runtime: f.number("runtime")?, vruntime })
        }),
        "sched_process_fork" => fork(text),
        "schedlab_sample" | "schedlab_count" | "schedlab_scan" => program(name, Fields(text)),
        _ => return Ok(Body::Other { name, fields: Fields(text) }),
    };
    parsed.ok_or_else(|| format!("{name} does not have the fields a kernel prints: '{text}'"))
}

fn switch(text: &str) -> Option<Body<'_>> {
    let (prev, next) = cut(text, " ==> next_comm=")?;
    let (comm, prev) = cut(prev.strip_prefix("prev_comm=")?, " prev_pid=")?;
    let (other_comm, next) = cut(next, " next_pid=")?;
    let (prev_fields, next_fields) = (Fields(prev), Fields(next));
    let prev_state = prev_fields.get("prev_state")?;
    let kind = Kind::Switch {
        prev: first(prev)?,
        prev_prio: prev_fields.number("prev_prio")?,
        prev_state: state::parse(prev_state)?,
        next: first(next)?,
        next_prio: next_fields.number("next_prio")?,
    };
    Some(Body::Event(kind, Words { comm, other_comm, prev_state }))
}

fn fork(text: &str) -> Option<Body<'_>> {
    let (parent, child) = cut(text, " child_comm=")?;
    let (comm, parent) = cut(parent.strip_prefix("comm=")?, " pid=")?;
    let (other_comm, child) = cut(child, " child_pid=")?;
    let kind = Kind::Fork { parent: first(parent)?, child: first(child)? };
    Some(Body::Event(kind, Words { comm, other_comm, prev_state: "" }))
}

/// An event about one task: `comm=... pid=...` and further fields.
fn task<'a>(text: &'a str, kind: impl Fn(Pid, Fields<'a>) -> Option<Kind>) -> Option<Body<'a>> {
    let (comm, rest) = cut(text.strip_prefix("comm=")?, " pid=")?;
    Some(Body::Event(kind(first(rest)?, Fields(rest))?, Words { comm, ..Words::default() }))
}

/// What programs and policy report; see [`crate::Event`]'s `Display`.
fn program<'a>(name: &str, fields: Fields<'a>) -> Option<Body<'a>> {
    let pid = fields.number("pid")?;
    let kind = match name {
        "schedlab_sample" => Kind::Sample { pid, metric: fields.number("metric")?, value: fields.number("value")? },
        "schedlab_count" => Kind::Count { pid, metric: fields.number("metric")?, count: fields.number("count")? },
        _ => Kind::Scan { pid, tested: fields.number("tested")?, cost: fields.number("cost")? },
    };
    Some(Body::Event(kind, Words::default()))
}

/// The text before and after the last `key`.
fn cut<'a>(text: &'a str, key: &str) -> Option<(&'a str, &'a str)> {
    let at = text.rfind(key)?;
    Some((&text[..at], &text[at + key.len()..]))
}

/// The number a text begins with.
fn first(text: &str) -> Option<Pid> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn cpu(fields: Fields<'_>, key: &str) -> Option<CpuId> {
    fields.number::<u32>(key).filter(|cpu| (*cpu as usize) < MAX_CPUS).map(CpuId)
}
