//! A balancing pass (`sched_balance_rq`) as the recorder's probes show it, and the averages of CPUs that it compares.

use schedlab_model::{CpuId, CpuMask, Pid};
use schedlab_policy::fair::CpuAverages;
use schedlab_policy::CpuIdle;
use schedlab_trace::Fields;

use super::bounds;

/// One record of a pass.
#[derive(Clone, Copy, Debug)]
pub enum PassRecord {
    /// The busiest group is about to be looked for; once more if affinity keeps all tasks of a CPU from moving.
    Looks(PassProbe),
    /// Whether it was found.
    Found(bool),
    /// `can_migrate_task` of a task that waits on `src`; `loads`: the imbalance is one of loads (`migrate_load`).
    Considers { src: CpuId, task: Option<(Pid, CpuMask)>, loads: bool, averages: Option<TaskAverages> },
    /// No task was moved from `src`.
    MovedNone { src: CpuId },
    /// The pass is over.
    Ends,
}

/// The averages of a task that a pass looks at, and `h_load` of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskAverages {
    pub load_avg: u64,
    pub util_avg: u32,
    /// `cfs_rq->h_load`, and the tick at which it was computed.
    pub h_load: u64,
    pub last_h_load_update: u64,
}

/// What the pass has read when it begins.
#[derive(Clone, Copy, Debug)]
pub struct PassProbe {
    /// The CPU that pulls.
    pub cpu: CpuId,
    pub idle: CpuIdle,
    /// Of its domain.
    pub imbalance_pct: u32,
    /// The number of CPUs of the domain, where the probe reads it.
    pub weight: Option<u32>,
    /// `nr_balance_failed`.
    pub failed: u32,
    /// The CPUs that are considered.
    pub considered: CpuMask,
    /// The tick count.
    pub jiffies: Option<u64>,
    pub marks: Marks,
}

/// `sgc->imbalance` of a CPU's own group and of the next one, as far as the probe shows it.
pub type Marks = [Option<bool>; 2];

/// Those at each level above the lowest.
pub type MarksAbove = [Marks; 3];

impl PassRecord {
    pub(super) fn of(name: &str, fields: Fields<'_>, before_5_8: bool) -> Option<PassRecord> {
        Some(match name {
            "bg" => PassRecord::Looks(PassProbe {
                cpu: CpuId(fields.number("cpu")?),
                idle: idle(fields)?,
                imbalance_pct: fields.number("pct")?,
                weight: fields.number("w"),
                failed: fields.number("nf")?,
                considered: mask(fields)?,
                jiffies: bounds::time(fields, "j"),
                marks: marks(fields, ["mo", "mn"]),
            }),
            "bgr" => PassRecord::Found(fields.number::<u64>("found")? != 0),
            "cm" => {
                let (src, task) = (CpuId(fields.number("src")?), fields.number("p").zip(mask(fields)));
                // Up to 5.4 there is no migration type: what is moved is load.
                let migration_type = fields.number::<u32>("mt").or(before_5_8.then_some(0))?;
                let (loads, averages) = (migration_type == 0, task_averages(fields));
                PassRecord::Considers { src, task, loads, averages }
            }
            "na" => PassRecord::MovedNone { src: CpuId(fields.number("src")?) },
            "lbr" => PassRecord::Ends,
            _ => return None,
        })
    }
}

fn marks(fields: Fields<'_>, names: [&str; 2]) -> Marks {
    names.map(|name| fields.number::<i32>(name).map(|mark| mark != 0))
}

/// The marks that a selection shows.
pub(super) fn marks_above(fields: Fields<'_>) -> MarksAbove {
    [["o1", "n1"], ["o2", "n2"], ["o3", "n3"]].map(|names| marks(fields, names))
}

fn task_averages(fields: Fields<'_>) -> Option<TaskAverages> {
    Some(TaskAverages {
        load_avg: bounds::load(fields, "el")?,
        util_avg: bounds::util(fields, "ut")?,
        h_load: bounds::load(fields, "hl")?,
        last_h_load_update: bounds::time(fields, "ht")?,
    })
}

/// `enum cpu_idle_type`; up to 6.7 (`oi`) idle and not idle have each other's number.
fn idle(fields: Fields<'_>) -> Option<CpuIdle> {
    let (idle, old) = (fields.number::<u32>("idle"), fields.number::<u32>("oi"));
    match idle.or(old.map(|old| if old < 2 { 1 - old } else { old }))? {
        0 => Some(CpuIdle::Not),
        1 => Some(CpuIdle::Idle),
        2 => Some(CpuIdle::Newly),
        _ => None,
    }
}

/// The first 64 CPUs of a mask.
pub(super) fn mask(fields: Fields<'_>) -> Option<CpuMask> {
    let bits = fields.number::<u64>("am")?;
    Some((0..64).filter(|cpu| bits >> cpu & 1 != 0).map(CpuId).collect())
}

/// A CPU, the averages of its own queue, and its capacity.
pub(super) fn averages(fields: Fields<'_>) -> Option<(CpuId, CpuAverages, u64)> {
    let averages = CpuAverages {
        load_avg: bounds::load(fields, "la")?,
        runnable_avg: bounds::load(fields, "ra")?,
        util_avg: bounds::util(fields, "ua")?,
        util_est: bounds::util(fields, "ue")?,
        period_contrib: fields.number("pe").filter(|at| *at < 1024)?,
    };
    Some((CpuId(fields.number("cpu")?), averages, bounds::load(fields, "cc").filter(|capacity| *capacity > 0)?))
}
