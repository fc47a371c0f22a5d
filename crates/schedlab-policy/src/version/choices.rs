//! The possible values of the rules of the fair and real-time classes.
//!
//! Which release follows which is in `fair`.

use crate::history::table::{choices, Shown};

choices! {
    /// The algorithm of the fair class.
    pub enum Algorithm {
        /// Completely Fair Scheduler: smallest vruntime first.
        Cfs = "CFS",
        /// Earliest Eligible Virtual Deadline First.
        Eevdf = "EEVDF",
    }
}

choices! {
    /// What counts as idle in wakeup preemption.
    pub enum IdleRule {
        /// The tasks' SCHED_IDLE policy.
        Task = "tasks",
        /// The tasks' policy first, then the sibling entities'.
        TaskThenEntity = "tasks, then entities",
        /// The sibling entities.
        Entity = "entities",
    }
}

choices! {
    /// What the red-black tree is sorted by, and so what each node keeps of its subtree.
    pub enum TreeKey {
        /// Sorted by vruntime.
        Vruntime = "vruntime",
        /// Sorted by deadline; a node keeps the smallest vruntime below it.
        Deadline = "deadline",
    }
}

choices! {
    /// How a tree sorted by vruntime is searched for the earliest eligible deadline (`pick_eevdf`).
    pub enum SearchRule {
        /// One pass down, which can miss it.
        OnePass = "one pass",
        /// The best subtree passed on the way is searched afterwards.
        Remembers = "one pass, then the best subtree",
    }
}

/// How a running entity is protected from an earlier deadline, and when the protection ends.
// A tag of its own: without `repr` it shares a byte with a field, and every switch would decode it several times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Protection {
    /// No protection. CFS compares runtime and slice at the tick; the 2023 series picks anew at every tick.
    None,
    /// RUN_TO_PARITY by `vlag == deadline`, set when the entity is put on the CPU. A used-up slice ends it; where
    /// PREEMPT_SHORT exists, a marker that was broken ends it once the entity is no longer eligible.
    Marker,
    /// `vprot`, the shortest slice among the waiting entities; beyond it every `update_curr` reschedules.
    Vprot {
        /// Also set when a running task is requeued, not only when it is picked.
        renewed_by_requeue: bool,
        /// Stored where the lag is (a union): saving the lag of a running entity ends the protection.
        in_vlag: bool,
    },
}

impl Shown for Protection {
    fn shown(&self) -> String {
        match *self {
            Protection::None => "none".to_owned(),
            Protection::Marker => "marker in vlag".to_owned(),
            Protection::Vprot { renewed_by_requeue, in_vlag } => {
                let renewed = if renewed_by_requeue { ", renewed by a requeue" } else { "" };
                let stored = if in_vlag { ", stored in vlag" } else { "" };
                format!("vprot{renewed}{stored}")
            }
        }
    }
}

choices! {
    /// The zero point of vruntimes (v0).
    pub enum ZeroPoint {
        /// `min_vruntime`: the smallest vruntime, which never moves left.
        Minimum = "min_vruntime",
        /// `zero_vruntime`: V, moved whenever an entity enters or leaves the tree. An entity that is put counts twice
        /// then.
        AverageOfTree = "V, at changes of the tree",
        /// `zero_vruntime`: V, moved whenever V is computed.
        Average = "V",
    }
}

/// How V, the average of vruntimes, is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Averaging {
    /// How many bits weights are shifted down.
    pub shift: u32,
    /// Eligibility is compared in 128 bits.
    pub wide: bool,
    /// V is rounded towards v0 instead of down.
    pub truncates: bool,
    /// The weighted sum of slices is kept too.
    pub slices: bool,
}

choices! {
    /// The bound of the lag that an entity keeps.
    pub enum LagLimit {
        /// Twice its own slice, or a tick if that is longer.
        OwnSlice = "its own slice",
        /// The longest slice on the queue and a tick.
        LongestSlice = "the longest slice on the queue",
    }
}

choices! {
    /// What happens to the lag of an entity whose dequeue is delayed.
    pub enum DelayedLag {
        /// Checked when the task wakes; positive lag is dropped.
        Dropped = "dropped at the wakeup",
        /// Saved when the delay begins; from then on it only rises, and a wakeup places the entity by it.
        Heals = "saved, rises while delayed",
    }
}

choices! {
    /// Where a task's slice comes from.
    pub enum SliceSource {
        /// base_slice. CFS computes its own.
        Base = "base_slice",
        /// base_slice scaled by latency-nice, computed when that is set.
        LatencyNice = "latency-nice",
        /// `sched_attr.sched_runtime`, else base_slice.
        Custom = "sched_runtime or base_slice",
    }
}

