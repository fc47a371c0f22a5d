//! The arguments of `select_task_rq_fair` as the recorder's probe prints them, and state that the selection depends on.

use schedlab_model::{CpuId, CpuMask, Nanos, Pid};
use schedlab_policy::{Release, WakeHistory, WakeKind};
use schedlab_trace::{Fields, Header};

use super::bounds;
use super::pass::{marks_above, mask, MarksAbove};
use super::release::release;

/// WF_SYNC of the fourth argument, up to 5.12.
const WF_SYNC_OF_BEFORE: u32 = 0x01;

/// The bits of the third argument that say what a CPU is selected for.
#[derive(Clone, Copy, Debug)]
pub struct SelectFlags {
    exec: u32,
    fork: u32,
    sync: u32,
}

impl SelectFlags {
    /// WF_EXEC, WF_FORK and WF_SYNC. Up to 5.12 the argument is `sd_flag`, whose bits SD_BALANCE_EXEC and
    /// SD_BALANCE_FORK are the same from 5.8 on.
    const LATER: SelectFlags = SelectFlags { exec: 0x02, fork: 0x04, sync: 0x10 };
    /// Up to 5.7 SD_LOAD_BALANCE was bit 0 (36c5bdc43870).
    const BEFORE: SelectFlags = SelectFlags { exec: 0x04, fork: 0x08, sync: 0 };
    const CHANGED: Option<Release> = Release::parse("5.8");

    pub(super) fn are_of_before_5_8(self) -> bool {
        self.exec == Self::BEFORE.exec
    }

    pub fn of(header: &Header) -> Self {
        match release(header).zip(Self::CHANGED).is_some_and(|(release, changed)| release < changed) {
            true => Self::BEFORE,
            false => Self::LATER,
        }
    }
}

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

/// The task, and state in addition to its arguments.
#[derive(Clone, Copy, Debug)]
pub struct SelectState {
    pub pid: Pid,
    pub nr_cpus_allowed: usize,
    /// The CPUs that it may use, where the probe reads the mask.
    pub allowed: Option<CpuMask>,
    pub history: WakeHistory,
    /// `wakee_flip_decay_ts`: the tick at which `wakee_flips` was halved last.
    pub flips_decayed: Option<u64>,
    /// `se.slice`, where it was set when the task was forked (the EEVDF series of March 2023).
    pub slice: Option<Nanos>,
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
    pub(super) fn of(fields: Fields<'_>, bits: SelectFlags) -> Option<SelectProbe> {
        let flags: u32 = fields.number("fl")?;
        // Up to 5.12 a fourth argument has WF_SYNC.
        let sync = fields.number("sy").map_or(flags & bits.sync, |flags: u32| flags & WF_SYNC_OF_BEFORE) != 0;
        let kind = match () {
            () if flags & bits.exec != 0 => WakeKind::Exec,
            () if flags & bits.fork != 0 => WakeKind::Fork,
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
        slice: bounds::slice(fields, "sl"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(kernel: &str, fields: &str) -> Option<WakeKind> {
        let header = Header { kernel: Some(kernel.to_owned()), ..Header::default() };
        SelectProbe::of(Fields(fields), SelectFlags::of(&header)).map(|probe| probe.kind)
    }

    #[test]
    fn the_flags_are_those_of_the_release() {
        let (asleep, sync) = (WakeKind::Wakeup { sync: false }, WakeKind::Wakeup { sync: true });
        for (kernel, flags, expected) in [
            ("5.2.1", "fl=0x4 sy=0x0", WakeKind::Exec),
            ("5.7.14", "fl=0x8 sy=0x0", WakeKind::Fork),
            ("5.7.14", "fl=0x10 sy=0x1", sync),
            ("5.7.14", "fl=0x10", asleep),
            ("5.10.0-46-cloud-amd64", "fl=0x2 sy=0x0", WakeKind::Exec),
            ("5.10.0-46-cloud-amd64", "fl=0x4 sy=0x0", WakeKind::Fork),
            ("5.10.0-46-cloud-amd64", "fl=0x8 sy=0x0", asleep),
            ("5.13.0", "fl=0x18", sync),
            ("7.2.13", "fl=0x8", asleep),
        ] {
            assert_eq!(kind(kernel, &format!("prev=1 {flags} j=7")), Some(expected), "{kernel} {flags}");
        }
        assert!(kind("5.7.14", "prev=1").is_none());
    }
}
