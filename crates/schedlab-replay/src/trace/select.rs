//! The arguments of `select_task_rq_fair` as the recorder's probe prints them, and state that the selection depends on.

use schedlab_model::{CpuId, CpuMask, Nanos, Pid};
use schedlab_policy::{WakeHistory, WakeKind};
use schedlab_trace::Fields;

use super::bounds;
use super::pass::{marks_above, mask, MarksAbove};

/// WF_EXEC, WF_FORK, WF_SYNC of 5.13 and later.
const WF_EXEC: u32 = 0x02;
const WF_FORK: u32 = 0x04;
const WF_SYNC: u32 = 0x10;
const WF_SYNC_OF_BEFORE: u32 = 0x01;

/// A selection is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct SelectProbe {
    pub prev: CpuId,
    pub kind: WakeKind,
    /// The tick count.
    pub jiffies: Option<u64>,
    /// Of the groups of the previous CPU.
    pub marks: MarksAbove,
    /// What only type information makes readable.
    pub state: Option<SelectState>,
}

/// The task, and state beside its arguments.
#[derive(Clone, Copy, Debug)]
pub struct SelectState {
    pub pid: Pid,
    pub nr_cpus_allowed: usize,
    /// The CPUs that it may use, where the probe reads the mask.
    pub allowed: Option<CpuMask>,
    pub history: WakeHistory,
    /// `wakee_flip_decay_ts`: the tick at which `wakee_flips` was halved last.
    pub flips_decayed: Option<u64>,
    /// `avg.load_avg` of the task, and of the queue of its previous CPU.
    pub load: u64,
    pub prev_load: u64,
    /// The other averages of that queue, and up to when they are accounted, where the probe reads them.
    pub prev_runnable: Option<u64>,
    pub prev_util: Option<u32>,
    pub prev_until: Option<Nanos>,
    /// Of the cache of its previous CPU.
    pub nr_idle_scan: u32,
    pub has_idle_cores: bool,
    /// `numa_preferred_nid`, where the kernel balances between nodes and the probe shows it.
    pub preferred_node: Option<u32>,
}

impl SelectProbe {
    pub(super) fn of(fields: Fields<'_>) -> Option<SelectProbe> {
        let flags: u32 = fields.number("fl")?;
        // Up to 5.12 the third argument is `sd_flag`, whose bits for EXEC and FORK are those of later flags; the fourth has WF_SYNC.
        let sync = fields.number("sy").map_or(flags & WF_SYNC, |flags: u32| flags & WF_SYNC_OF_BEFORE) != 0;
        let kind = match () {
            () if flags & WF_EXEC != 0 => WakeKind::Exec,
            () if flags & WF_FORK != 0 => WakeKind::Fork,
            () => WakeKind::Wakeup { sync },
        };
        Some(SelectProbe {
            prev: CpuId(fields.number("prev")?),
            kind,
            jiffies: bounds::time(fields, "j"),
            marks: marks_above(fields),
            state: state(fields),
        })
    }
}

fn state(fields: Fields<'_>) -> Option<SelectState> {
    let history = WakeHistory { flips: bounds::flips(fields, "wf")?, recent_used_cpu: CpuId(fields.number("ru")?) };
    Some(SelectState {
        pid: fields.number("p")?,
        nr_cpus_allowed: fields.number("nc")?,
        allowed: mask(fields),
        history,
        flips_decayed: bounds::time(fields, "wt"),
        load: bounds::load(fields, "el")?,
        prev_load: bounds::load(fields, "ql")?,
        prev_runnable: bounds::load(fields, "qr"),
        prev_util: bounds::util(fields, "qv"),
        prev_until: bounds::time(fields, "qt"),
        // Kernels without SIS_UTIL have none.
        nr_idle_scan: fields.number::<i32>("sc").unwrap_or(0).max(0) as u32,
        has_idle_cores: fields.number::<i32>("ic")? != 0,
        preferred_node: fields.number::<i32>("nn").and_then(|node| u32::try_from(node).ok()),
    })
}
