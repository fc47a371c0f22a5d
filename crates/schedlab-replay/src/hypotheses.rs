//! Lags that no record shows, solved for from the kernel's decisions.
//!
//! A task's lag lasts over its sleep, so that of a task asleep when a recording begins is unknown unless a probe shows
//! it; all that is known is its bound. A row is then followed by several models at once, alike but for the unknown
//! lags. Where all decide the same, the decision does not depend on what is unknown and is judged. Where they part, it is
//! not judged: the kernel's choice says which of them were wrong, and those are dropped; the gaps are filled with
//! others that agree with every decision since the unknown appeared, found by following the row again from there. Where
//! none agrees and none is found that does, no lag explains the kernel: a disagreement. Lags end (a delayed
//! dequeue and an empty queue leave none), and models that have become the same are one again.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos};

use crate::model::Model;
use crate::operation::{First, Operation};
use crate::tally::{Tally, Unjudged};
use crate::verdict::{Outcome, Verdict};

/// How many models follow a row while something is unknown.
const MODELS: usize = 48;

/// How many are tried to fill the gaps when some were dropped.
const TRIES: usize = 96;

/// How many operations are followed again at most; what is older counts as settled.
const MEMORY: usize = 4096;

/// After so many operations models are looked at for having become the same.
const BETWEEN_MERGES: usize = 32;

/// What a task of unknown state is taken for, in parts of [`WHOLE`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Draw {
    /// Its lag, of the largest there is.
    lag: i64,
    /// What it has used of its slice, if it is queued.
    used: i64,
}

const WHOLE: i64 = 1 << 30;

impl Draw {
    pub fn lag(self, limit: i64) -> i64 {
        part(self.lag, limit)
    }

    pub fn used(self, slice: i64) -> i64 {
        part(self.used, slice)
    }
}

fn part(of_whole: i64, number: i64) -> i64 {
    (i128::from(of_whole) * i128::from(number) / i128::from(WHOLE)) as i64
}

/// A version row: its score, and the models that follow it, one unless something is unknown.
pub struct Row {
    pub tally: Tally,
    models: Vec<Hypothesis>,
    past: Option<Past>,
    dice: Dice,
    eevdf: bool,
}

struct Hypothesis {
    model: Model,
    /// Which of the past's models it comes from, and what it took the unknown tasks since for.
    origin: usize,
    draws: Vec<Draw>,
    /// How many it stands for.
    copies: usize,
}

/// Since the first unknown task.
struct Past {
    origins: Vec<Model>,
    log: Vec<Entry>,
}

struct Entry {
    operation: Operation,
    now: Nanos,
    at: CpuId,
    /// Which of the operation's verdicts some model agreed with: one bit each.
    explained: u32,
}

impl Row {
    pub fn new(model: Model, tally: Tally) -> Self {
        let eevdf = model.is_eevdf();
        let first = Hypothesis { model, origin: 0, draws: Vec::new(), copies: 1 };
        Row { tally, models: vec![first], past: None, dice: Dice(0x5eed), eevdf }
    }

    /// The model that stands for the row.
    pub fn model(&self) -> &Model {
        // There is always one.
        &self.models[0].model
    }

    /// Takes part in an operation at a time of the trace; the record is of CPU `at`.
    pub fn apply(&mut self, operation: &Operation, now: Nanos, at: CpuId) {
        if self.eevdf && brings_unknown(operation) {
            self.branch();
        }
        // What the first one counts is the row's.
        std::mem::swap(&mut self.tally, &mut self.models[0].model.tally);
        for hypothesis in &mut self.models {
            hypothesis.apply(operation, now, at);
        }
        std::mem::swap(&mut self.tally, &mut self.models[0].model.tally);
        let Some(past) = &mut self.past else {
            let verdicts = std::mem::take(&mut self.models[0].model.verdicts);
            return verdicts.into_iter().for_each(|verdict| verdict.count(&mut self.tally));
        };
        past.log.push(Entry { operation: *operation, now, at, explained: 0 });
        let due = past.log.len() % BETWEEN_MERGES == 0;
        self.judge();
        if due || matches!(operation, Operation::Lost) {
            self.merge();
        }
        if self.past.as_ref().is_some_and(|past| past.log.len() >= MEMORY) {
            self.settle();
        }
    }

