//! The fair class (`kernel/sched/fair.c`) at task level: CFS 6.1.192 and EEVDF 6.12.0.

use crate::config::KernelConfig;
use crate::decision::Decision;
use crate::weight::LoadWeight;
use crate::{FairPolicy, Resched, TaskAttr};
use schedlab_model::{CpuId, Nanos, TaskId, Vruntime};

/// Why an entity is enqueued (`ENQUEUE_*`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Enqueue {
    /// ENQUEUE_WAKEUP.
    pub wakeup: bool,
    /// ENQUEUE_MIGRATED: it comes from another CPU's queue.
    pub migrated: bool,
    /// ENQUEUE_INITIAL: its first enqueue after fork (6.12 and later).
    pub initial: bool,
    /// ENQUEUE_DELAYED: it is woken while its dequeue was delayed; it must be queued.
    pub delayed: bool,
}

/// Why an entity is dequeued (`DEQUEUE_*`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dequeue {
    /// DEQUEUE_SLEEP.
    pub sleep: bool,
    /// DEQUEUE_SPECIAL: a dead, parked or frozen task, never delayed.
    pub special: bool,
}

/// What is known about a wakeup (`WF_*`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WakeFlags {
    /// WF_SYNC: the waker is about to sleep.
    pub sync: bool,
    /// WF_FORK: a new task.
    pub fork: bool,
}

/// A schedulable entity (`struct sched_entity`): a task, later also a group on one CPU.
#[derive(Clone, Debug, Default)]
pub struct Entity {
    /// Weight.
    pub load: LoadWeight,
    /// Nice value.
    pub nice: i8,
    /// Policy.
    pub policy: FairPolicy,
    /// Virtual runtime.
    pub vruntime: Vruntime,
    /// Virtual deadline.
    pub deadline: Vruntime,
    /// Lag while off the queue; the protection marker while running.
    pub vlag: i64,
    /// Request size.
    pub slice: Nanos,
    /// Start of the unaccounted run.
    pub exec_start: Nanos,
    /// Total time run.
    pub sum_exec_runtime: Nanos,
    /// `sum_exec_runtime` when it was last put on the CPU.
    pub prev_sum_exec_runtime: Nanos,
    /// Queued or running.
    pub on_rq: bool,
    /// Its dequeue is delayed: it sleeps but still competes.
    pub sched_delayed: bool,
    /// `deadline` is relative.
    pub rel_deadline: bool,
    /// `slice` was asked for.
    pub custom_slice: bool,
    /// The CPU whose queue it is on or was last on.
    pub cpu: CpuId,
}

/// A runqueue of the fair class (`struct cfs_rq`).
#[derive(Clone, Debug, Default)]
pub struct CfsRq {
    /// Queued entities including the running one and delayed ones.
    pub nr_running: u32,
    /// Tasks below, including delayed ones.
    pub h_nr_running: u32,
    /// Sum of weights including the running one.
    pub load: LoadWeight,
}

/// The sums a checker compares.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sums {
    /// Entities, running one included.
    pub nr_running: u32,
    /// Sum of weights, running one included, full resolution.
    pub load: u64,
    /// `avg_vruntime`: sum of (v - v0) * w without the running one.
    pub avg_vruntime: i64,
    /// `avg_load`: sum of w without the running one.
    pub avg_load: u64,
}

/// The fair class of one kernel: every task and one queue per CPU.
pub struct Fair {
    /// The kernel it belongs to.
    pub config: KernelConfig,
    /// Decisions taken, if asked for.
    pub decisions: Option<Vec<Decision>>,
    entities: Vec<Entity>,
    rqs: Vec<CfsRq>,
}

#[allow(clippy::todo, missing_docs, unused_variables)]
impl Fair {
    pub fn new(config: KernelConfig) -> Self {
        todo!()
    }
    pub fn add_task(&mut self, attr: &TaskAttr) -> TaskId {
        todo!()
    }
    pub fn entity(&self, task: TaskId) -> &Entity {
        &self.entities[task.index()]
    }
    pub fn rq(&self, cpu: CpuId) -> &CfsRq {
        &self.rqs[cpu.index()]
    }
    /// Running task of the CPU.
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        todo!()
    }
    /// Queued tasks in tree order, without the running one.
    pub fn queued(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        std::iter::empty()
    }
    /// Queued and running tasks from the least recently run to the most (`rq->cfs_tasks` from its tail).
    pub fn cfs_tasks(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        std::iter::empty()
    }
    /// Every function that returns [`Resched`] includes what accounting asked for since; after others (enqueue,
    /// dequeue, update_curr), read it here. Clears it.
    pub fn take_resched(&mut self, cpu: CpuId) -> Resched {
        todo!()
    }
    pub fn enqueue_task(&mut self, cpu: CpuId, task: TaskId, flags: Enqueue, now: Nanos) {
        todo!()
    }
    pub fn dequeue_task(&mut self, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool {
        todo!()
    }
    pub fn pick_next_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        todo!()
    }
    pub fn put_prev(&mut self, cpu: CpuId, now: Nanos) {
        todo!()
    }
    pub fn set_next(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        todo!()
    }
    pub fn task_tick(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        todo!()
    }
    pub fn wakeup_preempt(
        &mut self,
        cpu: CpuId,
        wakee: TaskId,
        flags: WakeFlags,
        need_resched: bool,
        now: Nanos,
    ) -> Resched {
        todo!()
    }
    pub fn yield_task(&mut self, cpu: CpuId, now: Nanos) {
        todo!()
    }
    pub fn yield_to(&mut self, cpu: CpuId, target: TaskId, now: Nanos) -> bool {
        todo!()
    }
    pub fn task_fork(&mut self, parent_cpu: CpuId, child: TaskId, now: Nanos) -> Resched {
        todo!()
    }
    pub fn migrate_task(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        todo!()
    }
    pub fn set_nice(&mut self, task: TaskId, nice: i8, now: Nanos) -> Resched {
        todo!()
    }
    pub fn set_policy(&mut self, task: TaskId, policy: FairPolicy, now: Nanos) -> Resched {
        todo!()
    }
    /// `sched_setattr(sched_runtime)`: `None` (0) goes back to the base slice.
    pub fn set_slice(&mut self, task: TaskId, slice: Option<Nanos>, now: Nanos) -> Resched {
        todo!()
    }
    pub fn update_curr(&mut self, cpu: CpuId, now: Nanos) {
        todo!()
    }
    /// Accounts exactly `ran` more nanoseconds to the running task.
    pub fn update_curr_by(&mut self, cpu: CpuId, ran: Nanos) {
        todo!()
    }
    pub fn sums(&self, cpu: CpuId) -> Sums {
        todo!()
    }
    pub fn recompute(&self, cpu: CpuId) -> Sums {
        todo!()
    }
    /// V, the weighted mean vruntime.
    pub fn avg_vruntime(&self, cpu: CpuId) -> Vruntime {
        todo!()
    }
    /// V - v of a queued task, the saved lag of another.
    pub fn lag(&self, task: TaskId) -> i64 {
        todo!()
    }
}
