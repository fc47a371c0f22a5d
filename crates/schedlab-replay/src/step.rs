//! One record of a trace, owned and reduced to what replay needs.

use schedlab_model::{CpuId, Nanos, Pid};
use schedlab_policy::fair::LoadState;
use schedlab_trace::{Body, Fields, Flags, Kind, Record, TaskState};

/// A record.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub time: Nanos,
    pub cpu: CpuId,
    /// The task that ran there.
    pub pid: Pid,
    pub flags: Flags,
    pub what: What,
}

/// What it says.
#[expect(clippy::large_enum_variant, reason = "one step at a time is read and followed")]
#[derive(Clone, Copy, Debug)]
pub enum What {
    Event(Kind),
    /// The scheduler's own state of a task, read by a dynamic probe.
    Probe(Probe),
    /// The task enters `sched_yield`.
    Yield,
    /// The task enters `setsid`.
    Session,
    /// The timer of a slice fired.
    Hrtick,
    /// The kernel is about to change a task's scheduling.
    Set(Set),
    /// A system call that does so names a task; what it asks for, another record may tell.
    Names(Pid),
    /// A runqueue's clock (`clock_task`), read where its lock is held: of this CPU, else of the task's. `regroups`: where a
    /// task comes back to its queue from a change that moves it (ENQUEUE_RESTORE, ENQUEUE_MOVE).
    Clock {
        cpu: Option<CpuId>,
        pid: Pid,
        regroups: Option<bool>,
        clock: Nanos,
    },
    /// The balancer begins to bring the loads of a CPU's queues up to now.
    AgesAll {
        cpu: CpuId,
    },
    /// The load of a group's queue on a CPU was brought up to this time.
    Aged {
        cpu: CpuId,
        at: Nanos,
        state: Option<AgedState>,
    },
    /// Anything else: only its flags count.
    Other,
    /// The recorder lost events before this.
    Lost,
}

/// A change of a task's scheduling, as a probe or a system call says before it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Set {
    /// `__sched_setscheduler`: policy as user space numbers it; a slice of 0 is none. `pid` may be [`UNNAMED`].
    Scheduler { pid: Pid, policy: u32, nice: i8, slice: Nanos },
    /// `sched_setscheduler`, which keeps nice value and slice; perhaps not permitted.
    Policy { pid: Pid, policy: u32 },
    /// `set_user_nice`.
    Nice { pid: Pid, nice: i8 },
    /// `setpriority` of one process, perhaps not permitted.
    Priority { pid: Pid, nice: i8 },
    /// `sched_setaffinity`, perhaps to the CPUs it has.
    Affinity { pid: Pid },
}

impl Set {
    pub fn whose(self) -> Pid {
        match self {
            Set::Scheduler { pid, .. } | Set::Policy { pid, .. } | Set::Affinity { pid } => pid,
            Set::Nice { pid, .. } | Set::Priority { pid, .. } => pid,
        }
    }

    /// Whether it is a system call as it was entered, not the kernel's own step to carry it out.
    pub fn may_change_nothing(self) -> bool {
        matches!(self, Set::Affinity { .. } | Set::Policy { .. } | Set::Priority { .. })
    }
}

/// Where in the kernel a probe sits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// At `sched_waking`, before the wakee is placed.
    Waking,
    /// At `sched_wakeup` or `sched_wakeup_new`, after it was placed.
    Woken,
    /// At `sched_stat_runtime`: up to 6.12 after vruntime has grown, in 7.2 before.
    Runtime,
    /// At `sched_switch`, the task that enters.
    Next,
    /// There, the task that leaves.
    Prev,
    /// Elsewhere.
    Other,
}

/// A task's entity as a probe read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    pub point: Point,
    pub pid: Pid,
    pub vruntime: u64,
    pub deadline: u64,
    pub lag: i64,
    pub slice: Nanos,
    pub queued: bool,
    pub delayed: bool,
    /// Its queue.
    pub sums: Option<Sums>,
    /// `clock_task` of its runqueue, whose lock was held.
    pub clock: Option<Nanos>,
    /// Its group, unless it is the root's.
    pub group: Option<InGroup>,
    pub address: Option<Address>,
    /// Its load average.
    pub load: Option<LoadState>,
    /// Its queue's.
    pub queue_load: Option<QueueLoad>,
}