    /// An unknown task appears: every model becomes several that take it for different things.
    fn branch(&mut self) {
        if self.past.is_none() {
            self.settle();
        }
        let each = (MODELS / self.models.len()).max(1);
        let old = std::mem::take(&mut self.models);
        let all = old.len() * each;
        for (nth, hypothesis) in old.into_iter().enumerate() {
            let share = (hypothesis.copies / each).max(1);
            for copy in 0..each {
                let draw = self.dice.draw(nth * each + copy, all);
                let mut draws = hypothesis.draws.clone();
                draws.push(draw);
                let model = hypothesis.model.clone();
                self.models.push(Hypothesis { model, origin: hypothesis.origin, draws, copies: share });
            }
        }
    }

    /// The models there are become those that later ones are derived from.
    fn settle(&mut self) {
        let origins = self.models.iter().map(|hypothesis| hypothesis.model.clone()).collect();
        self.past = Some(Past { origins, log: Vec::new() });
        for (nth, hypothesis) in self.models.iter_mut().enumerate() {
            (hypothesis.origin, hypothesis.draws) = (nth, Vec::new());
        }
    }

    /// Counts the last operation's decisions, and drops the models that they refute.
    fn judge(&mut self) {
        let decisions = self.models.iter().map(|hypothesis| hypothesis.model.verdicts.len()).max().unwrap_or(0);
        let mut dropped = false;
        for nth in 0..decisions {
            let says = |hypothesis: &Hypothesis| hypothesis.model.verdicts.get(nth).map(|verdict| verdict.outcome);
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
                self.count(nth, None);
            }
        }
        if dropped {
            self.fill();
        }
    }

    fn explained(&mut self, nth: usize, explained: bool) {
        let Some(entry) = self.past.as_mut().and_then(|past| past.log.last_mut()) else { return };
        let bit = 1u32.checked_shl(nth as u32).unwrap_or(0);
        entry.explained = if explained { entry.explained | bit } else { entry.explained & !bit };
    }

    fn count(&mut self, nth: usize, why: Option<Unjudged>) {
        let told = self.models.iter().find_map(|hypothesis| hypothesis.model.verdicts.get(nth)).cloned();
        let Some(verdict) = told else { return };
        let outcome = why.map_or(verdict.outcome, Outcome::Unjudged);
        Verdict { outcome, ..verdict }.count(&mut self.tally);
    }

    /// No model agrees with the decision: perhaps there is another one that does, and with everything before.
    fn find(&mut self, nth: usize) -> bool {
        let found = self.derive(TRIES, MODELS);
        if found.is_empty() {
            return false;
        }
        self.count(nth, Some(Unjudged::Solved));
        self.models = found;
        true
    }

    /// Fills the gaps that dropped models left.
    fn fill(&mut self) {
        let copies: usize = self.models.iter().map(|hypothesis| hypothesis.copies).sum();
        if copies < MODELS / 2 {
            let more = self.derive(TRIES, MODELS - copies);
            self.models.extend(more);
        }
    }

    /// Up to `wanted` models like the present ones, with one draw of theirs changed, that explain all that was explained.
    fn derive(&mut self, tries: usize, wanted: usize) -> Vec<Hypothesis> {
        let mut found = Vec::new();
        let Some(past) = &self.past else { return found };
        for _ in 0..tries {
            if found.len() == wanted {
                break;
            }
            let (one, other) = (self.dice.below(self.models.len()), self.dice.below(self.models.len()));
            let (one, other) = (&self.models[one], &self.models[other]);
            if let Some(draws) = self.dice.change(&one.draws, &other.draws) {
                found.extend(past.follow(one.origin, draws));
            }
        }
        found
    }

    /// Models in the same state are one; if only one is left, nothing is unknown any more.
    fn merge(&mut self) {
        let mut states: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
        let mut merged: Vec<Hypothesis> = Vec::new();
        for hypothesis in std::mem::take(&mut self.models) {
            let state = hypothesis.model.signature();
            match states.get(&state) {
                Some(same) => merged[*same].copies += hypothesis.copies,
                None => {
                    states.insert(state, merged.len());
                    merged.push(hypothesis);
                }
            }
        }
        self.models = merged;
        let tested = self.models.iter().map(|hypothesis| hypothesis.copies).sum::<usize>() >= MODELS / 4;
        if self.models.len() == 1 && tested {
            self.past = None;
            self.models[0].copies = 1;
        }
    }
}

