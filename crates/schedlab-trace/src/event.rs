//! The one event model: scheduler tracepoints as the kernel emits them, plus what programs and policy report.

use schedlab_model::{CpuId, Nanos, Pid};

/// One event. Events of a trace are ordered by time; those of one instant by their position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, in ns.
    pub time: Nanos,
    /// On which CPU it was emitted (as in ftrace: the CPU that executed the tracepoint).
    pub cpu: CpuId,
    /// What.
    pub kind: Kind,
}

/// State of a task that leaves the CPU, as `sched_switch` prints `prev_state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskState {
    /// Still runnable: preempted (`R`, `R+`).
    Running = 0,
    /// Interruptible sleep (`S`).
    Sleeping = 1,
    /// Uninterruptible sleep (`D`).
    Blocked = 2,
    /// Dead (`X`, `Z`).
    Dead = 3,
    /// Stopped or traced (`T`, `t`).
    Stopped = 4,
    /// Parked or idle kthread (`P`, `I`).
    Parked = 5,
}

/// What happened. Names and fields are those of include/trace/events/sched.h unless marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The CPU of the event switches from `prev` to `next`; pid 0 is idle. `prio` is the kernel's 0..139.
    Switch {
        /// Task that leaves.
        prev: Pid,
        /// Its priority.
        prev_prio: i32,
        /// Its state.
        prev_state: TaskState,
        /// Task that enters.
        next: Pid,
        /// Its priority.
        next_prio: i32,
    },
    /// A wakeup starts (`sched_waking`), emitted on the waker's CPU. `target_cpu` is where `pid` LAST ran.
    Waking {
        /// The wakee.
        pid: Pid,
        /// Its priority.
        prio: i32,
        /// Its last CPU.
        target_cpu: CpuId,
    },
    /// The wakee is on a runqueue (`sched_wakeup`). `target_cpu` is the placement.
    Wakeup {
        /// The wakee.
        pid: Pid,
        /// Its priority.
        prio: i32,
        /// The CPU chosen.
        target_cpu: CpuId,
    },
    /// First wakeup of a new task (`sched_wakeup_new`).
    WakeupNew {
        /// The new task.
        pid: Pid,
        /// Its priority.
        prio: i32,
        /// The CPU chosen.
        target_cpu: CpuId,
    },
    /// A task changes CPU (`sched_migrate_task`).
    Migrate {
        /// The task.
        pid: Pid,
        /// Its priority.
        prio: i32,
        /// From.
        orig_cpu: CpuId,
        /// To.
        dest_cpu: CpuId,
    },
    /// `sched_process_fork`.
    Fork {
        /// The parent.
        parent: Pid,
        /// The child.
        child: Pid,
    },
    /// `sched_process_exit`.
    Exit {
        /// The task.
        pid: Pid,
        /// Its priority.
        prio: i32,
    },
    /// `sched_stat_runtime`: `runtime` ns were accounted to `pid` since its previous one.
    Runtime {
        /// The task.
        pid: Pid,
        /// Accounted ns.
        runtime: Nanos,
        /// vruntime after it, where the kernel prints it (up to 6.7) and always in simulation.
        vruntime: Option<u64>,
    },
    /// Not a kernel tracepoint: a program sampled `value` for metric `metric` (unit: the metric's).
    Sample {
        /// The program's task.
        pid: Pid,
        /// Index into the run's metric table.
        metric: u16,
        /// The value.
        value: u64,
    },
    /// Not a kernel tracepoint: a program completed `count` operations of metric `metric`.
    Count {
        /// The program's task.
        pid: Pid,
        /// Index into the run's metric table.
        metric: u16,
        /// How many.
        count: u64,
    },
    /// Not a kernel tracepoint: a search for an idle CPU tested `tested` CPUs for `pid` and took `cost` ns.
    Scan {
        /// The wakee.
        pid: Pid,
        /// CPUs tested.
        tested: u32,
        /// Time charged.
        cost: Nanos,
    },
}
