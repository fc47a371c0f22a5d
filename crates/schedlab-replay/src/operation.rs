//! What the kernel did, as the trace shows it. A model is given these records and nothing else.

use schedlab_model::{CpuId, CpuMask, Nanos, Pid};
use schedlab_policy::fair::{CpuAverages, ProcessShown};
use schedlab_policy::{CpuIdle, FairPolicy, WakeKind};

use crate::trace::{Address, CfsRqLoad, Marks, MarksAbove, OthersLoad, Probe, SelectState, Start, TaskAverages};

/// An operation with the record that it was read from: one step of a model.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    /// Time of the record, by the trace's clock.
    pub time: Nanos,
    /// The CPU that emitted it.
    pub cpu: CpuId,
    pub operation: Operation,
}

/// One operation on the runqueues, in the order of the kernel's locks.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// `update_rq_clock`: `clock_task` of a runqueue from here on.
    UpdateRqClock { cpu: CpuId, clock: Nanos },
    /// `sched_balance_update_blocked_averages`, at this time of the CPU's clock, or by the clock as it was read last.
    UpdateBlockedAverages { cpu: CpuId, at: Option<Nanos> },
    /// The load average of one group's `cfs_rq` was updated.
    UpdateCfsRqLoad(CfsRqUpdate),
    /// The load that a group's `cfs_rq` on a CPU has reported, and the group's sum, once the next operation is over.
    /// `task`: one of the group.
    UpdateTgLoad { cpu: CpuId, group: u64, task: Option<Pid>, load: TgLoad },
    /// A task is seen for the first time, or again after events were lost.
    AddTask(NewTask),
    /// `update_curr`.
    UpdateCurr(Charge),
    /// `sched_tick` or `hrtick`, after its charge.
    Tick { cpu: CpuId, flag: Flag, timer: Timer },
    /// `ttwu_do_activate`, `ttwu_runnable` or `wake_up_new_task`, with the preemption check.
    Wakeup(Wakeup),
    /// `set_task_cpu` of a waking task. `charged`: the running task of `from` was charged by then, but the record of it
    /// follows.
    SetTaskCpu { pid: Pid, from: CpuId, to: CpuId, charged: Nanos },
    /// `detach_task`.
    Detach { pid: Pid, from: CpuId, to: CpuId },
    /// `enqueue_task` within `attach_task`, by this time. Only the charge that follows shows whether the enqueue made
    /// it.
    EnqueueMoved { pid: Pid, cpu: CpuId },
    /// `attach_task`, with the preemption check.
    Attach { pid: Pid, cpu: CpuId, first: Option<First>, flag: Flag },
    /// `sched_fork` or `task_fork_fair`; `certain`: at this time.
    Fork { cpu: CpuId, parent: Pid, child: Pid, certain: bool },
    /// The same for a task that a simulated trace starts without a parent.
    Start { cpu: CpuId, start: Start },
    /// The running task is dequeued before its switch is recorded.
    Block { cpu: CpuId, special: bool },
    /// `schedule()` finds the queue empty and enters `sched_balance_newidle`.
    NewidleBalance { cpu: CpuId },
    /// `__schedule` up to the switch.
    Switch(Switch),
    /// `__schedule` picked the running task again; `certain`: from the queue as it is now.
    Repick { cpu: CpuId, certain: bool },
    /// `sched_move_task` on the running task.
    MoveTask { cpu: CpuId, pid: Pid, to: Group, flag: Flag },
    /// `sched_yield` of the running task.
    Yield { cpu: CpuId },
    /// `do_set_cpus_allowed`.
    SetAffinity { pid: Pid },
    /// A CPU is in no scheduling domain any more, because it goes offline, or in one again.
    SetCpuActive { cpu: CpuId, active: bool },
    /// `wait_task_inactive`: a task whose dequeue is delayed leaves its queue.
    FinishDelayed { pid: Pid },
    /// `__sched_setscheduler` among the fair policies.
    SetScheduler { pid: Pid, policy: FairPolicy, nice: i8, slice: Option<Nanos> },
    /// The same by system call `sched_setscheduler`, which keeps nice value and slice.
    SetPolicy { pid: Pid, policy: FairPolicy },
    /// `set_user_nice`. A SCHED_IDLE task keeps its weight.
    SetNice { pid: Pid, nice: i8 },
    /// A task's weight changed, as later records show.
    Reweight { pid: Pid, weight: Weight },
    /// `switched_from_fair`.
    SwitchedFrom { pid: Pid },
    /// `switched_to_fair`.
    SwitchedTo { pid: Pid, at: Location },
    /// A task is dead and off its CPU.
    Release { pid: Pid },
    /// The kernel's state of a task; at a charge, the state after it if `charged`.
    Probe { probe: Probe, charged: bool },
    /// What the charge before showed of the task's process.
    Process { pid: Pid, shown: ProcessShown },
    /// `task_cache_work` of the running task.
    TaskCacheWork { cpu: CpuId, pid: Pid },
    /// `select_task_rq_fair`, and the CPU that it returned.
    SelectTaskRq(Select),
    /// A task that is not running was forked when so many CPUs were online.
    ForkedWith { pid: Pid, cpus: usize },
    /// The CPUs that a task may use.
    CpusAllowed { pid: Pid, allowed: CpuMask },
    /// The averages of a task that waits on `src`, at which the pass that follows looks.
    TaskAverages { pid: Pid, src: CpuId, averages: TaskAverages },
    /// `can_migrate_task` in a pass.
    CanMigrateTask { pid: Pid },
    /// The marks of a CPU's own group and of the one behind it (see [`Pass::marks`]), at each level above the lowest.
    GroupMarks { cpu: CpuId, marks: MarksAbove },
    /// The averages of a CPU's own queue and the CPU's capacity: as they changed, or as they have been since `until`.
    CpuAverages { cpu: CpuId, averages: CpuAverages, capacity: u64, until: Option<Nanos>, followed: bool },
    /// `sched_balance_rq`, from where it looks for the busiest group, and what it pulled.
    SchedBalanceRq(Pass),
    /// Events were lost: the state of every queue is unknown.
    Lost,
}

