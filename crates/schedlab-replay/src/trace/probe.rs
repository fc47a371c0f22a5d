//! The scheduler's own state as the recorder's dynamic probes print it.

use schedlab_model::{CpuId, Nanos, Pid, Vruntime};
use schedlab_policy::fair::{LoadState, ProcessShown, TaskState};
use schedlab_trace::Fields;

use super::bounds;

/// The event at which a probe is placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// `sched_waking`, before the wakee is placed.
    Waking,
    /// `sched_wakeup` or `sched_wakeup_new`, after the wakee was placed.
    Woken,
    /// `sched_stat_runtime`: up to 6.12 after vruntime was updated, in 7.2 before.
    Runtime,
    /// `sched_switch`, the next task.
    Next,
    /// `sched_switch`, the previous task.
    Prev,
    /// Any other place.
    Other,
}

/// A task's scheduling entity.
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
    /// `h_load.weight` (from 7.3 on).
    pub weight: Option<u64>,
    /// Sums of its `cfs_rq`, from 7.3 on of the CPU's own.
    pub sums: Option<Sums>,
    /// `clock_task` of its runqueue, read with the lock held.
    pub clock: Option<Nanos>,
    /// The entity of its group; `None` in the root group.
    pub group: Option<GroupEntity>,
    pub address: Option<Address>,
    /// Its load average.
    pub load: Option<LoadState>,
    /// Load average of its `cfs_rq`.
    pub queue_load: Option<QueueLoad>,
    /// Its process, where the task is charged (7.2 and later, machines with several last-level caches).
    pub process: Option<ProcessShown>,
}

/// Load average of a `cfs_rq` where the kernel updated it, before `tg->load_avg` follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CfsRqLoad {
    pub group: Address,
    pub queue: QueueLoad,
    /// `tg_load_avg_contrib`.
    pub contrib: u64,
    /// `tg->load_avg`.
    pub tg_load_avg: i64,
    /// `clock_task` of the queue's CPU.
    pub clock: Nanos,
}

/// Identifies a task group by its address in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address {
    pub at: u64,
    pub is_root: bool,
}

/// Load average of a `cfs_rq`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLoad {
    pub load: LoadState,
    /// `last_update_tg_load_avg`, converted to the clock by which the queue is charged.
    pub tg_updated_at: Nanos,
}

/// The entity of a task group on one CPU, and the queue that this entity is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupEntity {
    /// Up to 7.2, where it competes.
    pub state: Option<TaskState>,
    pub exec_start: Option<Nanos>,
    pub weight: u64,
    /// Sums of the queue that it is on.
    pub sums: Option<Sums>,
    /// `avg.load_avg` of the group's own `cfs_rq`.
    pub load: u64,
    /// `tg_load_avg_contrib` of that `cfs_rq`.
    pub contrib: u64,
    /// `tg->load_avg`.
    pub tg_load_avg: i64,
    /// The runnable signal (from 7.3 on).
    pub runnable: Option<GroupRunnable>,
}

/// The runnable signal of a group's queue, and what of it is in the group's sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupRunnable {
    /// `avg.runnable_avg` of the group's own `cfs_rq`.
    pub own: u64,
    /// `tg_runnable_avg_contrib` of that `cfs_rq`.
    pub contrib: u64,
    /// `tg->runnable_avg`.
    pub tg_runnable_avg: i64,
}

/// Sums of a `cfs_rq`. All but the count leave the running entity out.
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

impl Probe {
    /// One task in a probe's fields, whose names begin with `prefix`.
    pub(super) fn of(point: Point, prefix: &str, fields: Fields<'_>) -> Option<Probe> {
        let named = |name: &str| format!("{prefix}{name}");
        Some(Probe {
            point,
            pid: fields.number(&named("p"))?,
            vruntime: fields.number(&named("v"))?,
            deadline: fields.number(&named("d"))?,
            lag: fields.number(&named("l"))?,
            slice: bounds::slice(fields, &named("s"))?,
            queued: fields.number::<u8>(&named("on"))? != 0,
            // Kernels without delayed dequeue have no such field.
            delayed: fields.number::<u8>(&named("sd")).is_some_and(|delayed| delayed != 0),
            weight: fields.number("hw"),
            sums: sums(fields, ["z", "a", "w", "n"]),
            clock: bounds::time(fields, "c"),
            group: group(fields),
            address: fields.number("tg").map(|at| Address { at, is_root: fields.number("gw") == Some(0) }),
            load: load(fields, ["el", "es", "et", "ep"]),
            queue_load: queue_load(fields),
            process: process(fields),
        })
    }

