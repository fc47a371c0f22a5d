//! A queue at one moment as plain data: what a person needs to see why one task runs and another waits.
//!
//! Vruntimes and deadlines are distances from the zero point of their own queue (`entity_key`), so that they fit a
//! line.

use schedlab_model::{Nanos, Pid};
use serde::Serialize;

/// One queue.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct QueueView {
    /// Its CPU.
    pub cpu: u32,
    /// v0, from which vruntimes and deadlines count (min_vruntime, or zero_vruntime).
    pub zero_vruntime: u64,
    /// V - v0; EEVDF only.
    pub avg_vruntime: Option<i64>,
    /// Up to when the running entity is charged.
    pub accounted_ns: Option<Nanos>,
    /// The next buddy.
    pub next: Option<Pid>,
    /// The last buddy (CFS).
    pub last: Option<Pid>,
    /// The skip buddy (CFS).
    pub skip: Option<Pid>,
    /// Queued tasks of the deadline class, in the order of their deadlines; before all others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deadline: Vec<DeadlineView>,
    /// Tasks of the real-time class, in the order in which they run; before all others, unless the class is throttled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub real_time: Vec<RealTimeView>,
    /// Groups whose quota is used up on this CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<u32>,
    /// The running entity, then the others in the order of the tree; below a group its own, likewise.
    pub entities: Vec<EntityView>,
}

/// A queued task of the deadline class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DeadlineView {
    /// The task.
    pub pid: Pid,
    /// Its absolute deadline, as a time of the run.
    pub deadline_ns: Nanos,
    /// What is left of its runtime, as last charged.
    pub runtime_left_ns: i64,
    /// It is current.
    pub running: bool,
}

/// A task of the real-time class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct RealTimeView {
    /// The task.
    pub pid: Pid,
    /// `sched_priority`.
    pub priority: u8,
    /// `FIFO` or `RR`.
    pub policy: &'static str,
    /// It is current.
    pub running: bool,
}

/// What an entity of a queue does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntityState {
    /// It is current.
    Running,
    /// It is still current but has gone to sleep: the next pick replaces it.
    Leaving,
    /// It waits for the CPU.
    Waiting,
    /// It sleeps, but its dequeue is delayed.
    Delayed,
}

/// One entity of a queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EntityView {
    /// The task; 0 for a group.
    pub pid: Pid,
    /// The group it stands for; its own entities follow it.
    pub group: Option<u32>,
    /// Groups above it.
    pub depth: u16,
    /// What it does.
    pub state: EntityState,
    /// Weight, nice 0 = 1024.
    pub weight: u64,
    /// vruntime - v0.
    pub vruntime: i64,
    /// Virtual lag, V - vruntime; positive = owed service. EEVDF only, as are the next three.
    pub lag: Option<i64>,
    /// deadline - v0.
    pub deadline: Option<i64>,
    /// Whether it may be picked.
    pub eligible: Option<bool>,
    /// Whether the pick keeps it while it is eligible (RUN_TO_PARITY); only the running one can be.
    pub protected: Option<bool>,
    /// Its slice, wall time.
    pub slice_ns: Nanos,
    /// Run since it was last put on the CPU; what it ran in its last turn if it waits.
    pub ran_ns: Nanos,
}

impl QueueView {
    /// Gives every task another number.
    pub fn rename(&mut self, pid: impl Fn(Pid) -> Pid) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            *buddy = buddy.map(&pid);
        }
        let tasks = self.entities.iter_mut().filter(|entity| entity.group.is_none());
        tasks.for_each(|entity| entity.pid = pid(entity.pid));
        self.deadline.iter_mut().for_each(|task| task.pid = pid(task.pid));
        self.real_time.iter_mut().for_each(|task| task.pid = pid(task.pid));
    }
}
