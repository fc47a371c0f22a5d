//! Scheduling properties of a task or a phase: policy, priority, slice, deadline parameters, CPUs.

use schedlab_model::{CpuId, CpuMask, Nanos, USEC};

use super::json::{short, At, Json, Member};
use super::take::{int, text, wrong, Object};
use super::RtAppError;
use crate::{Deadline, Policy};
use schedlab_model::closest;

/// What an object sets; `None` leaves it as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Props {
    pub policy: Option<Policy>,
    pub nice: Option<i8>,
    pub slice: Option<Nanos>,
    pub cpus: Option<CpuMask>,
    pub taskgroup: Option<String>,
}

/// Keys of both levels.
pub(super) const KEYS: [&str; 10] = [
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "util_min",
    "util_max",
    "cpus",
    "nodes_membind",
    "taskgroup",
];

const POLICIES: [&str; 6] = ["SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE", "SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"];

/// Priority of a real-time task that names none (`DEFAULT_THREAD_PRIORITY`).
const DEFAULT_PRIORITY: u8 = 10;

/// The deepest task group.
const MAX_DEPTH: usize = 32;

/// What the properties of a task or phase depend on.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    pub nr_cpus: usize,
    /// A task that names no policy is a SCHED_DEADLINE task; a phase that names none keeps that of its task.
    pub deadline: bool,
}

/// Reads the properties of a task at `at` (`None`: of a phase).
pub(super) fn read(object: &Object<'_>, machine: Machine, at: Option<At>) -> Result<Props, RtAppError> {
    let nr_cpus = machine.nr_cpus;
    if let Some(member) = object.get("nodes_membind")? {
        return Err(RtAppError::at(member.at, "nodes_membind", "memory placement has no model"));
    }
    for key in ["util_min", "util_max"] {
        check_util(object, key)?;
    }
    let cpus = cpus(object, nr_cpus)?;
    let named = object.get("policy")?;
    let default = at.filter(|_| machine.deadline && named.is_none());
    if let Some(at) = named.filter(|member| is_deadline(member)).map(|member| member.at).or(default) {
        let policy = Some(Policy::Deadline(deadline(object, at, cpus, nr_cpus)?));
        return Ok(Props { policy, nice: None, slice: None, cpus, taskgroup: taskgroup(object, policy)? });
    }
    let policy = named.map(policy_of).transpose()?;
    let (policy, nice) = match policy {
        Some(policy @ (Policy::Fifo(_) | Policy::RoundRobin(_))) => (Some(priority(object, policy)?), None),
        _ => (policy, nice(object)?),
    };
    for key in ["dl-period", "dl-deadline"] {
        if let Some(member) = object.get(key)? {
            let what = "of use to SCHED_DEADLINE alone";
            return Err(RtAppError::at(member.at, key, what).hint("add the policy; dl-runtime alone is a slice"));
        }
    }
    let taskgroup = taskgroup(object, policy)?;
    Ok(Props { policy, nice, slice: slice(object)?, cpus, taskgroup })
}

/// Whether a member names SCHED_DEADLINE.
pub(super) fn is_deadline(member: &Member) -> bool {
    text(member).is_ok_and(|name| name == "SCHED_DEADLINE")
}

/// The parameters of a SCHED_DEADLINE task, in us: the period is the runtime unless it is named, the deadline the
/// period.
fn deadline(object: &Object<'_>, policy: At, cpus: Option<CpuMask>, nr_cpus: usize) -> Result<Deadline, RtAppError> {
    if let Some((value, at)) = object.int("priority")?.filter(|(value, _)| *value != 0) {
        return Err(RtAppError::at(at, "priority", format!("priority {value} of a SCHED_DEADLINE task"))
            .hint("leave it out: its deadlines are its priority"));
    }
    if let Some(member) = object.get("cpus")?.filter(|_| cpus.is_some_and(|mask| mask != CpuMask::first(nr_cpus))) {
        return Err(RtAppError::at(
            member.at,
            "cpus",
            "the kernel refuses SCHED_DEADLINE to a task that may not use every CPU",
        )
        .hint("leave \"cpus\" out"));
    }
    let ns = |key: &str| -> Result<Option<(Nanos, At)>, RtAppError> {
        let Some((value, at)) = object.int(key)? else { return Ok(None) };
        match u64::try_from(value).ok().and_then(|us| us.checked_mul(USEC)) {
            Some(ns) => Ok(Some((ns, at))),
            None => Err(RtAppError::at(at, key, format!("{value} us"))),
        }
    };
    let Some((runtime, at)) = ns("dl-runtime")?.filter(|(runtime, _)| *runtime > 0) else {
        return Err(RtAppError::at(policy, "policy", "a SCHED_DEADLINE task without a runtime")
            .hint("dl-runtime, and dl-period unless it is the same, in us"));
    };
    let period = ns("dl-period")?.map_or(runtime, |(period, _)| period);
    let deadline = Deadline { runtime, deadline: ns("dl-deadline")?.map_or(period, |(deadline, _)| deadline), period };
    deadline.check().map_err(|(what, hint)| RtAppError::at(at, "dl-runtime", what).hint(hint))?;
    Ok(deadline)
}

