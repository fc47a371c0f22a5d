//! Lags that no record shows, solved for from the kernel's decisions.
//!
//! A task's lag lasts over its sleep, so that of a task asleep when a recording begins is unknown unless a probe shows
//! it; all that is known is its bound. A row is then followed by several models at once, alike but for the unknown
//! lags. Where all decide the same, the decision does not depend on what is unknown and is judged. Where they part, it
//! is not judged: the kernel's choice says which of them were wrong, and those are dropped; the gaps are filled with
//! others that agree with every decision since the unknown appeared, found by following the row again from there. Where
//! none agrees and none is found that does, the decision is unexplained: the search may have missed the lag, or a rule
//! is wrong. It is counted apart, and so are the later decisions on that CPU, because the state there is known to be
//! wrong, until its queue is empty or [`AGREEING`] decisions in a row agree again. Lags end (a delayed dequeue and an
//! empty queue leave none), and models that have become the same are one again.

mod dice;
mod effort;
mod past;

use std::collections::BTreeMap;

use schedlab_model::CpuId;
use schedlab_policy::CpuIdle;

use crate::balance::Balances;
use crate::decision::{Decision, Outcome};
use crate::model::Model;
use crate::operation::{Input, Operation, Switch};
use crate::placement::Placements;
use crate::tally::Tally;
use crate::unjudged::Unjudged;
use dice::Dice;
pub use effort::Effort;
use past::{adds_queued, brings_unknown, ways, Entry, Followed, Hypothesis, Past, Way};

/// How many operations are followed again at most; what is older counts as settled.
const MEMORY: usize = 40960;

/// Operations between two searches for models that have become equal.
const BETWEEN_MERGES: usize = 32;

/// So many decisions in a row that agree show that the state of a CPU is right again.
const AGREEING: u32 = 16;

/// A version row: its score, and the models that follow it, one unless something is unknown.
pub struct Row {
    pub tally: Tally,
    pub placements: Placements,
    pub balances: Balances,
    models: Vec<Hypothesis>,
    past: Option<Past>,
    dice: Dice,
    pub effort: Effort,
    patience: usize,
    eevdf: bool,
    /// Operations that its models have followed, those of the search included: what the row has cost.
    pub steps: u64,
    /// CPUs on which no lag explains a decision, with the number of decisions in a row that have agreed since.
    unexplained: BTreeMap<CpuId, u32>,
}

impl Row {
    pub fn new(model: Model, tally: Tally, placements: Placements, balances: Balances) -> Self {
        let eevdf = model.is_eevdf();
        let first = Hypothesis { model, ways: vec![Way::default()] };
        Row {
            tally,
            placements,
            balances,
            models: vec![first],
            past: None,
            dice: Dice::new(),
            effort: Effort::default(),
            patience: Effort::default().patience,
            eevdf,
            steps: 0,
            unexplained: BTreeMap::new(),
        }
    }

    /// The model that stands for the row.
    pub fn model(&self) -> &Model {
        // There is always one.
        &self.models[0].model
    }

    pub fn apply(&mut self, input: &Input) {
        if matches!(input.operation, Operation::Lost) {
            self.forget();
        }
        if self.eevdf && brings_unknown(&input.operation) {
            self.branch(adds_queued(&input.operation));
        }
        self.tally.inputs.take_operation(&input.operation);
        // What the first one counts is the row's.
        std::mem::swap(&mut self.tally, &mut self.models[0].model.tally);
        for hypothesis in &mut self.models {
            hypothesis.apply(input);
        }
        self.steps += self.models.len() as u64;
        match &input.operation {
            Operation::SelectTaskRq(select) => self.placements.select(select, input.time, &mut self.models[0].model),
            Operation::SchedBalanceRq(pass) => {
                if pass.idle == CpuIdle::Newly {
                    self.placements.note_newidle(pass.this, pass.idle_cpus.has(pass.this), input.time);
                }
                self.balances.pass(pass, input.time, &mut self.models[0].model, self.placements.kernel());
            }
            Operation::TaskAverages { pid, src, averages } => {
                self.balances.take_averages(*pid, *src, averages, &mut self.models[0].model);
            }
            _ => self.placements.follow(input, &self.models[0].model),
        }
        std::mem::swap(&mut self.tally, &mut self.models[0].model.tally);
        let Some(past) = &mut self.past else {
            let decisions = std::mem::take(&mut self.models[0].model.decisions);
            for decision in decisions {
                let decision = self.unless_unexplained(decision);
                self.tally.count(decision);
            }
            return self.end_unexplained(input);
        };
        past.log.push(Entry { input: *input, explained: 0 });
        let due = past.log.len() % BETWEEN_MERGES == 0;
        self.judge();
        self.end_unexplained(input);
        if due && self.models.len() > 1 {
            self.merge();
        }
        self.effort.followed_by(self.models.len());
        self.models.truncate(self.effort.affordable());
        if self.past.as_ref().is_some_and(|past| past.log.len() >= MEMORY) {
            match self.models.len() {
                1 => self.past = None,
                _ => self.settle(),
            }
        }
    }

