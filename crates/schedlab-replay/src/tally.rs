//! Counting decisions: judged, agreed and unjudged, by kind, CPU and nice value.

use std::collections::BTreeMap;

use schedlab_model::Nanos;

use crate::count::Count;
use crate::decision::{Baseline, Decision, DecisionKind, Outcome};
use crate::inputs::Inputs;
use crate::report::{Disagreement, StateMiss, StepMiss};
use crate::spans::Spans;
use crate::unjudged::Unjudged;

/// A piece of state that a probe shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Field {
    Vruntime,
    Deadline,
    Lag,
    Zero,
    Sum,
    Weight,
    Count,
    GroupVruntime,
    GroupDeadline,
    GroupLag,
    GroupWeight,
    ParentZero,
    ParentSum,
    ParentWeight,
    ParentCount,
    Load,
    TgLoadContrib,
    TgLoad,
    HWeight,
    Runnable,
    TgRunnableContrib,
    TgRunnable,
}

impl Field {
    fn name(self) -> &'static str {
        match self {
            Field::Vruntime => "vruntime",
            Field::Deadline => "deadline",
            Field::Lag => "lag",
            Field::Zero => "zero",
            Field::Sum => "sum",
            Field::Weight => "weight",
            Field::Count => "count",
            Field::GroupVruntime => "group vruntime",
            Field::GroupDeadline => "group deadline",
            Field::GroupLag => "group lag",
            Field::GroupWeight => "group weight",
            Field::ParentZero => "parent zero",
            Field::ParentSum => "parent sum",
            Field::ParentWeight => "parent weight",
            Field::ParentCount => "parent count",
            Field::Load => "queue load",
            Field::TgLoadContrib => "tg_load_avg_contrib",
            Field::TgLoad => "tg load_avg",
            Field::HWeight => "weight along the hierarchy",
            Field::Runnable => "queue runnable",
            Field::TgRunnableContrib => "tg_runnable_avg_contrib",
            Field::TgRunnable => "tg runnable_avg",
        }
    }
}

/// Tasks by what was known of them.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tasks {
    pub seen: u64,
    pub taken: u64,
    pub guessed: u64,
    pub solved: u64,
}

/// Differences of vruntime between two records of a task, and values, that were equal to the nanosecond.
#[derive(Clone, Default, Debug)]
pub struct Steps {
    pub compared: u64,
    pub equal: u64,
    pub absolute: u64,
    pub first: Vec<StepMiss>,
}

/// Everything counted under one row.
#[derive(Clone, Default, Debug)]
pub struct Tally {
    /// Nothing before this time counts.
    pub from: Nanos,
    /// How many disagreements are described.
    pub limit: usize,
    pub picks: Count,
    pub preemptions: Count,
    pub kinds: BTreeMap<DecisionKind, Count>,
    /// By CPU, and whether it was a pick.
    pub cpus: BTreeMap<(u32, bool), Count>,
    /// By range of nice values, and whether it was a pick.
    pub nice: BTreeMap<(&'static str, bool), Count>,
    pub unjudged: BTreeMap<(Unjudged, DecisionKind), u64>,
    pub spans: Spans,
    pub not_asked: u64,
    pub warm_up: u64,
    pub fifo: Count,
    pub lifo: Count,
    pub keep: Count,
    pub lowest_pid: Count,
    pub never_preempts: Count,
    pub tasks: Tasks,
    pub steps: Steps,
    pub states: BTreeMap<Field, Count>,
    pub shown: Count,
    pub state_misses: Vec<StateMiss>,
    /// The caches that charged tasks and their processes prefer.
    pub preferences: Count,
    pub desyncs: u64,
    pub inputs: Inputs,
    pub disagreements: Vec<Disagreement>,
}

impl Tally {
    pub fn count(&mut self, decision: Decision) {
        let Decision { kind, at, outcome, baselines, disagreement } = decision;
        let counts = at.time >= self.from;
        let agrees = match outcome {
            Outcome::NotAsked => {
                self.not_asked += u64::from(counts);
                return;
            }
            _ if !counts => {
                self.warm_up += 1;
                return;
            }
            Outcome::Unjudged(why) => {
                *self.unjudged.entry((why, kind)).or_default() += 1;
                self.spans.note(at.cpu.0, at.time, Some(why));
                return;
            }
            Outcome::Agrees => true,
            Outcome::Differs => false,
        };
        self.spans.note(at.cpu.0, at.time, None);
        match baselines {
            Some(Baseline::Pick { fifo, lifo, keep, lowest_pid }) => {
                self.fifo.add(at.time, fifo);
                self.lifo.add(at.time, lifo);
                self.keep.add(at.time, keep);
                self.lowest_pid.add(at.time, lowest_pid);
            }
            Some(Baseline::Preemption { kept }) => self.never_preempts.add(at.time, kept),
            None => {}
        }
        let pick = kind == DecisionKind::Pick;
        let side = if pick { &mut self.picks } else { &mut self.preemptions };
        side.add(at.time, agrees);
        self.kinds.entry(kind).or_default().add(at.time, agrees);
        self.cpus.entry((at.cpu.0, pick)).or_default().add(at.time, agrees);
        self.nice.entry((nice_range(at.nice), pick)).or_default().add(at.time, agrees);
        self.disagreements.extend(disagreement.map(|described| *described));
    }

    pub fn vruntime_step(&mut self, now: Nanos, step: StepMiss, absolute: bool) {
        if now < self.from {
            return;
        }
        self.steps.compared += 1;
        self.steps.absolute += u64::from(absolute);
        if step.kernel_step == step.model_step {
            self.steps.equal += 1;
        } else if self.steps.first.len() < self.limit {
            self.steps.first.push(step);
        }
    }

    /// What one event shows: the kernel's numbers and the model's.
    pub fn state(&mut self, at: StateMiss, fields: &[(Field, i64, i64)]) {
        if at.time_ns < self.from || fields.is_empty() {
            return;
        }
        let mut all = true;
        for &(field, kernel, model) in fields {
            self.states.entry(field).or_default().add(at.time_ns, kernel == model);
            if kernel != model && all && self.state_misses.len() < self.limit {
                self.state_misses.push(StateMiss { what: field.name(), kernel, model, ..at });
            }
            all &= kernel == model;
        }
        self.shown.add(at.time_ns, all);
    }

    /// Whether one more disagreement is to be described.
    pub fn describes_disagreement(&self, now: Nanos) -> bool {
        now >= self.from && self.disagreements.len() < self.limit
    }

    /// Unjudged picks, and other decisions, that no lag explains or that follow one.
    pub fn unexplained(&self) -> (u64, u64) {
        self.unjudged_by(Unjudged::is_unexplained)
    }

    /// The same of those that lags were solved from.
    pub fn solved(&self) -> (u64, u64) {
        self.unjudged_by(|why| why == Unjudged::Solved)
    }

    fn unjudged_by(&self, counts: fn(Unjudged) -> bool) -> (u64, u64) {
        let counted = self.unjudged.iter().filter(|((why, _), _)| counts(*why));
        let (picks, others): (Vec<_>, Vec<_>) = counted.partition(|((_, kind), _)| *kind == DecisionKind::Pick);
        let sum = |counts: Vec<(_, &u64)>| counts.into_iter().map(|(_, count)| count).sum();
        (sum(picks), sum(others))
    }
}

fn nice_range(nice: i8) -> &'static str {
    match nice {
        ..0 => "nice < 0",
        0 => "nice 0",
        1.. => "nice > 0",
    }
}
