//! What a procedure asks of the world.

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::fair::Hrtick;
use crate::{Resched, Selection};

/// What a procedure asks of the world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The tracepoint `sched_waking`; `cpu` is the task's last CPU. It is TASK_WAKING now.
    Waking {
        /// The task.
        task: TaskId,
        /// Its last CPU.
        cpu: CpuId,
    },
    /// The task is still running on `cpu` (`smp_cond_load_acquire(&p->on_cpu, !VAL)`): to be resumed once it is not.
    WaitOnCpu {
        /// The task.
        task: TaskId,
        /// Where it is leaving.
        cpu: CpuId,
    },
    /// `select_task_rq` has chosen a CPU; the cost of its search is the waker's.
    Selected {
        /// The task.
        task: TaskId,
        /// The CPU chosen, and how many the search has tested.
        selection: Selection,
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
    /// The task is on the CPU's wakelist (`__ttwu_queue_wakelist`); `first`: an IPI has to be sent, and the CPU then runs
    /// [`SchedTtwuPending`](super::SchedTtwuPending).
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
    /// `wakeup_preempt` has been called: `resched_curr` of the CPU if it asks for a reschedule. The queue of the CPU has changed.
    Preempt {
        /// The CPU.
        cpu: CpuId,
        /// What it asks for.
        resched: Resched,
    },
    /// `resched_curr`.
    Resched {
        /// The CPU.
        cpu: CpuId,
        /// What is asked for.
        resched: Resched,
    },
    /// A timer is to be programmed.
    Program(Timer),
    /// Balancing has looked at CPUs and may have moved tasks ([`Sched::take_moves`](crate::Sched::take_moves)): their
    /// tracepoints, the reschedules it asks for, its cost.
    Balanced,
    /// `context_switch`; `None` is the idle task. From here on the CPU does not run `prev`: procedures that wait for that are
    /// to be resumed.
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
    /// The procedure has ended.
    Done,
}

/// A timer of the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// `hrtick_start`: the end of the running task's slice; `update`: after a wakeup, where a slice that is over reschedules.
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