/// See [`Operation::UpdateCfsRqLoad`].
#[derive(Clone, Copy, Debug)]
pub struct CfsRqUpdate {
    pub cpu: CpuId,
    pub at: Nanos,
    pub state: CfsRqLoad,
    /// It was updated in task context.
    pub in_task: bool,
}

/// See [`Operation::AddTask`].
#[derive(Clone, Copy, Debug)]
pub struct NewTask {
    pub pid: Pid,
    pub weight: Weight,
    pub at: Location,
    pub group: Option<Address>,
    pub first: Option<First>,
}

/// See [`Operation::UpdateCurr`].
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    pub cpu: CpuId,
    pub pid: Pid,
    /// The run time.
    pub ran: Nanos,
    /// vruntime as the record prints it (up to 6.7).
    pub printed: Option<u64>,
    pub caller: Caller,
    /// In a wakeup: time of its `sched_waking`.
    pub waking_at: Option<Nanos>,
}

/// See [`Operation::Wakeup`].
#[derive(Clone, Copy, Debug)]
pub struct Wakeup {
    pub cpu: CpuId,
    pub pid: Pid,
    /// `wake_up_new_task`.
    pub new: bool,
    /// Time of `sched_waking`.
    pub waking_at: Nanos,
    /// The next run time of the running task, an upper bound of what it can be charged here.
    pub next_charge: Nanos,
    /// The clock of the runqueue, where the trace is simulated.
    pub clock: Option<Nanos>,
    pub first: Option<First>,
    pub flag: Flag,
}

/// See [`Operation::Switch`].
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    pub cpu: CpuId,
    pub prev: Pid,
    pub prev_state: PrevState,
    pub next: Pid,
    /// The next task is in the fair class.
    pub next_is_fair: bool,
}

/// See [`Operation::SelectTaskRq`].
#[derive(Clone, Copy, Debug)]
pub struct Select {
    pub pid: Pid,
    /// The CPU that executes it.
    pub this: CpuId,
    pub prev: CpuId,
    /// Without the sync hint of a waker that exits.
    pub kind: WakeKind,
    /// The task that runs there is a kernel thread of that CPU.
    pub kthread: bool,
    /// That task makes the wakeup, not an interrupt.
    pub in_task: bool,
    /// The kernel's choice.
    pub chosen: CpuId,
    /// The tick count.
    pub jiffies: Option<u64>,
    /// What a probe reads with it.
    pub state: Option<SelectState>,
    /// The task's affinity has been set, to a mask that no record shows.
    pub affinity_set: bool,
    /// The CPUs that were idle when it began.
    pub idle: CpuMask,
    /// Those that became idle or busy until it returned, or shortly before it began: which it saw is not known.
    pub changing: CpuMask,
    /// Those that run a task of another class.
    pub others: CpuMask,
    /// Those on which a task of another class waits.
    pub others_wait: CpuMask,
}

