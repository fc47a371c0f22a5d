//! A schedulable entity (`struct sched_entity`): a task, or a group on one CPU.

use crate::pelt::SchedAvg;
use crate::weight::LoadWeight;
use crate::FairPolicy;
use schedlab_model::{CpuId, Nanos, TaskId, Vruntime};

/// An entity of one kernel. A task's is its [`TaskId`]; groups' are beyond every task's and may be renumbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntityId(pub(super) u32);

impl EntityId {
    /// No entity. A sentinel instead of an `Option` keeps links at four bytes.
    pub(super) const NIL: EntityId = EntityId(u32::MAX);

    #[inline]
    pub(super) fn of(task: TaskId) -> EntityId {
        EntityId(task.0)
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub(super) fn is_nil(self) -> bool {
        self == EntityId::NIL
    }

    #[inline]
    pub(super) fn is_some(self) -> bool {
        self != EntityId::NIL
    }

    /// The task; meaningful only for task entities.
    #[inline]
    pub(super) fn task_id(self) -> TaskId {
        TaskId(self.0)
    }

    /// The task, unless NIL.
    #[inline]
    pub(super) fn task(self) -> Option<TaskId> {
        self.is_some().then_some(TaskId(self.0))
    }
}

/// What the fair class knows of an entity: three cache lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Entity {
    /// Weight.
    pub load: LoadWeight,
    /// Virtual runtime; relative to the queue's minimum while a CFS entity is between queues.
    pub vruntime: Vruntime,
    /// Virtual deadline; relative to vruntime while `rel_deadline`.
    pub deadline: Vruntime,
    /// Virtual lag while off the queue; while running the RUN_TO_PARITY marker, a copy of the deadline (to
    /// 6.12), or the end of the protection (6.18).
    pub vlag: i64,
    /// Up to where the running entity is protected (7.x).
    pub vprot: Vruntime,
    /// Request size.
    pub slice: Nanos,
    /// Start of the time not yet accounted; 0 = unknown.
    pub exec_start: Nanos,
    /// Total time run.
    pub sum_exec_runtime: Nanos,
    /// `sum_exec_runtime` when it was last put on the CPU.
    pub prev_sum_exec_runtime: Nanos,
    /// The CPU it is on or was last on.
    pub cpu: CpuId,
    /// The queue it is on or was last on: an index, equal to the CPU's number for entities outside groups.
    pub(super) cfs_rq: u32,
    /// The group entity that stands for `cfs_rq` one level up; NIL on a CPU's own queue.
    pub(super) parent: EntityId,
    /// The queue a group entity stands for; tasks own none.
    pub(super) my_q: Option<u32>,
    /// Groups above it.
    pub(super) depth: u16,
    /// Runnable tasks it stands for: 1, or a group's as of its last change (`runnable_weight`).
    pub(super) runnable: u32,
    /// Nice value.
    pub nice: i8,
    /// The one that `p->prio` stands for: another where SCHED_IDLE was asked for with a nice value, which is not kept.
    pub(super) prio: i8,
    /// latency-nice value (2023 series).
    pub latency_nice: i8,
    /// Policy; a group's is IDLE if its `cpu.idle` is set, else NORMAL.
    pub policy: FairPolicy,
    /// Queued or running.
    pub on_rq: bool,
    /// Its dequeue is delayed: it sleeps but still competes.
    pub sched_delayed: bool,
    /// `deadline` is relative.
    pub rel_deadline: bool,
    /// `slice` is its own (`sched_attr.sched_runtime`, latency-nice), not base_slice.
    pub custom_slice: bool,
    /// It waits in its queue's limbo (6.18 and later).
    pub throttled: bool,
    /// It must leave before it runs in user mode again.
    pub(super) throttle_work: bool,
    /// Dequeued to sleep and not re-homed since: a CFS vruntime is still absolute, on the scale of `cpu`'s queue.
    pub asleep: bool,
    /// Load tracking.
    pub avg: SchedAvg,
}

impl Entity {
    /// `entity_is_task`.
    #[inline]
    #[must_use]
    pub fn is_task(&self) -> bool {
        self.my_q.is_none()
    }

    /// `se_is_idle`.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.policy == FairPolicy::Idle
    }

    /// Whether the protection marker of the running entity is intact.
    #[inline]
    pub(super) fn marked(&self) -> bool {
        self.vlag as u64 == self.deadline.0
    }

    /// Sets the protection marker.
    #[inline]
    pub(super) fn mark(&mut self) {
        self.vlag = self.deadline.0 as i64;
    }
}
