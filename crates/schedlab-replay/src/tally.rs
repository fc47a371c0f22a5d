//! Counting decisions: judged, agreed, unjudged with the reason, by kind, CPU and class of task.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos};

use crate::report::{Disagreement, StateMiss, StepMiss};

/// What was decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Which task runs.
    Pick,
    /// Whether a wakee preempts.
    Wakeup,
    /// Whether a new task preempts.
    Fork,
    /// Whether the tick preempts.
    Tick,
    /// Whether another accounting does (EEVDF).
    Update,
    /// Whether a task brought by the balancer preempts.
    Balance,
    /// Whether a task that changes its group gives way.
    Move,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pick => "pick",
            Kind::Wakeup => "wakeup",
            Kind::Fork => "fork",
            Kind::Tick => "tick",
            Kind::Update => "update",
            Kind::Balance => "balance",
            Kind::Move => "move",
        }
    }
}

/// Why a decision could not be judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unjudged {
    /// The state of a task that mattered is not known yet.
    State,
    /// It depends on a lag that nothing shows, which is narrowed by it.
    Solved,
    /// No record shows the need-resched flag after it.
    Hidden,
    /// The flag shows only after a later decision, and may be due to that.
    Shared,
    /// A slice's own timer (HRTICK) may have fired, for this task or for one before it.
    Timer,
    /// The choice fell between two records, and the queue changed there.
    Time,
}

impl Unjudged {
    pub fn reason(self) -> &'static str {
        match self {
            Unjudged::State => "a task's state was not known yet",
            Unjudged::Solved => "an unknown lag is solved for by it",
            Unjudged::Hidden => "no record shows the outcome",
            Unjudged::Timer => "the timer of a slice may have fired (HRTICK)",
            Unjudged::Time => "the queue changed about the time of the choice",
            Unjudged::Shared => "a later decision may have had the outcome that shows",
        }
    }
}

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
    AboveZero,
    AboveSum,
    AboveWeight,
    AboveCount,
    Load,
    Told,
    LoadOfAll,
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
            Field::GroupVruntime => "group's vruntime",
            Field::GroupDeadline => "group's deadline",
            Field::GroupLag => "group's lag",
            Field::GroupWeight => "group's weight",
            Field::AboveZero => "zero above",
            Field::AboveSum => "sum above",
            Field::AboveWeight => "weight above",
            Field::AboveCount => "count above",
            Field::Load => "load",
            Field::Told => "load told",
            Field::LoadOfAll => "load of all CPUs",
        }
    }
}

/// When, on which CPU and for whom a decision was made.
#[derive(Clone, Copy, Debug)]
pub struct Where {
    pub time: Nanos,
    pub cpu: CpuId,
    pub nice: i8,
}

/// Decisions and agreements.
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

/// Steps of vruntime, and absolute values, that were equal to the nanosecond.
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
    pub kinds: BTreeMap<Kind, Count>,
    pub cpus: BTreeMap<(CpuId, bool), Count>,
    pub classes: BTreeMap<(&'static str, bool), Count>,
    pub unjudged: BTreeMap<(Unjudged, Kind), u64>,
    pub not_asked: u64,
    pub warm_up: u64,
    pub fifo: Count,
    pub lowest_pid: Count,
    pub never: Count,
    pub tasks: Tasks,
    pub steps: Steps,
    pub states: BTreeMap<Field, Count>,
    pub shown: Count,
    pub state_misses: Vec<StateMiss>,
    pub out_of_step: u64,
    pub disagreements: Vec<Disagreement>,
}

impl Tally {
    pub fn judged(&mut self, kind: Kind, at: Where, agreed: bool) {
        if at.time < self.from {
            self.warm_up += 1;
            return;
        }
        let pick = kind == Kind::Pick;
        self.kinds.entry(kind).or_default().add(agreed);
        self.cpus.entry((at.cpu, pick)).or_default().add(agreed);
        self.classes.entry((class(at.nice), pick)).or_default().add(agreed);
    }

    pub fn unjudged(&mut self, kind: Kind, at: Where, why: Unjudged) {
        if at.time < self.from {
            self.warm_up += 1;
            return;
        }
        *self.unjudged.entry((why, kind)).or_default() += 1;
    }

    /// The flag was set already: the kernel made no decision.
    pub fn not_asked(&mut self, at: Where) {
        self.not_asked += u64::from(at.time >= self.from);
    }

    pub fn baselines(&mut self, at: Where, fifo: bool, lowest_pid: bool) {
        if at.time >= self.from {
            self.fifo.add(fifo);
            self.lowest_pid.add(lowest_pid);
        }
    }

    pub fn never_preempts(&mut self, at: Where, agreed: bool) {
        if at.time >= self.from {
            self.never.add(agreed);
        }
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

    /// What one event shows: kernel and model.
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

    pub fn wants_disagreement(&self, now: Nanos) -> bool {
        now >= self.from && self.disagreements.len() < self.limit
    }

    /// Picks, or everything else, together.
    pub fn total(&self, picks: bool) -> Count {
        let chosen = self.kinds.iter().filter(|(kind, _)| (**kind == Kind::Pick) == picks);
        chosen.fold(Count::default(), |sum, (_, count)| Count {
            decisions: sum.decisions + count.decisions,
            agreed: sum.agreed + count.agreed,
        })
    }
}

/// The class of a task, for the table.
fn class(nice: i8) -> &'static str {
    match nice {
        ..0 => "nice < 0",
        0 => "nice 0",
        1.. => "nice > 0",
    }
}
