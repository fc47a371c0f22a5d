//! When scheduler events of two runs count as the same event.
//!
//! Events are compared CPU by CPU and in order, not by time, because costs may shift them (a different HZ, a longer
//! search). Priorities are not compared either, because they may be what the variants change. A preemption is the same
//! only if the same decision requested it: the check of the same wakeup, or the same tick.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::decision::{Action, During};
use schedlab_policy::Resched;
use schedlab_trace::{Event, Kind, TaskState};

/// A scheduler event with the decision that caused it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SchedEvent {
    pub event: Event,
    /// Of a preemption: the decision that first requested it.
    pub cause: Option<Cause>,
}

/// A decision that requested a reschedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cause {
    pub time: Nanos,
    pub action: Action,
    pub during: During,
    pub resched: Resched,
    /// The number of scheduler events of the CPU before the instant of the decision.
    pub position: u64,
}

impl SchedEvent {
    /// The CPU that the event belongs to; `None` if it is not a scheduler event.
    pub fn cpu(event: &Event) -> Option<CpuId> {
        match event.kind {
            Kind::Switch { .. } => Some(event.cpu),
            Kind::Wakeup { target_cpu, .. } | Kind::WakeupNew { target_cpu, .. } => Some(target_cpu),
            Kind::Migrate { dest_cpu, .. } => Some(dest_cpu),
            _ => None,
        }
    }

    /// Whether the event preempts the running task.
    pub fn preempts(&self) -> bool {
        matches!(self.event.kind, Kind::Switch { prev, prev_state: TaskState::Running, .. } if prev != 0)
    }

    /// The task that is switched in, woken or migrated.
    pub fn pid(&self) -> Pid {
        match self.event.kind {
            Kind::Switch { next, .. } => next,
            Kind::Wakeup { pid, .. } | Kind::WakeupNew { pid, .. } | Kind::Migrate { pid, .. } => pid,
            _ => 0,
        }
    }

    pub fn same(&self, other: &SchedEvent) -> bool {
        shape(self.event.kind) == shape(other.event.kind) && (!self.preempts() || self.same_preemption(other))
    }

    /// Whether the same decision requested both preemptions and both were honoured after the same delay. A lazy request
    /// may wait where a full one does not.
    fn same_preemption(&self, other: &SchedEvent) -> bool {
        let (Some(a), Some(b)) = (self.cause, other.cause) else {
            return self.cause.is_none() == other.cause.is_none();
        };
        let alike = a.resched == b.resched || self.event.time - a.time == other.event.time - b.time;
        alike && same_request(a, b)
    }
}

/// The event without priorities, so that a task with another nice value or policy still counts as the same task.
pub(super) fn shape(kind: Kind) -> Kind {
    match kind {
        Kind::Switch { prev, prev_state, next, .. } => {
            Kind::Switch { prev, prev_prio: 0, prev_state, next, next_prio: 0 }
        }
        Kind::Waking { pid, target_cpu, .. } => Kind::Waking { pid, prio: 0, target_cpu },
        Kind::Wakeup { pid, target_cpu, .. } => Kind::Wakeup { pid, prio: 0, target_cpu },
        Kind::WakeupNew { pid, target_cpu, .. } => Kind::WakeupNew { pid, prio: 0, target_cpu },
        Kind::Migrate { pid, orig_cpu, dest_cpu, .. } => Kind::Migrate { pid, prio: 0, orig_cpu, dest_cpu },
        other => other,
    }
}

/// The same tick, or the same place in the CPU's order.
pub(super) fn same_request(a: Cause, b: Cause) -> bool {
    match (a.during, b.during) {
        // The times of ticks do not depend on costs.
        (During::Tick, During::Tick) => a.time == b.time,
        (During::Tick, _) | (_, During::Tick) => false,
        _ => a.position == b.position,
    }
}
