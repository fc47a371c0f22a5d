//! One decision of the kernel as a model would have made it, before it is counted.

use schedlab_model::{CpuId, Nanos};

use crate::report::Disagreement;

/// A decision, compared with the kernel's or not.
#[derive(Clone, Debug)]
pub struct Decision {
    pub kind: DecisionKind,
    pub at: At,
    pub outcome: Outcome,
    /// Whether simple rules agree, where the decision was compared.
    pub baselines: Option<Baseline>,
    /// What differs, where it is to be reported.
    pub disagreement: Option<Box<Disagreement>>,
}

/// What was decided.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DecisionKind {
    /// Which task runs.
    Pick,
    /// Whether a wakee preempts.
    Wakeup,
    /// Whether a new task preempts.
    Fork,
    /// Whether the tick reschedules.
    Tick,
    /// Whether another call of `update_curr` reschedules (EEVDF).
    Update,
    /// Whether a migrated task preempts.
    Balance,
    /// Whether a task that changes its group is rescheduled.
    Move,
}

impl DecisionKind {
    pub fn name(self) -> &'static str {
        match self {
            DecisionKind::Pick => "pick",
            DecisionKind::Wakeup => "wakeup",
            DecisionKind::Fork => "fork",
            DecisionKind::Tick => "tick",
            DecisionKind::Update => "update",
            DecisionKind::Balance => "balance",
            DecisionKind::Move => "move",
        }
    }
}

/// When, on which CPU and for a task of which nice value a decision was made.
#[derive(Clone, Copy, Debug)]
pub struct At {
    pub time: Nanos,
    pub cpu: CpuId,
    pub nice: i8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Agrees,
    Differs,
    Unjudged(Unjudged),
    /// Need-resched was set already: the kernel made no decision.
    NotAsked,
}

/// Why a decision cannot be judged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unjudged {
    /// The state of a task that matters is not known yet.
    State,
    /// It depends on a lag that the trace does not show, and narrows that lag.
    Solved,
    /// It depends on unknown lags, and none was found that explains it.
    NoLag,
    /// No lag explains an earlier decision on the CPU, whose queue has not been empty since.
    AfterNoLag,
    /// No record shows need-resched after it.
    Hidden,
    /// A later decision precedes the record that shows the flag, which may be due to either.
    Shared,
    /// The hrtick may have fired, for this task or for an earlier one.
    Timer,
    /// The pick fell between two records, and the queue changed there.
    Time,
}

impl Unjudged {
    /// Whether no lag explains the decision or an earlier one on its CPU.
    pub fn is_unexplained(self) -> bool {
        matches!(self, Unjudged::NoLag | Unjudged::AfterNoLag)
    }

    pub fn reason(self) -> &'static str {
        match self {
            Unjudged::State => "a task's state was not known yet",
            Unjudged::Solved => "it depends on an unknown lag and was used to solve for it",
            Unjudged::NoLag => "no lag was found that explains it",
            Unjudged::AfterNoLag => "no lag was found that explains an earlier decision on the CPU",
            Unjudged::Hidden => "no record shows the outcome",
            Unjudged::Timer => "the hrtick may have fired",
            Unjudged::Time => "the queue changed around the time of the pick",
            Unjudged::Shared => "a later decision may have set the flag",
        }
    }
}

/// Whether rules that use no scheduling state agree with the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Baseline {
    Pick { fifo: bool, lifo: bool, keep: bool, lowest_pid: bool },
    Preemption { kept: bool },
}
