//! A schedulable entity (`struct sched_entity`): a task, or a group on one CPU.

use crate::pelt::sched_avg::SchedAvg;
use crate::weight::{LoadWeight, NICE_0_LOAD};
use crate::{FairPolicy, KernelConfig};
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

    /// The entity, unless NIL.
    #[inline]
    pub(super) fn some(self) -> Option<EntityId> {
        self.is_some().then_some(self)
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

/// The state of an entity in the fair class: four cache lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Entity {
    /// Weight on its group's queue.
    pub load: LoadWeight,
    /// The weight by which it competes, to whose scale lag and relative deadline belong: the same, but from 7.3 on the
    /// part of the CPU that its weight and those of the groups above it come to.
    pub h_load: LoadWeight,
    /// Virtual runtime; relative to the queue's minimum while a CFS entity is between queues.
    pub vruntime: Vruntime,
    /// Virtual deadline; relative to vruntime while `rel_deadline`.
    pub deadline: Vruntime,
    /// Virtual lag while off the queue; while running the RUN_TO_PARITY marker, a copy of the deadline (up to
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
    /// Runnable tasks it stands for: 1, or a group's as of its last change (`runnable_weight`). 5.2: `runnable_weight`
    /// of a group's entity, the part of its weight that is not blocked.
    pub(super) runnable: u32,
    /// Nice value.
    pub nice: i8,
    /// The nice value that `p->prio` stands for. It differs from `nice` where SCHED_IDLE was requested together with a
    /// nice value, which the kernel does not keep.
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
    /// It waits in the limbo list of its queue (6.18 and later).
    pub throttled: bool,
    /// It must leave the queue before it runs in user mode again.
    pub(super) throttle_work: bool,
    /// Dequeued to sleep and not moved to another CPU since: a CFS vruntime is still absolute, on the scale of `cpu`'s
    /// queue.
    pub asleep: bool,
    /// Load tracking.
    pub avg: SchedAvg,
}

impl Entity {
    /// An entity that is not queued and weighs as nice 0.
    pub(super) fn blank(cpu: CpuId, config: &KernelConfig) -> Entity {
        let zero = Vruntime(0);
        let load = LoadWeight::of_sum(NICE_0_LOAD).dividing(config.rules.delta_divides);
        Entity {
            load,
            h_load: load,
            vruntime: zero,
            deadline: zero,
            vlag: 0,
            vprot: zero,
            slice: config.knobs.base_slice,
            exec_start: 0,
            sum_exec_runtime: 0,
            prev_sum_exec_runtime: 0,
            cpu,
            cfs_rq: cpu.0,
            parent: EntityId::NIL,
            my_q: None,
            depth: 0,
            nice: 0,
            prio: 0,
            latency_nice: 0,
            policy: FairPolicy::Normal,
            on_rq: false,
            sched_delayed: false,
            rel_deadline: false,
            custom_slice: false,
            asleep: false,
            throttled: false,
            throttle_work: false,
            runnable: 1,
            avg: SchedAvg::default(),
        }
    }

    /// `runnable_weight` of 5.2, at full resolution.
    #[inline]
    pub(super) fn runnable_weight(&self) -> u64 {
        match self.my_q {
            Some(_) => u64::from(self.runnable),
            None => self.load.weight,
        }
    }

    /// Has this weight at once in both ways.
    #[inline]
    pub(super) fn set_load(&mut self, load: LoadWeight) {
        (self.load, self.h_load) = (load, load);
    }

    /// Whether it is a task (`entity_is_task`).
    #[inline]
    #[must_use]
    pub fn is_task(&self) -> bool {
        self.my_q.is_none()
    }

    /// Whether it is a SCHED_IDLE task or the entity of an idle group (`se_is_idle`).
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.policy == FairPolicy::Idle
    }

    /// The queue it is on or was last on.
    #[inline]
    pub(super) fn rq(&self) -> usize {
        self.cfs_rq as usize
    }
}