/// A queue's load as a probe read it where it was brought up to date, before its group was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgedState {
    pub group: Address,
    pub queue: QueueLoad,
    /// What the group was told of it last (`tg_load_avg_contrib`).
    pub told: u64,
    /// `tg->load_avg`.
    pub all: i64,
    /// `clock_task` of the queue's CPU.
    pub clock: Nanos,
}

/// Which group a task is in: no other is at this address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address {
    pub at: u64,
    pub is_root: bool,
}

/// What a probe read of the load average of a task's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLoad {
    pub load: LoadState,
    /// When the group was told of it (`last_update_tg_load_avg`), by the clock that the queue is charged by.
    pub told_at: Nanos,
}

/// What a probe read of a task's group on its CPU: the group's entity, and the queue above that this is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InGroup {
    pub vruntime: u64,
    pub deadline: u64,
    pub lag: i64,
    pub slice: Nanos,
    /// Up to when it was charged.
    pub exec_start: Option<Nanos>,
    /// The entity's weight.
    pub weight: u64,
    /// The queue it is on.
    pub sums: Option<Sums>,
    /// `avg.load_avg` of the group's own queue.
    pub load: u64,
    /// What of it the group was told (`tg_load_avg_contrib`).
    pub told: u64,
    /// `tg->load_avg`.
    pub all: i64,
}

/// A queue's sums as a probe read them: without the running entity, but for the count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sums {
    /// `zero_vruntime`, up to 6.18 `min_vruntime`.
    pub zero: u64,
    /// `sum_w_vruntime`, up to 6.18 `avg_vruntime`.
    pub sum: i64,
    /// `sum_weight`, up to 6.18 `avg_load`.
    pub weight: u64,
    /// `nr_queued`, up to 6.12 `nr_running`.
    pub count: u32,
}

impl Step {
    /// The steps a record stands for: one, or two for a probe at a switch.
    pub fn of(record: &Record<'_>) -> [Option<Step>; 2] {
        let step = |what| Some(Step { time: record.time, cpu: record.cpu, pid: record.pid, flags: record.flags, what });
        match record.body {
            Body::Event(kind, words) => [step(What::Event(plain_sleep(kind, words.prev_state))), None],
            Body::Other { name: "sw", fields } => {
                let next = probe(Point::Next, "n", fields).map(What::Probe);
                let prev = probe(Point::Prev, "p", fields).map(|probe| Probe {
                    sums: None,
                    group: None,
                    address: None,
                    load: None,
                    queue_load: None,
                    ..probe
                });
                let prev = prev.map(What::Probe);
                [step(prev.unwrap_or(What::Other)), next.and_then(step)]
            }
            Body::Other { name: "ht", .. } => [step(What::Hrtick), None],
            Body::Other { name: "", fields } if fields.0.starts_with("sys_sched_yield(") => [step(What::Yield), None],
            Body::Other { name: "", fields } if fields.0.starts_with("sys_setsid(") => [step(What::Session), None],
            // A system call's first argument is read as its name's end.
            Body::Other { name: "sys_sched_setaffinity(pid", fields } => {
                let named = argument(fields.0).filter(|pid| *pid > 0);
                [step(What::Set(Set::Affinity { pid: named.unwrap_or(record.pid) })), None]
            }
            Body::Other { name: "sys_sched_setscheduler(pid", fields } => {
                let named = argument(fields.0).filter(|pid| *pid > 0);
                let policy = fields.0.split_once("policy: ").and_then(|(_, rest)| argument(rest));
                let set = |policy| Set::Policy { pid: named.unwrap_or(record.pid), policy };
                [step(policy.map_or(What::Other, |policy| What::Set(set(policy as u32)))), None]
            }
            Body::Other { name: "sys_sched_setattr(pid", fields } => {
                let named = argument(fields.0).filter(|pid| *pid > 0);
                [step(What::Names(named.unwrap_or(record.pid))), None]
            }
            Body::Other { name: "sys_setpriority(which", fields } => {
                [step(priority(fields.0, record.pid).map_or(What::Other, What::Set)), None]
            }
            Body::Other { name: "mt" | "at", fields } => [step(clock(fields).unwrap_or(What::Other)), None],
            Body::Other { name: "ba", fields } => {
                [step(fields.number("cpu").map_or(What::Other, |cpu| What::AgesAll { cpu: CpuId(cpu) })), None]
            }
            Body::Other { name: "pc", fields } => {
                let aged = fields.number("cpu").zip(fields.number("lu"));
                [
                    step(aged.map_or(What::Other, |(cpu, at)| What::Aged {
                        cpu: CpuId(cpu),
                        at,
                        state: aged_state(fields),
                    })),
                    None,
                ]
            }
            Body::Other { name: name @ ("sa" | "ni"), fields } => {
                [step(set(name == "sa", fields).map_or(What::Other, What::Set)), None]
            }
            Body::Other { name, fields } => {
                let point = match name {
                    "wg" => Some(Point::Waking),
                    "wk" | "wn" => Some(Point::Woken),
                    "rt" => Some(Point::Runtime),
                    "cp" => Some(Point::Other),
                    _ => None,
                };
                let probe = point.and_then(|point| probe(point, "", fields));
                [step(probe.map_or(What::Other, What::Probe)), None]
            }
        }
    }

