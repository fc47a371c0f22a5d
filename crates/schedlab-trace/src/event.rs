//! The one event model: scheduler tracepoints as the kernel emits them, plus what programs and policy report.

use schedlab_model::{CpuId, KernelId, Nanos, Pid};

use crate::named::{Call, Extension, Lock, Section};

/// One event. Events of a trace are ordered by time; those of one instant by their position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, in ns.
    pub time: Nanos,
    /// Of which kernel. Traces of one kernel do not name it.
    pub kernel: KernelId,
    /// On which CPU it was emitted (as in ftrace: the CPU that executed the tracepoint).
    pub cpu: CpuId,
    /// What.
    pub kind: Kind,
}

impl Event {
    /// An event of the only kernel, or of the host's.
    #[inline]
    #[must_use]
    pub fn new(time: Nanos, cpu: CpuId, kind: Kind) -> Self {
        Event { time, kernel: KernelId::FIRST, cpu, kind }
    }
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
        /// What the functions of the search took of it.
        functions: ScanTimes,
    },
    /// Not a kernel tracepoint: a page fault of `pid` that mapped `kib` KiB.
    Fault {
        /// The task.
        pid: Pid,
        /// Size of the page.
        kib: u32,
        /// It waited for a device.
        major: bool,
    },
    /// Not a kernel tracepoint: `pid` is about to be switched out by a request to reschedule. It follows from other
    /// events, so it is not part of a digest.
    Resched {
        /// The task that ran.
        pid: Pid,
        /// Time since the request.
        waited: Nanos,
        /// What the task executed when it was requested.
        section: Section,
    },
    /// Not a kernel tracepoint: a section of kernel code begins in which `pid` cannot be preempted, the longest of its
    /// kind on its CPU for at most a second. It follows from the program and the costs, so it is not part of a digest.
    NonPreemptible {
        /// The task.
        pid: Pid,
        /// Its length, without interrupts that occur in it.
        time: Nanos,
        /// Why it cannot be preempted; [`Section::Kernel`]: it has no check point.
        section: Section,
        /// The call that it is part of, if that was measured.
        call: Option<Call>,
    },
    /// Not a kernel tracepoint: a time slice extension of `pid` began or ended.
    Extension {
        /// The task.
        pid: Pid,
        /// What happened.
        what: Extension,
    },
    /// Not a kernel tracepoint: since it was switched in, the task that leaves the CPU of the event has refilled the
    /// part of its working set that others had evicted.
    Refill {
        /// The task.
        pid: Pid,
        /// Data loaded into the nearest cache, in KiB.
        kib: u32,
        /// How much longer its work took for that.
        time: Nanos,
    },
    /// Not a kernel tracepoint: the running task has used its memory since the last such event, or since it was
    /// switched in.
    Numa {
        /// The task.
        pid: Pid,
        /// NUMA hinting faults.
        faults: u32,
        /// Those of them on pages of the node of the CPU.
        local: u32,
        /// Pages of 4 KiB that they moved to the node of the CPU.
        migrated: u32,
        /// How much longer its work took because pages were on another node.
        time: Nanos,
    },
    /// Not a kernel tracepoint: the CPU of the event waited `wait` ns for a lock that another one held.
    LockWait {
        /// The task that the CPU runs, 0 = idle.
        pid: Pid,
        /// Which lock.
        lock: Lock,
        /// How long.
        wait: Nanos,
    },
}

/// Times of the functions that search for an idle CPU, in ns; 0 where a function tested no CPU.
///
/// From 5.12 on `select_idle_cpu` calls `select_idle_core` once for each core; then `core` is the sum of these calls,
/// and is part of `cpu`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct ScanTimes {
    /// The search was made for a wakeup, by `select_idle_sibling`, which took all of the time charged; otherwise for a
    /// fork or an exec.
    pub sibling: bool,
    /// `select_idle_core`.
    pub core: u32,
    /// `select_idle_cpu`.
    pub cpu: u32,
    /// `select_idle_smt`.
    pub smt: u32,
}

/// `PID_MAX_LIMIT` of 64-bit kernels.
const PID_MAX: Pid = 1 << 22;

impl Kind {
    /// What makes the event impossible: a pid or a priority out of range, a run of more than 292 years.
    #[must_use]
    pub fn impossible(&self) -> Option<String> {
        let (pids, prios) = self.tasks();
        if let Some(pid) = pids.into_iter().find(|pid| !(0..=PID_MAX).contains(pid)) {
            return Some(format!("pid {pid} is not one of 0 to {PID_MAX}"));
        }
        // -1 is SCHED_DEADLINE's.
        if let Some(prio) = prios.into_iter().find(|prio| !(-1..=139).contains(prio)) {
            return Some(format!("priority {prio} is not one of -1 to 139"));
        }
        match self {
            Kind::Runtime { runtime, .. } if i64::try_from(*runtime).is_err() => {
                Some(format!("a run time of {runtime} ns is more than 63 bits hold"))
            }
            _ => None,
        }
    }

    /// The pids and the priorities it names; 0 stands for one it does not have.
    fn tasks(&self) -> ([Pid; 2], [i32; 2]) {
        match *self {
            Kind::Switch { prev, prev_prio, next, next_prio, .. } => ([prev, next], [prev_prio, next_prio]),
            Kind::Waking { pid, prio, .. }
            | Kind::Wakeup { pid, prio, .. }
            | Kind::WakeupNew { pid, prio, .. }
            | Kind::Migrate { pid, prio, .. }
            | Kind::Exit { pid, prio } => ([pid, 0], [prio, 0]),
            Kind::Fork { parent, child } => ([parent, child], [0, 0]),
            Kind::Runtime { pid, .. }
            | Kind::Sample { pid, .. }
            | Kind::Count { pid, .. }
            | Kind::Scan { pid, .. }
            | Kind::Fault { pid, .. }
            | Kind::Resched { pid, .. }
            | Kind::NonPreemptible { pid, .. }
            | Kind::Extension { pid, .. }
            | Kind::Refill { pid, .. }
            | Kind::Numa { pid, .. }
            | Kind::LockWait { pid, .. } => ([pid, 0], [0, 0]),
        }
    }
}
