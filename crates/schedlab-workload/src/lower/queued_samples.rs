//! Whether the samples that receivers take from a queue are those that senders put there.

use std::collections::BTreeMap;

use super::visit;
use crate::verbs::{LowerError, StepKind, Tree};

/// Refuses a queue to which an entry is sent without the sample that a receiver takes from it: the sample would have no
/// beginning.
pub(super) fn check(tree: &Tree) -> Result<(), LowerError> {
    let mut taken: BTreeMap<&str, (&str, u32)> = BTreeMap::new();
    for_each_step(tree, &mut |kind, line| {
        if let StepKind::Receive { queue, sample: Some(sample) } = kind {
            taken.entry(queue).or_insert((sample, line));
        }
        Ok(())
    })?;
    let sends = |queue: &str, sample: &Option<String>, line: u32| {
        let Some((wanted, receiver)) = taken.get(queue) else { return Ok(()) };
        if sample.as_deref() == Some(*wanted) {
            return Ok(());
        }
        let what = match sample {
            None => format!(
                "an entry is sent to `{queue}` without a sample, but line {receiver} receives sample `{wanted}`"
            ),
            Some(sent) => {
                format!("sample `{sent}` is sent to `{queue}`, but line {receiver} receives sample `{wanted}`")
            }
        };
        Err(LowerError::new(line, what).hint(format!("send sample `{wanted}`, or use another queue")))
    };
    for remote in &tree.remotes {
        sends(&remote.queue, &remote.sample, remote.line)?;
    }
    for_each_step(tree, &mut |kind, line| match kind {
        StepKind::Send { queue, sample } => sends(queue, sample, line),
        _ => Ok(()),
    })
}

fn for_each_step<'a>(
    tree: &'a Tree,
    f: &mut impl FnMut(&'a StepKind, u32) -> Result<(), LowerError>,
) -> Result<(), LowerError> {
    tree.tasks.iter().try_for_each(|task| visit(&task.steps, &mut |step| f(&step.kind, step.line)))
}