    /// The event, if it is one of the model.
    pub fn kind(&self) -> Option<Kind> {
        match self.what {
            What::Event(kind) => Some(kind),
            _ => None,
        }
    }

    /// The largest CPU number it names.
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

    /// Whether it only reads the scheduler's state, amid an operation that other records tell.
    pub fn is_inside(&self) -> bool {
        matches!(self.what, What::Probe(_) | What::Clock { .. } | What::Aged { .. } | What::AgesAll { .. })
    }

    /// Whether the CPU's need-resched flag was set, lazy or not.
    pub fn flag(&self) -> bool {
        self.flags.need_resched() || self.flags.need_resched_lazy()
    }

    /// Whether it happened in a hardware interrupt.
    pub fn in_irq(&self) -> bool {
        matches!(self.flags.0[2], b'h' | b'H')
    }

    /// Whether it happened in a hardware interrupt of the task itself, not of another interrupt.
    pub fn interrupts_task(&self) -> bool {
        self.flags.0[2] == b'h'
    }

    /// Whether it happened in the task itself, in no interrupt.
    pub fn in_task(&self) -> bool {
        self.flags.0[2] == b'.'
    }

    /// How many locks and other bars to preemption were held, where the kernel counts them.
    pub fn depth(&self) -> Option<u8> {
        self.flags.0[3].is_ascii_hexdigit().then_some(self.flags.0[3])
    }

    /// Scheduler events are emitted with interrupts off; a record of one without any flag has no column of flags.
    pub fn has_flags(&self) -> bool {
        self.flags != Flags::NONE || !matches!(self.what, What::Event(kind) if locked(&kind))
    }
}

/// An idle kthread's sleep (`I`) is an ordinary one; the model's word for it also stands for parked tasks.
fn plain_sleep(kind: Kind, letters: &str) -> Kind {
    match kind {
        Kind::Switch { prev, prev_prio, next, next_prio, .. } if letters.starts_with('I') => {
            Kind::Switch { prev, prev_prio, prev_state: TaskState::Blocked, next, next_prio }
        }
        other => other,
    }
}

fn locked(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Switch { .. } | Kind::Waking { .. } | Kind::Wakeup { .. } | Kind::WakeupNew { .. } | Kind::Runtime { .. }
    )
}

/// The state of one task in a probe's fields, whose names begin with `prefix`.
fn probe(point: Point, prefix: &str, fields: Fields<'_>) -> Option<Probe> {
    let named = |name: &str| format!("{prefix}{name}");
    Some(Probe {
        point,
        pid: fields.number(&named("p"))?,
        vruntime: fields.number(&named("v"))?,
        deadline: fields.number(&named("d"))?,
        lag: fields.number(&named("l"))?,
        slice: fields.number(&named("s"))?,
        queued: fields.number::<u8>(&named("on"))? != 0,
        delayed: fields.number::<u8>(&named("sd"))? != 0,
        sums: sums(fields, ["z", "a", "w", "n"]),
        clock: fields.number("c"),
        group: group(fields),
        address: fields.number("tg").map(|at| Address { at, is_root: fields.number("gw") == Some(0) }),
        load: load(fields, ["el", "es", "et", "ep"]),
        queue_load: queue_load(fields),
    })
}