/// Whether a woken task preempts.
// As of `Protection`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum WakeupRule {
    /// CFS: the lead in vruntime against wakeup_granularity.
    Granularity,
    /// If it would be picked.
    Pick,
    /// The same, after a shorter slice that deserves the CPU broke the marker.
    BreakMarker,
    /// The same, where a shorter slice ignores the protection.
    Unprotected,
    /// The same, but neither new tasks nor those whose dequeue is delayed preempt.
    Awake {
        /// A shorter slice ignores the next buddy too, and clears it.
        over_buddy: bool,
    },
}

impl Shown for WakeupRule {
    fn shown(&self) -> String {
        match *self {
            WakeupRule::Granularity => "lead against wakeup_granularity",
            WakeupRule::Pick => "if it would be picked",
            WakeupRule::BreakMarker => "if it would be picked; a shorter slice breaks the marker",
            WakeupRule::Unprotected => "if it would be picked; a shorter slice ignores the protection",
            WakeupRule::Awake { over_buddy: false } => "the same, but only tasks that slept",
            WakeupRule::Awake { over_buddy: true } => "the same, and a shorter slice ignores the buddy",
        }
        .to_owned()
    }
}

choices! {
    /// What `sched_yield` does.
    pub enum YieldRule {
        /// Sets the skip buddy.
        Skip = "skip buddy",
        /// Asks for one more slice: the deadline moves.
        LaterDeadline = "later deadline",
        /// An eligible task forfeits the rest of its request: its vruntime moves to the deadline.
        ForfeitRequest = "forfeits the request",
    }
}

choices! {
    /// The request of a group's entity.
    pub enum GroupSlice {
        /// Its own: base_slice, or what the group's latency-nice means.
        Base = "base_slice",
        /// The shortest one inside the group. A change does not reach the trees above, and a group whose dequeue is
        /// delayed has no request.
        Stale = "shortest inside, stale in the trees above",
        /// The shortest one inside the group.
        Exact = "shortest inside",
    }
}

/// What a new weight does to a queued entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reweight {
    /// Nothing moves (CFS; the 2023 series, whose lag changes by it).
    Nothing,
    /// The request is stretched, vruntime stays.
    Deadline,
    /// Lag, however large, and deadline are rescaled around V; a queued entity has left V by then.
    AroundOthers {
        /// A new weight of the running entity updates `min_vruntime` too, not only one of a queued entity.
        updates_min: bool,
    },
    /// Lag, within its limit, and deadline are rescaled around V.
    AroundAverage,
    /// The entity is placed anew by its rescaled lag.
    Replaced {
        /// What is left of the protection is rescaled too, instead of staying at its place.
        keeps_protection: bool,
    },
}

impl Shown for Reweight {
    fn shown(&self) -> String {
        match *self {
            Reweight::Nothing => "nothing moves",
            Reweight::Deadline => "stretches the deadline",
            Reweight::AroundOthers { updates_min: false } => "rescales lag and deadline around the V of the others",
            Reweight::AroundOthers { updates_min: true } => {
                "rescales lag and deadline around the V of the others, updates min_vruntime"
            }
            Reweight::AroundAverage => "rescales lag and deadline around V",
            Reweight::Replaced { keeps_protection: false } => "places it anew",
            Reweight::Replaced { keeps_protection: true } => "places it anew, rescales its protection",
        }
        .to_owned()
    }
}

choices! {
    /// When the slice-end timer (HRTICK) fires.
    pub enum HrtickRule {
        /// When the slice, counted from the pick, is used up.
        Slice = "at the end of the slice",
        /// When the deadline is reached.
        Deadline = "at the deadline",
    }
}

choices! {
    /// When the tasks of a group that used up its quota leave the queue.
    pub enum Throttling {
        /// The queue leaves as a whole when its task is put or picked next.
        Queue = "the queue, at the next pick",
        /// Task by task, as each returns to user mode.
        Tasks = "each task, on its way to user mode",
        /// The same, and the queue is marked in the accounting that used up its runtime.
        TasksAtOnce = "each task, marked in the accounting",
    }
}

/// How a version limits the real-time class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtLimit {
    /// `sched_rt_runtime_us` of every `sched_rt_period_us`.
    Throttling,
    /// The deadline server of the fair class.
    FairServer,
}

impl Shown for RtLimit {
    fn shown(&self) -> String {
        match self {
            RtLimit::Throttling => "rt_runtime_us of every rt_period_us",
            RtLimit::FairServer => "the fair class's deadline server",
        }
        .to_owned()
    }
}

impl Shown for crate::Feature {
    fn shown(&self) -> String {
        self.info().name.to_owned()
    }
}
