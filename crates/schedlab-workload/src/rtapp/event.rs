//! One event of a phase, found by the prefix of its key as rt-app does.

use schedlab_model::{Nanos, USEC};

use super::json::{short, Json, Member};
use super::take::{int, text, Object};
use super::RtAppError;
use crate::verbs::{Length, StepKind};
use crate::TimerMode;

/// What an event is, before timers and objects are known.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Event {
    /// Steps that are known at once.
    Steps(Vec<StepKind>),
    /// `run`: calibrated work.
    Run(Nanos),
    /// `runtime`: wall-clock time.
    Runtime(Nanos),
    /// `timer`.
    Timer { name: String, period: Nanos, mode: TimerMode },
    /// `barrier`.
    Barrier(String),
    /// `fork` of a task.
    Fork(String),
}

/// Kinds of events, longer prefixes first where one begins with the other.
const KINDS: [&str; 20] = [
    "runtime", "run", "sleep", "memrun", "mem", "iorun", "lock", "unlock", "signal", "broad", "wait", "sync",
    "barrier", "timer", "resume", "suspend", "yield", "fork", "sem_post", "sem_wait",
];

/// The kind of event that a key names.
pub(super) fn kind_of(key: &str) -> Option<&'static str> {
    KINDS.into_iter().find(|kind| key.starts_with(kind))
}

/// Every kind, for messages.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter()
}

/// Names of objects. In rt-app a mutex and a condition may have the same name: the type distinguishes them.
fn mutex(name: &str) -> String {
    format!("mutex {name}")
}

fn condition(name: &str) -> String {
    format!("condition {name}")
}

/// Reads an event of the task `task`.
pub(super) fn read(member: &Member, kind: &str, task: &str) -> Result<Event, RtAppError> {
    // A key that stands alone is workgen's shorthand, for suspend only.
    let absent = member.value.json == Json::Absent;
    if absent && kind != "suspend" {
        return Err(RtAppError::at(member.at, &member.key, format!("\"{}\" without a value", short(&member.key)))
            .hint("only \"suspend\" may stand alone"));
    }
    let one = |kind: StepKind| Ok(Event::Steps(vec![kind]));
    match kind {
        "run" => Ok(Event::Run(micros(member)?)),
        "runtime" => Ok(Event::Runtime(micros(member)?)),
        "sleep" => one(StepKind::Sleep(Length::Fixed(micros(member)?))),
        "mem" | "memrun" | "iorun" => {
            Err(RtAppError::at(member.at, &member.key, "memory and device traffic has no model")
                .hint("run and runtime are the modelled loads"))
        }
        "lock" => one(StepKind::Lock(mutex(text_of(member)?))),
        "unlock" => one(StepKind::Unlock(mutex(text_of(member)?))),
        "signal" => one(StepKind::Signal(condition(text_of(member)?))),
        "broad" => one(StepKind::Broadcast(condition(text_of(member)?))),
        "wait" => Ok(Event::Steps(vec![cond_wait(member)?])),
        "sync" => {
            let wait = cond_wait(member)?;
            let StepKind::CondWait { condition, .. } = &wait else { return Ok(Event::Steps(vec![wait])) };
            Ok(Event::Steps(vec![StepKind::Signal(condition.clone()), wait]))
        }
        "barrier" => Ok(Event::Barrier(text(member)?.to_string())),
        "timer" => timer(member),
        "suspend" => {
            // rt-app 1.0 waits for the name given; workgen's shorthand is the task's own.
            let name = if absent { task } else { text_of(member)? };
            let wait = StepKind::CondWait { condition: condition(name), mutex: mutex(name) };
            Ok(Event::Steps(vec![StepKind::Lock(mutex(name)), wait, StepKind::Unlock(mutex(name))]))
        }
        "resume" => {
            let name = text_of(member)?;
            let wake = StepKind::Broadcast(condition(name));
            Ok(Event::Steps(vec![StepKind::Lock(mutex(name)), wake, StepKind::Unlock(mutex(name))]))
        }
        "fork" => Ok(Event::Fork(text(member)?.to_string())),
        "sem_post" => one(StepKind::SemPost(format!("semaphore {}", text(member)?))),
        "sem_wait" => one(StepKind::SemWait(format!("semaphore {}", text(member)?))),
        _ => one(StepKind::Yield),
    }
}

/// The name an event refers to. Before 1.0 these keys meant something else.
fn text_of(member: &Member) -> Result<&str, RtAppError> {
    text(member).map_err(|error| match member.key.as_str() {
        "lock_order" => before_1_0(member),
        _ => error,
    })
}

/// A duration in microseconds.
fn micros(member: &Member) -> Result<Nanos, RtAppError> {
    let value = int(member)?;
    // rt-app keeps durations in an int.
    match u32::try_from(value) {
        Ok(micros) if i32::try_from(micros).is_ok() => Ok(Nanos::from(micros) * USEC),
        _ => Err(RtAppError::at(member.at, &member.key, format!("{value} us is not a valid duration"))
            .hint(format!("0 to {} us", i32::MAX))),
    }
}

/// `wait` and `sync`: a condition and the mutex held.
fn cond_wait(member: &Member) -> Result<StepKind, RtAppError> {
    let object = Object::of(member)?;
    only(&object, &["ref", "mutex"])?;
    // rt-app calls both "unknown" if they are not given.
    let name = object.text("ref")?.map_or("unknown", |(name, _)| name);
    let lock = object.text("mutex")?.map_or("unknown", |(name, _)| name);
    Ok(StepKind::CondWait { condition: condition(name), mutex: mutex(lock) })
}

fn timer(member: &Member) -> Result<Event, RtAppError> {
    let object = Object::of(member)?;
    only(&object, &["ref", "period", "mode"])?;
    let name = object.text("ref")?.map_or("unknown", |(name, _)| name).to_string();
    let period = object.get("period")?.map(micros).transpose()?.unwrap_or(0);
    let mode = match object.text("mode")? {
        None => TimerMode::Relative,
        Some((mode, _)) if mode.starts_with("absolute") => TimerMode::Absolute,
        Some(("relative", _)) => TimerMode::Relative,
        Some((mode, at)) => {
            return Err(
                RtAppError::at(at, "mode", format!("unknown mode \"{}\"", short(mode))).hint("relative or absolute")
            )
        }
    };
    Ok(Event::Timer { name, period, mode })
}

/// Refuses members other than these.
fn only(object: &Object<'_>, keys: &[&str]) -> Result<(), RtAppError> {
    match object.members.iter().find(|member| !keys.contains(&member.key.as_str())) {
        None => Ok(()),
        Some(member) => Err(RtAppError::at(member.at, &member.key, format!("unknown key \"{}\"", short(&member.key)))
            .hint(format!("one of {}", keys.join(", ")))),
    }
}

/// The error about a key of the grammar before 1.0.
pub(super) fn before_1_0(member: &Member) -> RtAppError {
    let what = format!("\"{}\" belongs to the grammar before rt-app 1.0, which rt-app no longer supports", member.key);
    RtAppError::at(member.at, &member.key, what).hint("run, sleep and timer say the same since 1.0")
}
