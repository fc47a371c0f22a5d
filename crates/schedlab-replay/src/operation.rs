//! What the kernel did, as a trace shows it: the words between reading a trace and asking a model.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::FairPolicy;

use crate::step::{Address, AgedState, Probe};

/// One operation on the runqueues, in the order of the kernel's locks.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// `update_rq_clock`: the clock of a CPU's runqueue (`clock_task`), for what follows.
    Clock { cpu: CpuId, clock: Nanos },
    /// `update_blocked_averages`: the balancer looks at a CPU's loads, at this time of its clock.
    Age { cpu: CpuId, at: Nanos },
    /// The load of one group's queue was brought up to date, as this shows it; `tells`: by the balancer, perhaps, which tells
    /// the group; `in_task`: unless it is the running task's.
    AgeOne { cpu: CpuId, at: Nanos, state: AgedState, tells: bool, in_task: bool },
    /// What a group's queue on a CPU has told the group, and what the group knows, once the operation that comes next is over.
    Told { cpu: CpuId, group: u64, told: Told },
    /// A task seen for the first time, or again after it was lost.
    Introduce { pid: Pid, weight: Weight, at: Whereabouts, group: Option<Address>, first: Option<First> },
    /// `update_curr`: `ran` ns were charged to the current task of `cpu`; `asked`: within a wakeup, when that began.
    Account { cpu: CpuId, pid: Pid, ran: Nanos, printed: Option<u64>, within: Within, asked: Option<Nanos> },
    /// The scheduler tick, after its accounting, or the timer of a slice (HRTICK), which always reschedules.
    Tick { cpu: CpuId, flag: Flag, timer: Timer },
    /// A wakeup put a task on a queue (or found it there) and asked whether it preempts.
    /// `asked`: when `sched_waking` said so; `left`: what the running task is charged next, at most.
    Wake { cpu: CpuId, pid: Pid, new: bool, asked: Nanos, left: Nanos, first: Option<First>, flag: Flag },
    /// A task that is on no queue changes CPU. `charged`: so much the running task of `from` was charged by then, of which the
    /// record is yet to come.
    Rehome { pid: Pid, from: CpuId, to: CpuId, charged: Nanos },
    /// The balancer takes a queued task away.
    Detach { pid: Pid, from: CpuId, to: CpuId },
    /// The balancer brings it.
    Attach { pid: Pid, cpu: CpuId, flag: Flag },
    /// A child is placed on the forking CPU; `sure`: at this time.
    Fork { cpu: CpuId, parent: Pid, child: Pid, sure: bool },
    /// The current task leaves the queue, some time before its switch is recorded.
    Block { cpu: CpuId, special: bool },
    /// `schedule()` had nobody left to run, and looks for tasks on other CPUs.
    RunDry { cpu: CpuId },
    /// A context switch.
    Switch { cpu: CpuId, prev: Pid, left: Left, next: Pid, fair: bool },
    /// `schedule()` chose the running task again; `sure`: from the queue as it stands.
    Repick { cpu: CpuId, sure: bool },
    /// `sched_move_task` on the running task.
    Regroup { cpu: CpuId, pid: Pid, to: Group, flag: Flag },
    /// `sched_yield` by the running task.
    Yield { cpu: CpuId },
    /// `do_set_cpus_allowed`.
    SetAffinity { pid: Pid },
    /// `__sched_setscheduler` among the fair policies.
    SetScheduler { pid: Pid, policy: FairPolicy, nice: i8, slice: Option<Nanos> },
    /// The same by `sched_setscheduler`, which keeps nice value and slice.
    SetPolicy { pid: Pid, policy: FairPolicy },
    /// `set_user_nice`; a SCHED_IDLE task weighs what it did.
    SetNice { pid: Pid, nice: i8 },
    /// A new weight: nice value, or SCHED_IDLE.
    Reweight { pid: Pid, weight: Weight },
    /// A task leaves the fair class (`__sched_setscheduler`, a priority boost).
    Leave { pid: Pid },
    /// It comes back.
    Return { pid: Pid, at: Whereabouts },
    /// A task is gone.
    Forget { pid: Pid },
    /// The kernel shows a task's state; at an accounting, as it is afterwards if `charged`.
    Show { probe: Probe, charged: bool },
    /// Events are missing: nothing is certain any more.
    Lost,
}

/// Where a task is when it is first seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whereabouts {
    Running(CpuId),
    Queued(CpuId),
    Asleep(CpuId),
}

/// A task's state as the trace shows it for the first time; taken over once, never again.
#[expect(clippy::large_enum_variant, reason = "read once for each task and handed on at once")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    /// vruntime as printed after `ran` ns more.
    Printed { vruntime: u64, ran: Nanos },
    /// A probe, `ran` ns later.
    Probed { probe: Probe, ran: Nanos },
    /// Nothing: the trace shows no task's state, and every task is taken for one without lag.
    Guessed,
}

/// The group that a task is moved to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// The one it is in: the kernel could have groups per session, and does not use them.
    Same,
    /// The root's: an exiting task leaves its session's.
    Root,
    /// A new one: its own session's.
    New,
}

/// Which timer fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    Tick,
    Hrtick,
    /// One of them: no record tells.
    Either,
}

/// What an accounting belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Within {
    /// The wakeup of this task, which follows and decides.
    Wakeup(Pid),
    /// The tick that follows and decides.
    Tick,
    /// `schedule()`, or a change that decides by itself.
    Undecided,
    /// Anything else.
    Other(Flag),
}

/// The need-resched flag of a CPU around a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flag {
    /// It was set before: the kernel does not ask again.
    pub before: bool,
    /// It was set after; `None`: the trace does not show it.
    pub after: Option<bool>,
    /// Another decision for the CPU falls before the record that shows the flag: set, it may be due to either.
    pub shared: bool,
}

/// How a task left the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// Runnable.
    Runnable,
    /// Asleep.
    Asleep,
    /// Dead, parked or stopped: never delayed.
    Special,
}

/// A task's weight by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// A nice value.
    Nice(i8),
    /// SCHED_IDLE.
    Idle,
}

/// What the next probes show of a group.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Told {
    /// What its queue on a CPU told it (`tg_load_avg_contrib`).
    pub told: Option<u64>,
    /// `tg->load_avg`.
    pub all: Option<i64>,
    /// The load of the queue, and what the group weighs there.
    pub weighs: Option<(u64, u64)>,
}