impl Hypothesis {
    fn apply(&mut self, operation: &Operation, now: Nanos, at: CpuId) {
        if let Some(draw) = self.draws.last() {
            self.model.draw = *draw;
        }
        self.model.apply(operation, now, at);
    }
}

impl Past {
    /// Follows the row again with other draws; `None` if they do not explain what was explained.
    fn follow(&self, origin: usize, draws: Vec<Draw>) -> Option<Hypothesis> {
        let mut model = self.origins.get(origin)?.clone();
        let mut next = draws.iter();
        for entry in &self.log {
            if brings_unknown(&entry.operation) {
                model.draw = *next.next()?;
            }
            model.apply(&entry.operation, entry.now, entry.at);
            let refuted = |(nth, verdict): (usize, &Verdict)| {
                verdict.outcome == Outcome::Differs && entry.explained & 1u32.checked_shl(nth as u32).unwrap_or(0) != 0
            };
            if model.verdicts.iter().enumerate().any(refuted) {
                return None;
            }
        }
        Some(Hypothesis { model, origin, draws, copies: 1 })
    }
}

fn brings_unknown(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Introduce { first: Some(First::Guessed), .. } | Operation::Wake { first: Some(First::Guessed), .. }
    )
}

/// Numbers without a pattern; the same ones in every run.
struct Dice(u64);

impl Dice {
    /// SplitMix64.
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.roll() % end.max(1) as u64) as usize
    }

    fn within(&mut self, from: i64, to: i64) -> i64 {
        from + (self.roll() % (to - from).max(1) as u64) as i64
    }

    /// The `nth` of so many: none, both bounds, and the range between in steps. Half have none, as most sleepers do.
    fn draw(&mut self, nth: usize, of: usize) -> Draw {
        let used = self.within(0, WHOLE);
        let lag = match nth {
            1 => WHOLE,
            3 => -WHOLE,
            _ if nth % 2 == 0 => 0,
            _ => {
                let step = 2 * WHOLE / of.max(1) as i64;
                let from = -WHOLE + step * nth as i64;
                self.within(from - step, from + step).clamp(-WHOLE, WHOLE)
            }
        };
        Draw { lag, used }
    }

    /// Draws like `one`, changed in one place: to nothing, to anything, by the distance to another's, or a little.
    fn change(&mut self, one: &[Draw], other: &[Draw]) -> Option<Vec<Draw>> {
        let mut draws = one.to_vec();
        let nth = self.below(draws.len());
        let theirs = other.get(nth).copied().unwrap_or_default();
        let draw = draws.get_mut(nth)?;
        let near = WHOLE >> self.below(24);
        match self.below(5) {
            0 => draw.lag = 0,
            1 => draw.lag = self.within(-WHOLE, WHOLE),
            2 => draw.lag += part(self.within(-WHOLE / 2, 3 * (WHOLE / 2)), theirs.lag - draw.lag),
            3 => draw.lag += self.within(-near, near),
            _ => draw.used += self.within(-near, near),
        }
        *draw = Draw { lag: draw.lag.clamp(-WHOLE, WHOLE), used: draw.used.clamp(0, WHOLE) };
        Some(draws)
    }
}