/// The policy a member names, of a policy that needs no parameters.
pub(super) fn policy_of(member: &Member) -> Result<Policy, RtAppError> {
    let name = text(member)?;
    match name {
        "SCHED_OTHER" => Ok(Policy::Normal),
        "SCHED_BATCH" => Ok(Policy::Batch),
        "SCHED_IDLE" => Ok(Policy::Idle),
        "SCHED_FIFO" => Ok(Policy::Fifo(DEFAULT_PRIORITY)),
        "SCHED_RR" => Ok(Policy::RoundRobin(DEFAULT_PRIORITY)),
        _ if POLICIES.contains(&name) => {
            let what = format!("{name} needs parameters of each task");
            Err(RtAppError::at(member.at, &member.key, what).hint("name it in each task, with its dl-runtime"))
        }
        _ => {
            let error = RtAppError::at(member.at, &member.key, format!("unknown policy \"{}\"", short(name)));
            Err(match closest(name, POLICIES) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error.hint(format!("one of {}", POLICIES.join(", "))),
            })
        }
    }
}

/// The control group, `/` for the root; an empty name is none.
fn taskgroup(object: &Object<'_>, policy: Option<Policy>) -> Result<Option<String>, RtAppError> {
    let Some(member) = object.get("taskgroup")? else { return Ok(None) };
    let name = text(member)?;
    let error = |what: String| Err(RtAppError::at(member.at, &member.key, what));
    if name.is_empty() {
        return Ok(None);
    }
    if let Some(policy @ (Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline(_))) = policy {
        return error(format!("{policy:?} tasks cannot be in a task group"));
    }
    let parts = || name.split('/').filter(|part| !part.is_empty());
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !name.starts_with('/') || parts().any(|part| part.starts_with('.') || !part.chars().all(plain)) {
        return error(format!("\"{}\" is not a task group path such as \"/tg1/tg11\"", short(name)));
    }
    if parts().count() > MAX_DEPTH {
        return error(format!("more than {MAX_DEPTH} levels of task groups"));
    }
    Ok(Some(format!("/{}", parts().collect::<Vec<_>>().join("/"))))
}

/// `priority` with a real-time policy.
fn priority(object: &Object<'_>, policy: Policy) -> Result<Policy, RtAppError> {
    let Some((value, at)) = object.int("priority")? else { return Ok(policy) };
    match u8::try_from(value) {
        Ok(priority @ 1..=99) if matches!(policy, Policy::Fifo(_)) => Ok(Policy::Fifo(priority)),
        Ok(priority @ 1..=99) => Ok(Policy::RoundRobin(priority)),
        _ => Err(RtAppError::at(at, "priority", format!("real-time priority {value} is outside 1..=99"))),
    }
}

/// `priority` of the fair class is the nice value.
fn nice(object: &Object<'_>) -> Result<Option<i8>, RtAppError> {
    let Some((value, at)) = object.int("priority")? else { return Ok(None) };
    match i8::try_from(value) {
        Ok(nice) if (-20..=19).contains(&nice) => Ok(Some(nice)),
        _ => Err(RtAppError::at(at, "priority", format!("nice {value} is outside -20..=19"))),
    }
}

/// `dl-runtime` of a task of the fair class is a slice of its own (Linux 6.12), in us; 0 is none.
fn slice(object: &Object<'_>) -> Result<Option<Nanos>, RtAppError> {
    let Some((value, at)) = object.int("dl-runtime")? else { return Ok(None) };
    match u64::try_from(value).ok().and_then(|us| us.checked_mul(USEC)) {
        Some(slice) => Ok((slice > 0).then_some(slice)),
        None => Err(RtAppError::at(at, "dl-runtime", format!("a slice of {value} us"))),
    }
}

/// Utilisation clamps act through frequency and capacity, which have no model: only those without effect pass.
fn check_util(object: &Object<'_>, key: &str) -> Result<(), RtAppError> {
    let Some((value, at)) = object.int(key)? else { return Ok(()) };
    let neutral = if key == "util_min" { 0 } else { 1024 };
    if value == neutral || value == -1 {
        return Ok(());
    }
    if !(0..=1024).contains(&value) {
        return Err(RtAppError::at(at, key, format!("{value} is outside 0..=1024")));
    }
    Err(RtAppError::at(at, key, "utilisation clamps have no model because frequency has none")
        .hint(format!("{neutral}, or none")))
}

fn cpus(object: &Object<'_>, nr_cpus: usize) -> Result<Option<CpuMask>, RtAppError> {
    let Some(member) = object.get("cpus")? else { return Ok(None) };
    let Json::Array(items) = &member.value.json else { return Err(wrong(member, "an array of CPUs")) };
    let mut mask = CpuMask::default();
    for item in items {
        let cpu = int(&Member { key: "cpus".to_string(), at: item.at, value: item.clone() })?;
        match usize::try_from(cpu) {
            Ok(index) if index < nr_cpus.min(schedlab_model::MAX_CPUS) => mask.set(CpuId(index as u32)),
            _ => {
                return Err(RtAppError::at(item.at, "cpus", format!("this machine has no CPU {cpu}"))
                    .hint(format!("CPUs 0 to {}", nr_cpus.saturating_sub(1))))
            }
        }
    }
    if mask.is_empty() {
        return Err(RtAppError::at(member.at, "cpus", "an affinity to no CPU at all"));
    }
    Ok(Some(mask))
}