    /// Behind a loss every queue is empty: nothing that was unknown before it matters.
    fn forget(&mut self) {
        self.models.truncate(1);
        self.models[0].ways = vec![Way::default()];
        self.past = None;
        self.patience = self.effort.patience;
        self.unexplained.clear();
    }

    /// An unknown task appears: every model becomes several that take it for different things.
    fn branch(&mut self, queued: bool) {
        if self.past.is_none() {
            self.settle();
        }
        let old = std::mem::take(&mut self.models);
        let affordable = self.effort.affordable();
        let each = (affordable / ways(&old)).max(1);
        let all = old.iter().flat_map(|hypothesis| hypothesis.ways.iter().map(|way| (&hypothesis.model, way)));
        for (nth, (model, way)) in all.take(affordable).enumerate() {
            for copy in 0..each {
                // None in one of several alike, or in every other of several that differ.
                let none = if each > 1 { copy == 0 } else { nth % 2 == 0 };
                let guess = if none {
                    self.dice.none(queued)
                } else {
                    self.dice.some((nth * each + copy) % self.effort.models, self.effort.models, queued)
                };
                let guesses = way.guesses.iter().copied().chain([guess]).collect();
                let ways = vec![Way { origin: way.origin, guesses }];
                self.models.push(Hypothesis { model: model.clone(), ways });
            }
        }
    }

    /// The models there are become those that later ones are derived from.
    fn settle(&mut self) {
        let origins = self.models.iter().map(|hypothesis| hypothesis.model.clone()).collect();
        self.past = Some(Past { origins, log: Vec::new() });
        for (nth, hypothesis) in self.models.iter_mut().enumerate() {
            hypothesis.ways = vec![Way { origin: nth, guesses: Vec::new() }];
        }
    }

    /// Counts the last operation's decisions, and drops the models that they refute.
    fn judge(&mut self) {
        let decisions = self.models.iter().map(|hypothesis| hypothesis.model.decisions.len()).max().unwrap_or(0);
        let mut dropped = false;
        for nth in 0..decisions {
            let says = |hypothesis: &Hypothesis| hypothesis.model.decisions.get(nth).map(|decision| decision.outcome);
            let first = self.models.iter().map(says).next().flatten();
            let alike = self.models.iter().all(|hypothesis| says(hypothesis) == first);
            if alike && first == Some(Outcome::Agrees) {
                self.explained(nth, true);
            }
            if alike && first != Some(Outcome::Differs) {
                self.count(nth, None);
                continue;
            }
            self.explained(nth, true);
            if !alike {
                self.count(nth, Some(Unjudged::Solved));
                self.models.retain(|hypothesis| says(hypothesis) != Some(Outcome::Differs));
                dropped = true;
            } else if !self.find(nth) {
                self.explained(nth, false);
                self.give_up(nth);
            }
        }
        if dropped {
            self.fill();
        }
    }

    /// Neither the models nor the search explain the decision.
    fn give_up(&mut self, nth: usize) {
        let cpu = self.models.iter().find_map(|hypothesis| hypothesis.model.decisions.get(nth)).map(|one| one.at.cpu);
        let first = cpu.is_some_and(|cpu| self.unexplained.insert(cpu, 0).is_none());
        self.count(nth, first.then_some(Unjudged::NoLag));
    }

