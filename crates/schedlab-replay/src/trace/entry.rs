//! One record of a trace, reduced to what replay needs.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::fair::CpuAverages;
use schedlab_trace::{Body, Fields, Flags, Kind, Record, TaskState};

use super::bounds;
use super::call::Call;
use super::change::{target, SchedChange};
use super::pass::{averages, PassRecord};
use super::probe::{CfsRqLoad, Point, Probe};
use super::select::{SelectFlags, SelectProbe};
use super::shown::{OthersLoad, Start};

/// A record.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub time: Nanos,
    pub cpu: CpuId,
    /// The task that was running on the CPU.
    pub pid: Pid,
    pub flags: Flags,
    pub what: What,
    /// A `sched_switch` whose previous task was preempted in the kernel (`R+`), not on its way to user mode.
    pub preempts: bool,
    /// A `sched_wakeup` that the recording does not have: its flags are those of the record before.
    pub inferred: bool,
}

/// What the record says.
#[derive(Clone, Copy, Debug)]
pub enum What {
    Event(Kind),
    /// A dynamic probe read the scheduler's state of a task.
    Probe(Probe),
    /// The task enters `sched_yield`.
    Yield,
    /// The task enters `setsid`.
    Setsid,
    /// The task enters a system call that changes no attributes (`raw_syscalls`).
    EnterCall,
    /// The task returns from a system call.
    LeaveCall,
    /// A probe at `__cond_resched`, a check point of kernel code.
    ReschedPoint,
    /// The preemption check (`check_preempt_wakeup_fair`, `wakeup_preempt_fair`) returns.
    Checked,
    /// The hrtick timer fired.
    Hrtick,
    /// A simulated task is about to start.
    Start(Start),
    /// A task's scheduling attributes are about to change.
    Change(SchedChange),
    /// A system call that changes attributes names a task; another record may say what it requests.
    ChangeTarget(Pid),
    /// `clock_task` of a runqueue, read with its lock held: that of `cpu`, else that of the task's CPU. `move_task`:
    /// the task is enqueued again after a change that moves it (ENQUEUE_RESTORE | ENQUEUE_MOVE).
    Clock {
        cpu: Option<CpuId>,
        pid: Pid,
        move_task: Option<bool>,
        /// It was dequeued before and is enqueued again as it was (ENQUEUE_RESTORE), not moved.
        restored: bool,
        clock: Nanos,
    },
    /// `clock_task` of a runqueue, read with its lock held by code that acts on it next.
    RqClock {
        cpu: CpuId,
        clock: Nanos,
    },
    /// The kernel enters `select_task_rq_fair`.
    Select(SelectProbe),
    /// It returns from there.
    Selected {
        cpu: CpuId,
    },
    /// A record of a balancing pass.
    Pass(PassRecord),
    /// The averages of a CPU's own queue have changed.
    CpuAverages {
        cpu: CpuId,
        averages: CpuAverages,
        capacity: u64,
        /// Their `last_update_time`, where no probe shows each change but what a selection reads.
        until: Option<Nanos>,
        /// The record is one of those that show each change.
        updated: bool,
    },
    /// The running task enters `task_cache_work`.
    TaskCacheWork,
    /// The balancer updates the loads of a CPU, where the queue's lock is held by this clock of it.
    UpdateBlockedAverages {
        cpu: CpuId,
        clock: Option<Nanos>,
    },
    /// The load average of a group's `cfs_rq` on a CPU was updated to this time.
    CfsRqLoad {
        cpu: CpuId,
        at: Nanos,
        state: Option<CfsRqLoad>,
    },
    /// `calc_group_shares` computes the weight of a group on a CPU from these sums.
    SumsRead {
        cpu: CpuId,
        group: u64,
        others: OthersLoad,
    },
    /// `cpu_attach_domain`: a CPU gets its lowest scheduling domain, or has none any more.
    AttachDomain {
        cpu: CpuId,
        attached: bool,
    },
    /// `task_newtask`, which stands for a fork.
    NewTask {
        child: Pid,
    },
    /// Any other record: only its flags count.
    Other,
    /// The recorder lost events before this record.
    Lost,
}

