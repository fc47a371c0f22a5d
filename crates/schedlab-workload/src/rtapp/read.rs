//! One task of the file: its keys checked, its phases and events read.

use schedlab_model::USEC;

use super::event;
use super::json::{short, Member};
use super::parsed::{Phase, Task};
use super::props::{self, Machine, Props};
use super::take::Object;

use super::RtAppError;
use crate::verbs::Times;
use crate::Policy;
use schedlab_model::closest;

/// Keys of a task in addition to those of a phase.
const TASK_KEYS: [&str; 4] = ["instance", "delay", "phases", "loop"];
/// Keys that only versions before 1.0 had.
const BEFORE_1_0: [&str; 6] = ["exec", "period", "deadline", "lock_order", "resources", "access"];

/// Reads a task.
pub(super) fn read_task(member: &Member, machine: Machine) -> Result<Task, RtAppError> {
    let object = Object::inside(member)?;
    let phases = object.get("phases")?;
    check_keys(&object, &TASK_KEYS, phases.is_none())?;
    let (instances, at) = object.int("instance")?.unwrap_or((1, member.at));
    let instances = u32::try_from(instances)
        .map_err(|_| RtAppError::at(at, "instance", format!("{instances} instances")).hint("0 or more"))?;
    let delay = object.int("delay")?.map_or(0, |(micros, _)| u64::try_from(micros).unwrap_or(0));
    let name = member.key.clone();
    let (times, phases) = match phases {
        Some(inner) => {
            let phases = read_phases(inner, &name, machine).map_err(|error| error.within("phases"))?;
            (times(&object, Times::Forever, Times::Count(0))?, phases)
        }
        None => {
            // The task's properties are not set again by its only phase.
            let phase = read_events(&object, member, &name)?;
            let endless = object.get("loop")?.is_none();
            (if endless { Times::Forever } else { Times::Count(1) }, vec![phase])
        }
    };
    let props = props::read(&object, machine, Some(member.at))?;
    check_runtimes(&props, &phases)?;
    Ok(Task { name, at: member.at, instances, delay: delay.saturating_mul(USEC), times, props, phases })
}

/// A `dl-runtime` without a policy is a slice, which a phase of a SCHED_DEADLINE task cannot mean.
fn check_runtimes(props: &Props, phases: &[Phase]) -> Result<(), RtAppError> {
    let deadline = |props: &Props| matches!(props.policy, Some(Policy::Deadline(_)));
    let any = deadline(props) || phases.iter().any(|phase| deadline(&phase.props));
    let bare = |phase: &&Phase| any && phase.props.slice.is_some() && phase.props.policy.is_none();
    match phases.iter().find(bare) {
        Some(phase) => {
            Err(RtAppError::at(phase.at, "dl-runtime", "in a phase of a SCHED_DEADLINE task, without its policy")
                .hint("name \"policy\" and the other parameters in the phase too")
                .within("phases"))
        }
        None => Ok(()),
    }
}

fn read_phases(member: &Member, task: &str, machine: Machine) -> Result<Vec<Phase>, RtAppError> {
    let object = Object::inside(member)?;
    let read = |inner: &Member| -> Result<Phase, RtAppError> {
        let object = Object::inside(inner)?;
        check_keys(&object, &["loop"], true)?;
        let phase = read_events(&object, inner, task)?;
        Ok(Phase { props: props::read(&object, machine, None)?, ..phase })
    };
    let phases = object.members.iter().map(|inner| read(inner).map_err(|error| error.within(&inner.key)));
    let phases: Vec<Phase> = phases.collect::<Result<_, _>>()?;
    match phases.is_empty() {
        true => Err(RtAppError::at(member.at, "", "no phases").hint("at least one phase with an event")),
        false => Ok(phases),
    }
}

/// A phase without its properties.
fn read_events(object: &Object<'_>, member: &Member, task: &str) -> Result<Phase, RtAppError> {
    let mut events = Vec::new();
    for inner in object.members {
        if let Some(kind) = event::kind_of(&inner.key) {
            events.push((inner.at, event::read(inner, kind, task)?));
        }
    }
    if events.is_empty() {
        return Err(RtAppError::at(member.at, "", "no events, so nothing to do").hint(kinds_list()));
    }
    let times = times(object, Times::Count(1), Times::Forever)?;
    Ok(Phase { at: member.at, times, props: Props::default(), events })
}

/// The number of loops. Below 0 it is for ever.
fn times(object: &Object<'_>, default: Times, zero: Times) -> Result<Times, RtAppError> {
    match object.int("loop")? {
        None => Ok(default),
        Some((0, _)) => Ok(zero),
        Some((loops, _)) if loops < 0 => Ok(Times::Forever),
        Some((loops, at)) => match u32::try_from(loops) {
            Ok(loops) if i32::try_from(loops).is_ok() => Ok(Times::Count(loops)),
            _ => Err(RtAppError::at(at, "loop", format!("{loops} loops")).hint(format!("-1 or up to {}", i32::MAX))),
        },
    }
}

/// Refuses keys that rt-app would pass over in silence.
fn check_keys(object: &Object<'_>, own: &[&'static str], events: bool) -> Result<(), RtAppError> {
    for member in object.members {
        let key = member.key.as_str();
        if own.contains(&key) || props::KEYS.contains(&key) {
            continue;
        }
        match event::kind_of(key) {
            Some(_) if events => {}
            Some(_) => {
                return Err(RtAppError::at(member.at, key, "an event next to \"phases\": rt-app would not run it")
                    .hint("move it into a phase"))
            }
            None => return Err(unknown(member, own)),
        }
    }
    Ok(())
}

fn unknown(member: &Member, own: &[&'static str]) -> RtAppError {
    if BEFORE_1_0.contains(&member.key.as_str()) {
        return event::before_1_0(member);
    }
    let error = RtAppError::at(member.at, &member.key, format!("unknown key \"{}\"", short(&member.key)));
    let mut names = own.to_vec();
    names.extend(props::KEYS);
    names.extend(event::kinds());
    match closest(&member.key, names.iter().copied()) {
        Some(near) => error.hint(format!("did you mean \"{near}\"?")),
        None => error.hint(kinds_list()),
    }
}

fn kinds_list() -> String {
    format!("an event is one of {}", event::kinds().collect::<Vec<_>>().join(", "))
}
