//! Checks that a task holds what it unlocks and waits with: in the program anything else is undefined.

use std::collections::BTreeMap;

use super::event::Event;
use super::json::short;
use super::parsed::Task;
use super::RtAppError;
use crate::verbs::StepKind;

/// Follows the events of one pass through a task's phases.
pub(super) fn check(task: &Task) -> Result<(), RtAppError> {
    let mut held: BTreeMap<&str, u32> = BTreeMap::new();
    for (at, event) in task.events() {
        let Event::Steps(kinds) = event else { continue };
        for kind in kinds {
            let needed = match kind {
                StepKind::Lock(name) => {
                    *held.entry(name).or_insert(0) += 1;
                    continue;
                }
                StepKind::CondWait { mutex, .. } | StepKind::Unlock(mutex) => mutex,
                _ => continue,
            };
            match held.get_mut(needed.as_str()) {
                Some(times) if *times > 0 => *times -= u32::from(matches!(kind, StepKind::Unlock(_))),
                _ => {
                    let what = format!("{} is not held here, so the behaviour of rt-app is undefined", short(needed));
                    return Err(RtAppError::at(*at, &task.name, what).hint("lock it before").within("tasks"));
                }
            }
        }
    }
    Ok(())
}