/// See [`Operation::SchedBalanceRq`].
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The CPU that pulls.
    pub this: CpuId,
    pub idle: CpuIdle,
    /// Of its domain, which these two identify.
    pub imbalance_pct: u32,
    pub weight: Option<u32>,
    /// `nr_balance_failed`.
    pub failed: u32,
    /// The CPUs that are considered.
    pub considered: CpuMask,
    /// The CPUs that were idle.
    pub idle_cpus: CpuMask,
    /// Those that run a task of another class.
    pub others: CpuMask,
    /// Those on which a task of another class waits.
    pub others_wait: CpuMask,
    /// The kernel found a busiest group.
    pub found: bool,
    /// The CPU that the kernel pulled from, or tried to.
    pub src: Option<CpuId>,
    /// What it moved.
    pub moved: Tasks,
    /// It compared loads of tasks.
    pub loads: bool,
    /// Whether the CPU's own group and the one behind it are marked as not balanced because of affinity.
    pub marks: Marks,
    /// When it took the lock of that CPU's queue, by the trace's clock.
    pub locked_at: Nanos,
    /// `clock_task` of that queue then, if a record shows it.
    pub src_clock: Option<Nanos>,
    /// Tasks of the CPUs that are considered were queued, switched or moved while it went on.
    pub overlapped: bool,
    /// The tick count.
    pub jiffies: Option<u64>,
    /// `cpu_capacity` of the pulling CPU as later records show it: in its lowest domain the pass computes it anew.
    pub capacity: Option<u64>,
}

/// The tasks of a pass: at most `sysctl_sched_nr_migrate`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tasks {
    pids: [Pid; 32],
    len: usize,
}

impl Tasks {
    /// One more; beyond the limit it is forgotten.
    pub fn add(&mut self, pid: Pid) {
        if let Some(place) = self.pids.get_mut(self.len) {
            *place = pid;
            self.len += 1;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Pid> + '_ {
        self.pids[..self.len].iter().copied()
    }
}

/// Where a task is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    Running(CpuId),
    Queued(CpuId),
    Asleep(CpuId),
}

/// A task's state where the trace shows it first.
#[expect(clippy::large_enum_variant, reason = "read once for each task and handed on at once")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    /// vruntime as printed after a charge of `ran` ns.
    Printed { vruntime: u64, ran: Nanos },
    /// A probe, after a charge of `ran` ns.
    Probed { probe: Probe, ran: Nanos },
    /// The trace shows no task's state.
    Unknown,
}

/// The group that a task is moved to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Its own: the kernel is built with autogroups and does not use them.
    Same,
    /// The root group: an exiting task leaves its autogroup.
    Root,
    /// A new one, its session's.
    New,
}

/// Which timer interrupt it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    Tick,
    Hrtick,
    /// No record distinguishes the two.
    Either,
}

/// What called `update_curr`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// The wakeup of this task; its preemption check follows.
    Wakeup(Pid),
    /// The tick; its check follows.
    Tick,
    /// `schedule()`, or a change with a check of its own.
    NoCheck,
    /// Anything else.
    Other(Flag),
}

/// Need-resched of a CPU around a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flag {
    /// It was set before, lazy or not: no record can show what a check decides.
    pub before: bool,
    /// TIF_NEED_RESCHED was set before: the kernel does not check at all.
    pub before_full: bool,
    /// It was set after; `None`: no record shows it.
    pub after: Option<bool>,
    /// What may have set it, if the record that shows it has it set.
    pub cause: Cause,
}

impl Flag {
    /// Whether it is set and may be due to something else than the decision.
    pub fn is_shared(self) -> bool {
        self.after == Some(true) && self.cause != Cause::Own
    }
}

/// What may have set need-resched between a decision and the record that shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// The decision alone.
    Own,
    /// It, or a later decision for the same CPU: the last of them is judged by the flag, and so is this one if no other
    /// is.
    Later,
    /// It, or something that no model decides, such as the wakeup of a real-time task.
    Other,
}

/// How a task left its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrevState {
    Runnable,
    Asleep,
    /// Dead, parked or stopped (`DEQUEUE_SPECIAL`): the dequeue is never delayed.
    Special,
}

/// A task's weight by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    Nice(i8),
    /// SCHED_IDLE.
    Idle,
}

/// Load of a group as the next probes show it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TgLoad {
    /// `tg_load_avg_contrib` of its queue on a CPU.
    pub contrib: Option<u64>,
    /// `tg->load_avg`.
    pub load_avg: Option<i64>,
    /// The load of that queue and the weight of its entity.
    pub weight: Option<QueueWeight>,
    /// The same, if a probe of this operation shows it.
    pub own_weight: Option<QueueWeight>,
    /// What the weight of this operation was computed from, if a probe shows that.
    pub others: Option<OthersLoad>,
}

/// The load average of a group's queue, and the weight that `calc_group_shares` made of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueWeight {
    pub load: u64,
    pub weight: u64,
    /// The sum of the weights of the entities that wait on that queue.
    pub waiting: Option<u64>,
    /// At a switch, the task that is switched to: it does not wait any more.
    pub next: Option<Pid>,
}
