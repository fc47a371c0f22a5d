//! Why an entity is enqueued, dequeued or woken (`ENQUEUE_*`, `DEQUEUE_*`, `WF_*`, kernel/sched/sched.h).

/// Why an entity is enqueued (`ENQUEUE_*`). Without any flag it is requeued; with `migrated` alone the balancer moves
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Enqueue {
    /// ENQUEUE_WAKEUP.
    pub wakeup: bool,
    /// ENQUEUE_MIGRATED: the entity comes from another CPU's queue.
    pub migrated: bool,
    /// ENQUEUE_INITIAL: the first enqueue after fork.
    pub initial: bool,
    /// ENQUEUE_DELAYED: the entity is woken while its dequeue is delayed; it must be queued.
    pub delayed: bool,
}

impl Enqueue {
    /// A plain wakeup on the CPU where the entity slept.
    pub(crate) const WAKEUP: Enqueue = Enqueue { wakeup: true, migrated: false, initial: false, delayed: false };
}

/// Why an entity is dequeued (`DEQUEUE_*`). Without any flag the task moves to another group.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dequeue {
    /// DEQUEUE_SLEEP.
    pub sleep: bool,
    /// DEQUEUE_SPECIAL: a dead, parked or frozen task, whose dequeue is never delayed.
    pub special: bool,
    /// DEQUEUE_THROTTLE: the task's group has no runtime left. Neither the task nor a group that it leaves empty is
    /// delayed.
    pub throttle: bool,
    /// DEQUEUE_DELAYED: the end of a delayed dequeue.
    pub delayed: bool,
    /// DEQUEUE_SAVE without DEQUEUE_MOVE: the entity comes back unchanged, so the queue's minimum stays.
    pub save: bool,
    /// TASK_ON_RQ_MIGRATING: the balancer moves the task to another CPU, and its load average moves with it.
    pub migrating: bool,
}

impl Dequeue {
    /// The end of a delayed dequeue.
    pub(crate) const DELAYED: Dequeue =
        Dequeue { sleep: true, special: false, throttle: false, delayed: true, save: false, migrating: false };
}

/// What is known about a wakeup (`WF_*`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WakeFlags {
    /// WF_SYNC: the waker is about to sleep.
    pub sync: bool,
    /// WF_FORK: a new task.
    pub fork: bool,
}