    /// The previous task of a `sched_switch`: the fields about queues and groups are the next task's.
    pub(super) fn of_prev(fields: Fields<'_>) -> Option<Probe> {
        let probe = Probe::of(Point::Prev, "p", fields)?;
        Some(Probe {
            weight: None,
            sums: None,
            group: None,
            address: None,
            load: None,
            queue_load: None,
            process: None,
            ..probe
        })
    }
}

impl CfsRqLoad {
    pub(super) fn of(fields: Fields<'_>) -> Option<CfsRqLoad> {
        let load = load(fields, ["la", "ls", "lu", "lp"])?;
        Some(CfsRqLoad {
            group: Address { at: fields.number("tg")?, is_root: false },
            queue: QueueLoad { load, tg_updated_at: tg_updated_at(fields)? },
            contrib: bounds::load(fields, "lc")?,
            tg_load_avg: bounds::load(fields, "ta")? as i64,
            clock: bounds::time(fields, "c")?,
        })
    }
}

fn process(fields: Fields<'_>) -> Option<ProcessShown> {
    let cpu = |number: i32| u32::try_from(number).ok();
    Some(ProcessShown {
        mm: fields.number("mm")?,
        nr_threads: fields.number::<i32>("nt").and_then(cpu)?.into(),
        preferred_llc: fields.number("pl").and_then(cpu),
        cpu: fields.number("gc").and_then(cpu).map(CpuId),
        jiffies: bounds::time(fields, "j"),
    })
}

fn group(fields: Fields<'_>) -> Option<GroupEntity> {
    // The root group has no entity: its weight is printed as 0.
    let weight = bounds::load(fields, "gw").filter(|weight| *weight > 0)?;
    Some(GroupEntity {
        state: group_state(fields),
        exec_start: bounds::time(fields, "ge"),
        weight,
        sums: sums(fields, ["gz", "ga", "gq", "gn"]),
        load: bounds::load(fields, "la")?,
        contrib: bounds::load(fields, "lc")?,
        tg_load_avg: bounds::load(fields, "ta")? as i64,
        runnable: group_runnable(fields),
    })
}

fn group_state(fields: Fields<'_>) -> Option<TaskState> {
    Some(TaskState {
        vruntime: Vruntime(fields.number("gv")?),
        deadline: Vruntime(fields.number("gd")?),
        vlag: fields.number("gl")?,
        slice: bounds::slice(fields, "gs")?,
    })
}

fn group_runnable(fields: Fields<'_>) -> Option<GroupRunnable> {
    let (own, contrib) = (fields.number("ra")?, fields.number("rc")?);
    Some(GroupRunnable { own, contrib, tg_runnable_avg: fields.number("tr")? })
}

fn sums(fields: Fields<'_>, [zero, sum, weight, count]: [&str; 4]) -> Option<Sums> {
    let (zero, sum) = (fields.number(zero)?, fields.number(sum)?);
    Some(Sums { zero, sum, weight: fields.number(weight)?, count: fields.number(count)? })
}

fn load(fields: Fields<'_>, [load_avg, load_sum, time, contrib]: [&str; 4]) -> Option<LoadState> {
    Some(LoadState {
        load_avg: bounds::load(fields, load_avg)?,
        load_sum: fields.number(load_sum)?,
        last_update_time: bounds::time(fields, time)?,
        period_contrib: fields.number(contrib).filter(|at| *at < 1024)?,
    })
}

fn queue_load(fields: Fields<'_>) -> Option<QueueLoad> {
    Some(QueueLoad { load: load(fields, ["ql", "qs", "qt", "qp"])?, tg_updated_at: tg_updated_at(fields)? })
}

/// `last_update_tg_load_avg` is read from `sched_clock_cpu`, which leads `clock_task` by the time that no task is
/// charged for.
fn tg_updated_at(fields: Fields<'_>) -> Option<Nanos> {
    let (updated, clock, clock_task): (Nanos, Nanos, Nanos) =
        (fields.number("qu")?, fields.number("ck")?, fields.number("c")?);
    Some(updated.saturating_sub(clock.saturating_sub(clock_task)))
}
