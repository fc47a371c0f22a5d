//! Samples that begin with the expiry of a timer.

use std::collections::{BTreeMap, BTreeSet};

use super::visit;
use crate::verbs::{LowerError, StepKind, Tree};

/// Refuses a sample that begins with the expiry of a timer for which several tasks wait: the last expiry may be another
/// task's, so that the sample has no meaning.
pub(super) fn check(tree: &Tree) -> Result<(), LowerError> {
    let (mut waiting, mut samples) = (BTreeMap::<String, u32>::new(), Vec::<(String, u32)>::new());
    for task in &tree.tasks {
        let mut own = BTreeSet::new();
        visit(&task.steps, &mut |step| {
            match &step.kind {
                StepKind::Timer { timer, .. } => drop(own.insert(timer.clone())),
                StepKind::SampleBegin { at: Some(timer), .. } => samples.push((timer.clone(), step.line)),
                _ => {}
            }
            Ok(())
        })?;
        // How often a task is forked is not known.
        let tasks = if task.spec.count == 0 { 2 } else { task.spec.count };
        own.into_iter().for_each(|timer| *waiting.entry(timer).or_default() += tasks);
    }
    match samples.into_iter().find(|(timer, _)| waiting.get(timer).is_some_and(|tasks| *tasks > 1)) {
        None => Ok(()),
        Some((timer, line)) => {
            let what =
                format!("several tasks wait for timer `{timer}`, so its last expiry may be that of another task");
            Err(LowerError::new(line, what)
                .hint("give each task a timer of its own, with one [[workload.task]] for each"))
        }
    }
}