impl Entry {
    /// The entries that a record stands for: one, or two for a probe at a switch. `selects`: the flags of the recorded
    /// kernel.
    pub fn of(record: &Record<'_>, selects: SelectFlags) -> [Option<Entry>; 2] {
        let Record { time, cpu, pid, flags, .. } = *record;
        let preempts = matches!(record.body, Body::Event(_, words) if words.prev_state.ends_with('+'));
        let entry = |what| Some(Entry { time, cpu, pid, flags, what, preempts, inferred: false });
        match record.body {
            // Reports of the program and the simulator, between the kernel's own events.
            Body::Event(
                Kind::Sample { .. }
                | Kind::Count { .. }
                | Kind::Scan { .. }
                | Kind::Fault { .. }
                | Kind::Resched { .. }
                | Kind::NonPreemptible { .. }
                | Kind::Extension { .. }
                | Kind::Refill { .. }
                | Kind::Numa { .. }
                | Kind::LockWait { .. },
                _,
            ) => [None, None],
            Body::Event(kind, words) => [entry(What::Event(plain_sleep(kind, words.prev_state))), None],
            Body::Lost(_) => [entry(What::Lost), None],
            Body::Other { name: "sw", fields } => {
                let prev = Probe::of_prev(fields).map_or(What::Other, What::Probe);
                let next = Probe::of(Point::Next, "n", fields).map(What::Probe);
                [entry(prev), next.and_then(entry)]
            }
            Body::Other { name, fields } => [
                entry(
                    new_task(name, fields).or_else(|| other(name, fields, record.pid, selects)).unwrap_or(What::Other),
                ),
                None,
            ],
        }
    }

    /// The event, if it is a scheduler event.
    pub fn kind(&self) -> Option<Kind> {
        match self.what {
            What::Event(kind) => Some(kind),
            _ => None,
        }
    }

    /// The largest CPU number that it names.
    pub fn largest_cpu(&self) -> CpuId {
        let named = match self.what {
            What::Event(
                Kind::Waking { target_cpu, .. } | Kind::Wakeup { target_cpu, .. } | Kind::WakeupNew { target_cpu, .. },
            ) => target_cpu,
            What::Event(Kind::Migrate { orig_cpu, dest_cpu, .. }) => orig_cpu.max(dest_cpu),
            _ => self.cpu,
        };
        named.max(self.cpu)
    }

    /// Whether it shows a task's vruntime.
    pub fn shows_state(&self) -> bool {
        matches!(self.what, What::Probe(_) | What::Event(Kind::Runtime { vruntime: Some(_), .. }))
    }

    /// Whether it only reads the scheduler's state in the middle of an operation that other records describe.
    pub fn is_inside(&self) -> bool {
        matches!(
            self.what,
            What::Probe(_)
                | What::Clock { .. }
                | What::RqClock { .. }
                | What::CfsRqLoad { .. }
                | What::UpdateBlockedAverages { .. }
                | What::Select(_)
                | What::Selected { .. }
                | What::Pass(_)
                | What::CpuAverages { .. }
                | What::SumsRead { .. }
                | What::AttachDomain { .. }
        )
    }

    /// Whether a charge begins with it.
    pub fn begins_charge(&self) -> bool {
        matches!(self.what, What::RqClock { .. })
    }

    /// Whether it is the entry of a system call or the return from one.
    pub fn is_system_call(&self) -> bool {
        matches!(self.what, What::EnterCall | What::LeaveCall)
    }

    /// Whether it was emitted in task context where preemption is enabled: entry of a call, return from one,
    /// `__cond_resched`.
    pub fn is_check_point(&self) -> bool {
        self.is_system_call() || matches!(self.what, What::ReschedPoint)
    }

    /// Whether need-resched was set on the CPU, lazy or not.
    pub fn flag(&self) -> bool {
        self.flags.need_resched() || self.flags.need_resched_lazy()
    }

    /// Whether it was emitted in a hardware interrupt.
    pub fn in_irq(&self) -> bool {
        matches!(self.flags.0[2], b'h' | b'H')
    }

    /// Whether it was emitted in a hardware interrupt that did not interrupt a softirq.
    pub fn interrupts_task(&self) -> bool {
        self.flags.0[2] == b'h'
    }

    /// Whether it was emitted in task context.
    pub fn in_task(&self) -> bool {
        self.flags.0[2] == b'.'
    }

    /// The preempt count, where the kernel keeps it.
    pub fn depth(&self) -> Option<u8> {
        self.flags.0[3].is_ascii_hexdigit().then_some(self.flags.0[3])
    }

    /// Scheduler events are emitted with interrupts off; one without any flag is from a trace without the column of
    /// flags.
    pub fn has_flags(&self) -> bool {
        self.flags != Flags::NONE || !matches!(self.what, What::Event(kind) if locked(&kind))
    }
}

