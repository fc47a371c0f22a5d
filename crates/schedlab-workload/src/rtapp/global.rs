//! The global section. Keys that only steer rt-app's log and memory are checked and have no effect.

use schedlab_model::{Nanos, SEC};

use super::json::{short, Json, Member};
use super::props;
use super::take::{wrong, Object};
use super::{Calibration, RtAppError};
use crate::Policy;
use schedlab_model::closest;

/// What it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Global {
    /// End of the run.
    pub duration: Option<Nanos>,
    /// Policy of tasks that name none; those of SCHED_DEADLINE state its parameters themselves.
    pub policy: Policy,
    /// Tasks that name no policy are SCHED_DEADLINE tasks.
    pub deadline: bool,
    /// Mutexes inherit priority.
    pub pi: bool,
    /// The speed of the calibrated work.
    pub calibration: Calibration,
}

/// Every key. `frag` is a leftover of version 0.3 in the example files, and `logsize` another name of `log_size` in
/// rt-app's documentation.
const KEYS: [&str; 15] = [
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "logsize",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
];

/// Reads it.
pub(super) fn read(members: &[Member]) -> Result<Global, RtAppError> {
    read_keys(members).map_err(|error| error.within("global"))
}

fn read_keys(members: &[Member]) -> Result<Global, RtAppError> {
    let global = Object { members };
    for member in members {
        if !KEYS.contains(&member.key.as_str()) {
            return Err(unknown(member));
        }
    }
    for key in ["gnuplot", "lock_pages", "cumulative_slack"] {
        global.boolean(key)?;
    }
    for key in ["logdir", "log_basename", "io_device"] {
        global.text(key)?;
    }
    for key in ["frag", "mem_buffer_size"] {
        global.int(key)?;
    }
    check_log(&global)?;
    let policy = global.get("default_policy")?;
    let deadline = policy.is_some_and(props::is_deadline);
    let policy = policy.filter(|_| !deadline).map(props::policy_of).transpose()?;
    Ok(Global {
        duration: duration(&global)?,
        policy: policy.unwrap_or_default(),
        deadline,
        pi: global.boolean("pi_enabled")?.unwrap_or(false),
        calibration: calibration(&global)?,
    })
}

fn unknown(member: &Member) -> RtAppError {
    let error = RtAppError::at(member.at, &member.key, format!("unknown key \"{}\"", short(&member.key)));
    match closest(&member.key, KEYS) {
        Some(near) => error.hint(format!("did you mean \"{near}\"?")),
        None => error.hint(format!("one of {}", KEYS.join(", "))),
    }
}

fn duration(global: &Object<'_>) -> Result<Option<Nanos>, RtAppError> {
    match global.int("duration")? {
        Some((seconds, at)) if seconds > 0 => match u64::try_from(seconds).ok().and_then(|s| s.checked_mul(SEC)) {
            Some(duration) => Ok(Some(duration)),
            None => Err(RtAppError::at(at, "duration", format!("{seconds} seconds is too long"))),
        },
        _ => Ok(None),
    }
}

/// `"CPUn"` calibrates on that CPU; a number is ns per loop, 0 calibrates too.
fn calibration(global: &Object<'_>) -> Result<Calibration, RtAppError> {
    let Some(member) = global.get("calibration")? else { return Ok(Calibration::Cpu(0)) };
    match &member.value.json {
        Json::Int(0) => Ok(Calibration::Cpu(0)),
        Json::Int(ns) if *ns > 0 && *ns <= 1_000_000 => Ok(Calibration::NsPerLoop(ns.unsigned_abs())),
        Json::Int(ns) => Err(RtAppError::at(member.at, "calibration", format!("{ns} ns per loop"))
            .hint("1 to 1000000 ns per loop, or \"CPU0\"")),
        Json::Text(cpu) => match cpu.strip_prefix("CPU").map(str::parse::<u32>) {
            Some(Ok(cpu)) => Ok(Calibration::Cpu(cpu)),
            _ => Err(RtAppError::at(member.at, "calibration", format!("\"{}\" is not a CPU", short(cpu)))
                .hint("\"CPU0\", or ns per loop as a number")),
        },
        _ => Err(wrong(member, "a string such as \"CPU0\" or a number")),
    }
}

fn check_log(global: &Object<'_>) -> Result<(), RtAppError> {
    for key in ["log_size", "logsize"] {
        let Some(member) = global.get(key)? else { continue };
        match &member.value.json {
            Json::Int(_) => {}
            Json::Text(word) if ["file", "disable", "auto"].contains(&word.as_str()) => {}
            _ => return Err(wrong(member, "a number of MB, \"file\", \"disable\" or \"auto\"")),
        }
    }
    if let Some(member) = global.get("ftrace")? {
        let known = ["main", "task", "loop", "event", "stats", "attrs", "run", "none"];
        match &member.value.json {
            Json::Bool(_) => {}
            Json::Text(words) if words.split(',').all(|word| word.is_empty() || known.contains(&word.trim())) => {}
            _ => return Err(wrong(member, &format!("true, false or a list of {}", known.join(", ")))),
        }
    }
    Ok(())
}