    /// A decision, unjudged where the state of its CPU is known to be wrong.
    fn unless_unexplained(&mut self, decision: Decision) -> Decision {
        let agrees = match decision.outcome {
            Outcome::Agrees => true,
            Outcome::Differs => false,
            Outcome::Unjudged(_) | Outcome::NotAsked => return decision,
        };
        let Some(in_a_row) = self.unexplained.get_mut(&decision.at.cpu) else { return decision };
        *in_a_row = if agrees { *in_a_row + 1 } else { 0 };
        if *in_a_row == AGREEING {
            self.unexplained.remove(&decision.at.cpu);
        }
        Decision { outcome: Outcome::Unjudged(Unjudged::AfterNoLag), ..decision }
    }

    /// A CPU that goes idle has an empty queue: nothing on it is wrong.
    fn end_unexplained(&mut self, input: &Input) {
        if let Operation::Switch(Switch { cpu, next: 0, .. }) = input.operation {
            self.unexplained.remove(&cpu);
        }
    }

    fn explained(&mut self, nth: usize, explained: bool) {
        let Some(entry) = self.past.as_mut().and_then(|past| past.log.last_mut()) else { return };
        let bit = 1u32.checked_shl(nth as u32).unwrap_or(0);
        entry.explained = if explained { entry.explained | bit } else { entry.explained & !bit };
    }

    fn count(&mut self, nth: usize, why: Option<Unjudged>) {
        let decision = self.models.iter().find_map(|hypothesis| hypothesis.model.decisions.get(nth)).cloned();
        let Some(decision) = decision else { return };
        let decision = match why {
            Some(why) => Decision { outcome: Outcome::Unjudged(why), ..decision },
            None => self.unless_unexplained(decision),
        };
        self.tally.count(decision);
    }

    /// No model agrees with the decision: perhaps there is another one that does, and with everything before.
    fn find(&mut self, nth: usize) -> bool {
        let found = self.derive(self.patience, self.effort.models / 4);
        if found.is_empty() {
            self.patience /= 2;
            self.effort.halve();
            return false;
        }
        self.patience = self.effort.patience;
        self.count(nth, Some(Unjudged::Solved));
        self.models = found;
        true
    }

    /// Fills the gaps that dropped models left, unless the state of a CPU is wrong: what is derived then is wrong too.
    fn fill(&mut self) {
        let left = ways(&self.models);
        let affordable = self.effort.affordable();
        if left < affordable / 2 && self.unexplained.is_empty() {
            let more = self.derive(self.effort.tries, affordable - left);
            self.models.extend(more);
        }
    }

    /// Up to `wanted` models by ways like the present ones that explain all that was explained. Those that explain all
    /// but the last operation are ways to go on from.
    fn derive(&mut self, tries: usize, wanted: usize) -> Vec<Hypothesis> {
        let mut found = Vec::new();
        let Some(past) = &self.past else { return found };
        let mut ways: Vec<Way> = self.models.iter().flat_map(|hypothesis| hypothesis.ways.iter().cloned()).collect();
        for _ in 0..tries {
            if found.len() == wanted || self.effort.is_spent() {
                break;
            }
            let [way, a, b] = [(); 3].map(|()| &ways[self.dice.below(ways.len())]);
            let guesses = match self.dice.below(2) {
                0 => self.dice.shift(&way.guesses, &a.guesses, &b.guesses),
                _ => self.dice.change(&way.guesses),
            };
            let origin = way.origin;
            let Some(guesses) = guesses else { continue };
            let (followed, steps) = past.follow(Way { origin, guesses });
            self.steps += steps;
            self.effort.spend(steps);
            match followed {
                Followed::Explains(hypothesis) => found.push(*hypothesis),
                Followed::AllButLast(way) if ways.len() < 4 * self.effort.models => ways.push(way),
                Followed::AllButLast(way) => {
                    let nth = self.dice.below(ways.len());
                    ways[nth] = way;
                }
                Followed::Refuted => {}
            }
        }
        found
    }

    /// Models in the same state are one.
    fn merge(&mut self) {
        let mut states: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
        let mut merged: Vec<Hypothesis> = Vec::new();
        for hypothesis in std::mem::take(&mut self.models) {
            let state = hypothesis.model.signature();
            match states.get(&state) {
                Some(same) => merged[*same].ways.extend(hypothesis.ways),
                None => {
                    states.insert(state, merged.len());
                    merged.push(hypothesis);
                }
            }
        }
        self.models = merged;
    }
}

#[cfg(test)]
mod tests;