/// A record that is no scheduler event.
fn other(name: &str, fields: Fields<'_>, caller: Pid, selects: SelectFlags) -> Option<What> {
    if let Some(call) = Call::of(name, fields) {
        return match call.name {
            "sched_yield" => Some(What::Yield),
            "setsid" => Some(What::Setsid),
            "sched_setattr" => Some(What::ChangeTarget(target(&call, "pid", caller))),
            _ => SchedChange::of_call(&call, caller).map(What::Change),
        };
    }
    match name {
        "sys_enter" => Some(What::EnterCall),
        "sys_exit" => Some(What::LeaveCall),
        "cr" => Some(What::ReschedPoint),
        "cw" => Some(What::TaskCacheWork),
        "cpr" => Some(What::Checked),
        "ht" => Some(What::Hrtick),
        "start" => start(fields).map(What::Start),
        "sa" => SchedChange::of_setscheduler_probe(fields).map(What::Change),
        "ni" => SchedChange::of_nice_probe(fields).map(What::Change),
        "mt" | "at" => clock(fields),
        "ck" => Some(What::RqClock { cpu: CpuId(fields.number("cpu")?), clock: bounds::time(fields, "c")? }),
        "st" => SelectProbe::of(fields, selects).map(What::Select),
        "str" => Some(What::Selected { cpu: CpuId(fields.number("to")?) }),
        "bg" | "bgr" | "cm" | "na" | "lbr" => PassRecord::of(name, fields, selects.are_of_before_5_8()).map(What::Pass),
        "ql" | "ue" | "qa" | "qb" => averages(fields).map(|(cpu, averages, capacity)| What::CpuAverages {
            cpu,
            averages,
            capacity,
            until: bounds::time(fields, "lt"),
            updated: name == "ql",
        }),
        // The root's queue, where one probe shows the queues of groups and of CPUs.
        "pc" if fields.number("up") == Some(0) => averages(fields).map(|(cpu, averages, capacity)| What::CpuAverages {
            cpu,
            averages,
            capacity,
            until: None,
            updated: true,
        }),
        "ba" => {
            Some(What::UpdateBlockedAverages { cpu: CpuId(fields.number("cpu")?), clock: bounds::time(fields, "c") })
        }
        "pc" => {
            let (cpu, at) = (CpuId(fields.number("cpu")?), bounds::time(fields, "lu")?);
            Some(What::CfsRqLoad { cpu, at, state: CfsRqLoad::of(fields) })
        }
        "cg" => sums_read(fields),
        "ad" => {
            Some(What::AttachDomain { cpu: CpuId(fields.number("cpu")?), attached: fields.number::<u64>("sd")? != 0 })
        }
        "wg" => Probe::of(Point::Waking, "", fields).map(What::Probe),
        "wk" | "wn" => Probe::of(Point::Woken, "", fields).map(What::Probe),
        "rt" => Probe::of(Point::Runtime, "", fields).map(What::Probe),
        "cp" => Probe::of(Point::Other, "", fields).map(What::Probe),
        _ => None,
    }
}

fn start(fields: Fields<'_>) -> Option<Start> {
    Some(Start {
        pid: fields.number("p")?,
        policy: fields.number("policy")?,
        nice: fields.number("nice")?,
        slice: fields.number("slice")?,
        latency_nice: fields.number("latency")?,
        group: fields.number("group")?,
    })
}

fn sums_read(fields: Fields<'_>) -> Option<What> {
    let sum = |name| bounds::load(fields, name).map(|load| load as i64);
    let others = OthersLoad { load: sum("ta")? - sum("lc")?, runnable: sum("tr")? - sum("rc")? };
    Some(What::SumsRead { cpu: CpuId(fields.number("cpu")?), group: fields.number("tg")?, others })
}

fn clock(fields: Fields<'_>) -> Option<What> {
    let cpu = fields.number("cpu").map(CpuId);
    let flags: Option<u32> = fields.number("fl");
    let move_task = flags.map(|flags| flags & RESTORE_MOVE == RESTORE_MOVE);
    let restored = flags.is_some_and(|flags| flags & RESTORE_MOVE == RESTORE);
    Some(What::Clock { cpu, pid: fields.number("p")?, clock: bounds::time(fields, "c")?, move_task, restored })
}

/// ENQUEUE_RESTORE.
const RESTORE: u32 = 0x2;
/// ENQUEUE_RESTORE and ENQUEUE_MOVE.
const RESTORE_MOVE: u32 = RESTORE | 0x4;

/// State `I` of an idle kthread is an ordinary sleep; the trace model's word for it also stands for parked tasks.
fn plain_sleep(kind: Kind, letters: &str) -> Kind {
    match kind {
        Kind::Switch { prev, prev_prio, next, next_prio, .. } if letters.starts_with('I') => {
            Kind::Switch { prev, prev_prio, prev_state: TaskState::Blocked, next, next_prio }
        }
        other => other,
    }
}

/// Whether the kernel emits an event with a runqueue's lock held.
fn locked(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Switch { .. } | Kind::Waking { .. } | Kind::Wakeup { .. } | Kind::WakeupNew { .. } | Kind::Runtime { .. }
    )
}

/// The child that `task_newtask` names.
fn new_task(name: &str, fields: Fields<'_>) -> Option<What> {
    (name == "task_newtask").then(|| fields.number("pid").map(|child| What::NewTask { child })).flatten()
}