fn group(fields: Fields<'_>) -> Option<InGroup> {
    // The root's has no entity above: its weight reads as 0.
    let weight = fields.number("gw").filter(|weight| *weight > 0)?;
    Some(InGroup {
        vruntime: fields.number("gv")?,
        deadline: fields.number("gd")?,
        lag: fields.number("gl")?,
        slice: fields.number("gs")?,
        exec_start: fields.number("ge"),
        weight,
        sums: sums(fields, ["gz", "ga", "gq", "gn"]),
        load: fields.number("la")?,
        told: fields.number("lc")?,
        all: fields.number("ta")?,
    })
}

fn load(fields: Fields<'_>, [load_avg, load_sum, time, contrib]: [&str; 4]) -> Option<LoadState> {
    Some(LoadState {
        load_avg: fields.number(load_avg)?,
        load_sum: fields.number(load_sum)?,
        last_update_time: fields.number(time)?,
        period_contrib: fields.number(contrib)?,
    })
}

fn aged_state(fields: Fields<'_>) -> Option<AgedState> {
    Some(AgedState {
        group: Address { at: fields.number("tg")?, is_root: false },
        queue: QueueLoad { load: load(fields, ["la", "ls", "lu", "lp"])?, told_at: told_at(fields)? },
        told: fields.number("lc")?,
        all: fields.number("ta")?,
        clock: fields.number("c")?,
    })
}

/// The group was told by another clock, which is ahead of that of the queue by the time that nobody is charged.
fn told_at(fields: Fields<'_>) -> Option<Nanos> {
    let (told, clock, charged): (Nanos, Nanos, Nanos) =
        (fields.number("qu")?, fields.number("ck")?, fields.number("c")?);
    Some(told.saturating_sub(clock.saturating_sub(charged)))
}

fn queue_load(fields: Fields<'_>) -> Option<QueueLoad> {
    Some(QueueLoad { load: load(fields, ["ql", "qs", "qt", "qp"])?, told_at: told_at(fields)? })
}

fn clock(fields: Fields<'_>) -> Option<What> {
    let cpu = fields.number("cpu").map(CpuId);
    let regroups = fields.number("fl").map(|flags: u32| flags & RESTORE_MOVE == RESTORE_MOVE);
    Some(What::Clock { cpu, pid: fields.number("p")?, clock: fields.number("c")?, regroups })
}

/// ENQUEUE_RESTORE and ENQUEUE_MOVE.
const RESTORE_MOVE: u32 = 0x2 | 0x4;

/// The first argument of a system call; the kernel prints them in base 16.
fn argument(arguments: &str) -> Option<Pid> {
    let digits = arguments.split([',', ')']).next()?.trim();
    Pid::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
}

/// A probe that cannot read the task's pid: the system call before it names the task.
pub const UNNAMED: Pid = 0;

/// PRIO_PROCESS, of the caller or by pid; the nice value is a number of 32 bits.
fn priority(arguments: &str, caller: Pid) -> Option<Set> {
    let after = |name: &str| arguments.split_once(name).map(|(_, rest)| rest.split([',', ')']).next().unwrap_or(rest));
    let process = argument(arguments)? == 0;
    let pid = argument(after("who: ")?)?;
    let nice = u32::from_str_radix(after("niceval: ")?.trim().trim_start_matches("0x"), 16).ok()? as i32;
    let pid = if pid > 0 { pid } else { caller };
    process.then_some(Set::Priority { pid, nice: nice.clamp(-20, 19) as i8 })
}

fn set(scheduler: bool, fields: Fields<'_>) -> Option<Set> {
    let (pid, nice) = (fields.number("p").unwrap_or(UNNAMED), fields.number::<i64>("nice")?.clamp(-20, 19) as i8);
    match scheduler {
        true => Some(Set::Scheduler { pid, policy: fields.number("policy")?, nice, slice: fields.number("slice")? }),
        false => Some(Set::Nice { pid, nice }),
    }
}

fn sums(fields: Fields<'_>, [zero, sum, weight, count]: [&str; 4]) -> Option<Sums> {
    let (zero, sum) = (fields.number(zero)?, fields.number(sum)?);
    Some(Sums { zero, sum, weight: fields.number(weight)?, count: fields.number(count)? })
}
