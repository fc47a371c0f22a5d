//! Which scheduler events of two runs are the same event.
//!
//! Events are compared CPU by CPU in their order, not by time: costs may shift them (another HZ, a longer search).
//! Priorities do not count either: they may be what differs between the variants.
//! A preemption is the same only if the same decision led to it: the check of the same wakeup, or the same tick.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::decision::{During, Verdict};
use schedlab_policy::Resched;
use schedlab_trace::{Event, Kind, TaskState};

/// A scheduler event with what led to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub event: Event,
    /// Of a preemption: the decision that first asked for it.
    pub cause: Option<Cause>,
}

/// A decision that asked for a reschedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cause {
    pub time: Nanos,
    pub verdict: Verdict,
    pub during: During,
    pub asked: Resched,
    /// Scheduler events of the CPU before the instant of the decision.
    pub position: u64,
}

impl Item {
    /// The CPU in whose order an event counts; `None` for events that are no scheduling.
    pub fn cpu(event: &Event) -> Option<CpuId> {
        match event.kind {
            Kind::Switch { .. } => Some(event.cpu),
            Kind::Wakeup { target_cpu, .. } | Kind::WakeupNew { target_cpu, .. } => Some(target_cpu),
            Kind::Migrate { dest_cpu, .. } => Some(dest_cpu),
            _ => None,
        }
    }

    /// The running task was preempted.
    pub fn preempts(&self) -> bool {
        matches!(self.event.kind, Kind::Switch { prev, prev_state: TaskState::Running, .. } if prev != 0)
    }

    /// Who the event is about: who enters, wakes or moves.
    pub fn pid(&self) -> Pid {
        match self.event.kind {
            Kind::Switch { next, .. } => next,
            Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. } | Kind::Migrate { pid, .. } => pid,
            _ => 0,
        }
    }

    pub fn same(&self, other: &Item) -> bool {
        shape(self.event.kind) == shape(other.event.kind) && (!self.preempts() || self.same_preemption(other))
    }

    /// The same decision, and honoured alike: a lazy request may wait where a full one does not.
    fn same_preemption(&self, other: &Item) -> bool {
        let (Some(a), Some(b)) = (self.cause, other.cause) else {
            return self.cause.is_none() == other.cause.is_none();
        };
        let alike = a.asked == b.asked || self.event.time - a.time == other.event.time - b.time;
        alike && same_decision(a, b)
    }
}

/// The event without priorities: a task with another nice value or policy is still the same task.
pub(super) fn shape(kind: Kind) -> Kind {
    let none = 0;
    match kind {
        Kind::Switch { prev, prev_state, next, .. } => {
            Kind::Switch { prev, prev_prio: none, prev_state, next, next_prio: none }
        }
        Kind::Waking { pid, target_cpu, .. } => Kind::Waking { pid, prio: none, target_cpu },
        Kind::Wakeup { pid, target_cpu, .. } => Kind::Wakeup { pid, prio: none, target_cpu },
        Kind::WakeupNew { pid, target_cpu, .. } => Kind::WakeupNew { pid, prio: none, target_cpu },
        Kind::Migrate { pid, orig_cpu, dest_cpu, .. } => Kind::Migrate { pid, prio: none, orig_cpu, dest_cpu },
        other => other,
    }
}

/// The same tick, or the same place in the CPU's order.
pub(super) fn same_decision(a: Cause, b: Cause) -> bool {
    match (a.during, b.during) {
        // Ticks fall on fixed times, whatever anything costs.
        (During::Tick, During::Tick) => a.time == b.time,
        (During::Tick, _) | (_, During::Tick) => false,
        _ => a.position == b.position,
    }
}
