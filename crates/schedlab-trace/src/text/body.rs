//! The text after the event's name.
//!
//! The tracepoints' own print formats (include/trace/events/sched.h) are `comm=%s pid=%d ...`; a comm may hold any
//! character, so it is cut at the LAST occurrence of the key that follows it. trace-cmd's and perf's plugins print
//! three events their own way: `comm:pid [prio] CPU:cpu` and `comm:pid [prio] state ==> comm:pid [prio]`.

use schedlab_model::{CpuId, Pid, MAX_CPUS};

use crate::record::{Body, Fields, Words};
use crate::{state, Call, Extension, Kind, Lock, ScanTimes, Section};

/// Reads the body of the event `name`. The error says what is wrong with it.
pub fn parse<'a>(name: &'a str, text: &'a str) -> Result<Body<'a>, String> {
    let parsed = match name {
        "sched_switch" => switch(text).or_else(|| plugin_switch(text)),
        "sched_waking" => {
            task(text, |pid, f| Some(Kind::Waking { pid, prio: f.number("prio")?, target_cpu: cpu(f, "target_cpu")? }))
        }
        "sched_wakeup" if !text.starts_with("comm=") => {
            plugin_wakeup(text, |pid, prio, target_cpu| Kind::Wakeup { pid, prio, target_cpu })
        }
        "sched_wakeup_new" if !text.starts_with("comm=") => {
            plugin_wakeup(text, |pid, prio, target_cpu| Kind::WakeupNew { pid, prio, target_cpu })
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
        "schedlab_sample"
        | "schedlab_count"
        | "schedlab_scan"
        | "schedlab_fault"
        | "schedlab_resched"
        | "schedlab_nonpreemptible"
        | "schedlab_extension"
        | "schedlab_lock"
        | "schedlab_refill"
        | "schedlab_numa" => program(name, Fields(text)),
        _ => return Ok(Body::Other { name, fields: Fields(text) }),
    };
    let body = parsed.ok_or_else(|| format!("{name} does not have the fields a kernel prints: '{text}'"))?;
    match &body {
        Body::Event(kind, _) => kind.impossible().map_or(Ok(body), |what| Err(format!("{name}: {what}"))),
        Body::Lost(_) | Body::Other { .. } => Ok(body),
    }
}

fn switch(text: &str) -> Option<Body<'_>> {
    // Between the two, `trace-cmd report -R` prints nothing.
    let (prev, next) = cut(text, " ==> next_comm=").or_else(|| cut(text, " next_comm="))?;
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
    let (comm, parent) = match parent.strip_prefix("parent_comm=") {
        Some(parent) => cut(parent, " parent_pid=")?,
        None => cut(parent.strip_prefix("comm=")?, " pid=")?,
    };
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
        "schedlab_fault" => Kind::Fault { pid, kib: fields.number("kib")?, major: fields.number("major") == Some(1) },
        "schedlab_refill" => Kind::Refill { pid, kib: fields.number("kib")?, time: fields.number("time")? },
        "schedlab_numa" => Kind::Numa {
            pid,
            faults: fields.number("faults")?,
            local: fields.number("local")?,
            migrated: fields.number("migrated")?,
            time: fields.number("time")?,
        },
        "schedlab_resched" => {
            Kind::Resched { pid, waited: fields.number("waited")?, section: Section::parse(fields.get("section")?)? }
        }
        "schedlab_nonpreemptible" => Kind::NonPreemptible {
            pid,
            time: fields.number("time")?,
            section: Section::parse(fields.get("section")?)?,
            call: match fields.get("call")? {
                "-" => None,
                name => Some(Call::parse(name)?),
            },
        },
        "schedlab_extension" => Kind::Extension { pid, what: Extension::parse(fields.get("what")?)? },
        "schedlab_lock" => {
            Kind::LockWait { pid, lock: Lock::from_number(fields.number("lock")?)?, wait: fields.number("wait")? }
        }
        _ => {
            let functions = ScanTimes {
                sibling: fields.number("sibling") == Some(1),
                core: fields.number("core").unwrap_or(0),
                cpu: fields.number("cpu").unwrap_or(0),
                smt: fields.number("smt").unwrap_or(0),
            };
            Kind::Scan { pid, tested: fields.number("tested")?, cost: fields.number("cost")?, functions }
        }
    };
    Some(Body::Event(kind, Words::default()))
}

fn plugin_switch(text: &str) -> Option<Body<'_>> {
    let (left, right) = cut(text, " ==> ")?;
    let (comm, prev, prev_prio, letters) = plugin_task(left)?;
    // The plugins still name the bits from 0x10 on as kernels before 4.14 did.
    let prev_state = match letters {
        "Z" => "X",
        "X" => "Z",
        "x" => "P",
        "W" => "I",
        other => other,
    };
    let (other_comm, next, next_prio, _) = plugin_task(right)?;
    let kind = Kind::Switch { prev, prev_prio, prev_state: state::parse(prev_state)?, next, next_prio };
    Some(Body::Event(kind, Words { comm, other_comm, prev_state }))
}

fn plugin_wakeup<'a>(text: &'a str, kind: impl Fn(Pid, i32, CpuId) -> Kind) -> Option<Body<'a>> {
    let (comm, pid, prio, rest) = plugin_task(text)?;
    let cpu: u32 = cut(rest, "CPU:")?.1.trim().parse().ok()?;
    let cpu = Some(cpu).filter(|cpu| (*cpu as usize) < MAX_CPUS).map(CpuId)?;
    Some(Body::Event(kind(pid, prio, cpu), Words { comm, ..Words::default() }))
}

/// `comm:pid [prio] rest`
fn plugin_task(text: &str) -> Option<(&str, Pid, i32, &str)> {
    let (task, rest) = cut(text, " [")?;
    let (comm, pid) = task.rsplit_once(':')?;
    let (prio, rest) = rest.split_once(']')?;
    Some((comm, pid.parse().ok()?, prio.parse().ok()?, rest.trim()))
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
