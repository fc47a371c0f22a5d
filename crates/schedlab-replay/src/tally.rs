//! Counting decisions: judged, agreed and unjudged, by kind, CPU and nice value.

use std::collections::BTreeMap;

use schedlab_model::Nanos;

use crate::decision::{Baseline, Decision, DecisionKind, Outcome, Unjudged};
use crate::inputs::Inputs;
use crate::report::{Disagreement, StateMiss, StepMiss};

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
        }
    }
}

/// Decisions and how many of them agreed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Count {
    pub decisions: u64,
    pub agreed: u64,
}

impl Count {
    fn add(&mut self, agreed: bool) {
        self.decisions += 1;
        self.agreed += u64::from(agreed);
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
    pub kinds: BTreeMap<DecisionKind, Count>,
    /// By CPU, and whether it was a pick.
    pub cpus: BTreeMap<(u32, bool), Count>,
    /// By range of nice values, and whether it was a pick.
    pub nice: BTreeMap<(&'static str, bool), Count>,
    pub unjudged: BTreeMap<(Unjudged, DecisionKind), u64>,
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
                return;
            }
            Outcome::Agrees => true,
            Outcome::Differs => false,
        };
        match baselines {
            Some(Baseline::Pick { fifo, lifo, keep, lowest_pid }) => {
                self.fifo.add(fifo);
                self.lifo.add(lifo);
                self.keep.add(keep);
                self.lowest_pid.add(lowest_pid);
            }
            Some(Baseline::Preemption { kept }) => self.never_preempts.add(kept),
            None => {}
        }
        let pick = kind == DecisionKind::Pick;
        self.kinds.entry(kind).or_default().add(agrees);
        self.cpus.entry((at.cpu.0, pick)).or_default().add(agrees);
        self.nice.entry((nice_range(at.nice), pick)).or_default().add(agrees);
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
            self.states.entry(field).or_default().add(kernel == model);
            if kernel != model && all && self.state_misses.len() < self.limit {
                self.state_misses.push(StateMiss { what: field.name(), kernel, model, ..at });
            }
            all &= kernel == model;
        }
        self.shown.add(all);
    }

    /// Whether one more disagreement is to be described.
    pub fn describes_disagreement(&self, now: Nanos) -> bool {
        now >= self.from && self.disagreements.len() < self.limit
    }

    /// Picks, or all other decisions, together.
    pub fn total(&self, picks: bool) -> Count {
        let chosen = self.kinds.iter().filter(|(kind, _)| (**kind == DecisionKind::Pick) == picks);
        chosen.fold(Count::default(), |sum, (_, count)| Count {
            decisions: sum.decisions + count.decisions,
            agreed: sum.agreed + count.agreed,
        })
    }
}

fn nice_range(nice: i8) -> &'static str {
    match nice {
        ..0 => "nice < 0",
        0 => "nice 0",
        1.. => "nice > 0",
    }
}
