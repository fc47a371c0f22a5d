//! The effects that a procedure passes to its driver.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::Wakeup;
use crate::hrtick::Hrtick;
use crate::Resched;

/// What a procedure passes to its driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The tracepoint `sched_waking`; `cpu` is the task's last CPU. It is TASK_WAKING now.
    Waking {
        /// The task.
        task: TaskId,
        /// Its last CPU.
        cpu: CpuId,
    },
    /// The task is still running on `cpu` (`smp_cond_load_acquire(&p->on_cpu, !VAL)`), and `try_to_wake_up` has
    /// returned: [`wake_off_cpu`](super::wake_off_cpu) is to be called once the CPU has switched away from it.
    WaitOnCpu {
        /// The wakeup.
        wakeup: Wakeup,
        /// The CPU that the task is leaving.
        cpu: CpuId,
    },
    /// The tracepoint `sched_migrate_task`.
    Migrate {
        /// The task.
        task: TaskId,
        /// Its CPU so far.
        from: CpuId,
        /// Its CPU now.
        to: CpuId,
    },
    /// The task is on the CPU's wakelist (`__ttwu_queue_wakelist`); `first`: an IPI has to be sent, and the CPU then
    /// runs [`sched_ttwu_pending`](super::sched_ttwu_pending).
    WakelistQueued {
        /// The task.
        task: TaskId,
        /// The CPU that will enqueue it.
        cpu: CpuId,
        /// The list was empty.
        first: bool,
    },
    /// The tracepoint `sched_wakeup`, or `sched_wakeup_new`.
    Wakeup {
        /// The task.
        task: TaskId,
        /// Its CPU.
        cpu: CpuId,
        /// Its first wakeup.
        new: bool,
    },
    /// `wakeup_preempt` has been called: `resched_curr` of the CPU if it returned a request. The queue of the CPU has
    /// changed.
    Preempt {
        /// The CPU.
        cpu: CpuId,
        /// The request.
        resched: Resched,
    },
    /// `resched_curr`.
    Resched {
        /// The CPU.
        cpu: CpuId,
        /// The request.
        resched: Resched,
    },
    /// A timer is to be programmed.
    Program(Timer),
    /// `context_switch`; `None` is the idle task. From here on the CPU does not run `prev`: wakeups that wait for that
    /// are to be resumed.
    Switch {
        /// What ran.
        prev: Option<TaskId>,
        /// What runs.
        next: Option<TaskId>,
    },
    /// `__schedule` has picked what ran before.
    Repicked {
        /// What runs; `None`: the idle task.
        next: Option<TaskId>,
    },
}

/// A timer of the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// `hrtick_start`: the end of the running task's slice; `update`: after a wakeup, where a slice that is over
    /// reschedules.
    Hrtick {
        /// The CPU.
        cpu: CpuId,
        /// When.
        hrtick: Hrtick,
        /// After a wakeup, not after a pick.
        update: bool,
    },
    /// The next one of the classes ([`Sched::timer_expired`](crate::Sched::timer_expired)); `None`: none is needed.
    Classes(Option<Nanos>),
}
