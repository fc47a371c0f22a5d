//! What has been followed since the first unknown task, so that it can be followed again another way.

use crate::decision::{Decision, Outcome};
use crate::guess::Guess;
use crate::model::Model;
use crate::operation::{First, Input, Location, NewTask, Operation, Wakeup};

/// A model of a row, and how it was derived.
pub(super) struct Hypothesis {
    pub model: Model,
    /// What leads to it; never empty. Several ways that lead to the same are one model.
    pub ways: Vec<Way>,
}

/// One of the past's models, and what unknown tasks since were assumed to have.
#[derive(Clone, Default, Debug)]
pub(super) struct Way {
    pub origin: usize,
    pub guesses: Vec<Guess>,
}

/// The operations since the first unknown task, and the models before them.
pub(super) struct Past {
    pub origins: Vec<Model>,
    pub log: Vec<Entry>,
}

pub(super) struct Entry {
    pub input: Input,
    /// Which of the operation's decisions some model agreed with: one bit each.
    pub explained: u32,
}

/// Where another way leads.
pub(super) enum Followed {
    Explains(Box<Hypothesis>),
    AllButLast(Way),
    Refuted,
}

impl Hypothesis {
    pub(super) fn apply(&mut self, input: &Input) {
        if let Some(guess) = self.ways.first().and_then(|way| way.guesses.last()) {
            self.model.guess = *guess;
        }
        self.model.apply(input);
    }
}

impl Past {
    /// Follows the row again another way; how many operations that took.
    pub(super) fn follow(&self, way: Way) -> (Followed, u64) {
        let Some(mut model) = self.origins.get(way.origin).cloned() else { return (Followed::Refuted, 0) };
        let mut next = way.guesses.iter();
        for (nth, entry) in self.log.iter().enumerate() {
            if brings_unknown(&entry.input.operation) {
                model.guess = next.next().copied().unwrap_or_default();
            }
            model.counts = nth + 1 == self.log.len();
            model.apply(&entry.input);
            if entry.refutes(&model) {
                let last = nth + 1 == self.log.len();
                return (if last { Followed::AllButLast(way) } else { Followed::Refuted }, nth as u64 + 1);
            }
        }
        (Followed::Explains(Box::new(Hypothesis { model, ways: vec![way] })), self.log.len() as u64)
    }
}

impl Entry {
    fn refutes(&self, model: &Model) -> bool {
        let refuted = |(nth, decision): (usize, &Decision)| {
            decision.outcome == Outcome::Differs && self.explained & 1u32.checked_shl(nth as u32).unwrap_or(0) != 0
        };
        model.decisions.iter().enumerate().any(refuted)
    }
}

/// How many ways lead to the models.
pub(super) fn ways(models: &[Hypothesis]) -> usize {
    models.iter().map(|hypothesis| hypothesis.ways.len()).sum()
}

/// Whether a task of unknown state appears.
pub(super) fn brings_unknown(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::AddTask(NewTask { first: Some(First::Unknown), .. })
            | Operation::Wakeup(Wakeup { first: Some(First::Unknown), .. })
    )
}

/// Whether it adds a task that is on a queue.
pub(super) fn adds_queued(operation: &Operation) -> bool {
    matches!(operation, Operation::AddTask(NewTask { at: Location::Running(_) | Location::Queued(_), .. }))
}
