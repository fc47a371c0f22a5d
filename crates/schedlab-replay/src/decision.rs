//! One decision of the kernel as a model would have made it, before it is counted.

use schedlab_model::{CpuId, Nanos};

use crate::report::Disagreement;
use crate::unjudged::Unjudged;

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

/// Whether rules that use no scheduling state agree with the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Baseline {
    Pick { fifo: bool, lifo: bool, keep: bool, lowest_pid: bool },
    Preemption { kept: bool },
}
