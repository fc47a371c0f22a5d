//! The rules of `kernel/sched/fair.c` that versions disagree on, each with its choices.
//!
//! Which version follows which is in `rows`, what a rule is called and where the kernel decides it in `catalogue`.

use crate::features::Feature;
use crate::pelt::Signals;
use crate::rt::RtLimit;

/// Which family of rules decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Completely Fair Scheduler: smallest vruntime first (up to 6.5).
    Cfs,
    /// Earliest Eligible Virtual Deadline First (6.6 and later, and the 2023 series).
    Eevdf,
}

/// Who counts as idle in wakeup preemption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleRule {
    /// Only the tasks' SCHED_IDLE policy (up to 5.14).
    Task,
    /// The tasks' policy first, then the sibling entities' (5.15 to 6.6).
    TaskThenEntity,
    /// Only the sibling entities' (6.12 and later).
    Entity,
}

/// What the red-black tree is sorted by, and so what each node remembers of its subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TreeKey {
    /// Sorted by vruntime.
    Vruntime,
    /// Sorted by deadline, remembering the smallest vruntime (6.12 and later).
    Deadline,
}

/// How a tree sorted by vruntime is searched for the earliest eligible deadline (`pick_eevdf`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchRule {
    /// One pass down, which can miss it (2023 series).
    OnePass,
    /// The best subtree passed on the way is looked into afterwards (6.6, 6.7).
    Remembers,
}

/// How a running entity is protected from an earlier deadline, and when it is asked to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// Not at all. CFS compares run and slice at the tick; the 2023 series picks anew at every tick.
    None,
    /// RUN_TO_PARITY by `vlag == deadline`, set when the entity is put on the CPU; a used-up slice ends the turn, and
    /// where PREEMPT_SHORT exists a broken marker does once the entity is not eligible (6.6 to 6.12).
    Marker,
    /// `vprot`, the shortest slice among those who wait; beyond it every accounting asks to reschedule (6.18 and later).
    Vprot {
        /// Also when a running task is only requeued, not just when it is picked (6.18.2).
        renewed_by_requeue: bool,
        /// It lies where the lag does (a union in 6.18): a lag saved while the entity runs ends the protection.
        in_vlag: bool,
    },
}

/// The zero point of vruntimes (v0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZeroPoint {
    /// `min_vruntime`: the smallest vruntime, never moving left.
    Minimum,
    /// `zero_vruntime`: V, moved whenever V is computed (6.12 stable, 6.18 stable, 7.x).
    Average,
}

/// Weights in the sums that make V.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Averaging {
    /// How far weights are shifted down.
    pub shift: u32,
    /// Eligibility is compared in 128 bits.
    pub wide: bool,
    /// V is rounded towards v0 instead of down (2023 series).
    pub truncates: bool,
    /// The weighted sum of slices is kept too (2023 series, for PLACE_FUDGE).
    pub slices: bool,
}

/// The bound of the lag an entity keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LagLimit {
    /// Twice its own slice, or a tick if that is longer.
    OwnSlice,
    /// The longest slice on the queue and a tick (6.18 stable, 7.x).
    LongestSlice,
}

/// What happens to the lag of an entity whose dequeue is delayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedLag {
    /// Looked at when it wakes: credit is dropped (6.12 to 6.18).
    Dropped,
    /// Saved when the delay begins, from then on it can only heal; a wakeup places the entity by it (7.x).
    Heals,
}

/// Where a task's slice comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceSource {
    /// base_slice for everybody. CFS computes its own.
    Base,
    /// base_slice scaled by latency-nice, taken when that is set (2023 series).
    LatencyNice,
    /// base_slice or `sched_attr.sched_runtime` (6.12 and later).
    Custom,
}

/// Whether a woken task preempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeupRule {
    /// CFS: the lead in vruntime against wakeup_granularity.
    Granularity,
    /// Whoever would be picked.
    Pick,
    /// As before, after a shorter slice that deserves the CPU broke the marker (6.12).
    BreakMarker,
    /// As before, a shorter slice looks through the protection (6.18.2).
    Unprotected,
    /// As before, but forks never preempt and delayed entities met on the way leave (6.18 stable, 7.x).
    Requeue {
        /// A shorter slice looks past the next buddy, and makes the queue forget it (7.x).
        over_buddy: bool,
    },
}

/// What `sched_yield` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum YieldRule {
    /// Sets the skip buddy (CFS).
    Skip,
    /// Asks for one more slice: the deadline moves (up to 6.12.0).
    LaterDeadline,
    /// An eligible task gives up the rest of its request: its vruntime moves to the deadline.
    ForfeitRequest,
}

/// The request of a group's entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupSlice {
    /// Its own: base_slice, or what the group's latency-nice means.
    Base,
    /// The shortest one inside the group; the trees above do not notice a change, and a group that becomes delayed asks
    /// for nothing (6.12.0).
    Stale,
    /// The shortest one inside the group.
    Exact,
}

/// What a new weight does to a queued entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reweight {
    /// Nothing moves (CFS; the 2023 series, which thereby changes lag).
    Nothing,
    /// The request is stretched, vruntime stays (6.6).
    Deadline,
    /// Lag and deadline are rescaled around V (6.12, 7.x).
    AroundAverage,
    /// It is placed anew by its rescaled lag (6.14, 6.18).
    Replaced {
        /// The protection that is left is rescaled too, instead of staying at its place (6.18 stable).
        keeps_protection: bool,
    },
}

/// When the slice-end timer (HRTICK) fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HrtickRule {
    /// When the slice, counted from the pick, is used up.
    Slice,
    /// When the deadline is reached (7.x).
    Deadline,
}

/// The rules of `kernel/sched/fair.c` that differ between versions. Rules that only one row has so far are not here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// CFS or EEVDF.
    pub policy: Policy,
    /// Order of the tree.
    pub tree_key: TreeKey,
    /// Search of a tree sorted by vruntime.
    pub search: SearchRule,
    /// Who counts as idle.
    pub idle: IdleRule,
    /// `sched_slice` floors an idle entity beside non-idle ones at idle_min_granularity (6.1, 6.3).
    pub idle_slice_floor: bool,
    /// An idle entity's sleeper credit is min_granularity (5.16 and later CFS).
    pub idle_sleeper_credit: bool,
    /// The tick caps the ideal slice at sched_latency (6.3).
    pub tick_slice_cap: bool,
    /// An entity asleep for 104 days is placed without comparing vruntimes (stable backport).
    pub long_sleeper: bool,
    /// Picking an entity forgets it as a buddy even if it runs already (up to 5.11).
    pub pick_clears_buddies: bool,
    /// Writing latency or granularity recomputes `sched_nr_latency` (sysctls, up to 5.12).
    pub sysctl_updates_nr_latency: bool,
    /// A nice change of the only task still asks to reschedule (5.2).
    pub prio_changed_alone: bool,
    /// A running task that changes its group reschedules (5.6 and later).
    pub move_reschedules: bool,
    /// Protection of the running entity.
    pub protection: Protection,
    /// `task_fork_fair` charges the parent and places the child on the forking CPU (up to 6.6).
    pub fork_places: bool,
    /// The first enqueue after fork is known as such (6.12 and later): half a slice.
    pub initial_enqueue: bool,
    /// A relative deadline is kept whatever PLACE_REL_DEADLINE says (6.14 to 6.18).
    pub keeps_rel_deadline: bool,
    /// Placing an entity heavier than the queue moves v0 along (7.x).
    pub place_moves_zero: bool,
    /// v0.
    pub zero: ZeroPoint,
    /// Sums.
    pub averaging: Averaging,
    /// Bound of lag.
    pub lag_limit: LagLimit,
    /// Lag of delayed entities.
    pub delayed_lag: DelayedLag,
    /// Slices.
    pub slice: SliceSource,
    /// Wakeup preemption.
    pub wakeup: WakeupRule,
    /// An idle entity preempted by another loses its protection (6.12 stable and later).
    pub idle_loses_protection: bool,
    /// A slice that ends asks to reschedule; without it the tick picks anew (2023 series).
    pub expiry_reschedules: bool,
    /// The feature that lets the pick honour the next buddy.
    pub buddy_feature: Feature,
    /// `sched_yield`.
    pub yields: YieldRule,
    /// A new weight rescales a relative deadline too (6.14 and later).
    pub reweight_deadline: bool,
    /// A queued entity's new weight.
    pub reweight: Reweight,
    /// `update_cfs_group` reweights even if the weight stays (up to 6.6).
    pub reweights_unchanged: bool,
    /// A new weight charges the queue's running entity first whoever gets it; else only if it is that one (6.12 and later).
    pub reweight_charges: bool,
    /// A group's slice.
    pub group_slice: GroupSlice,
    /// What a tree's node knows of the shortest slice below it does not follow where nodes change places (up to 6.18).
    pub stale_slices: bool,
    /// A group without load on a CPU keeps its weight there (6.12 stable and later), which matters while it is delayed.
    pub keeps_empty_weight: bool,
    /// Unused quota carries over, up to quota and burst (5.14 and later).
    pub bandwidth_burst: bool,
    /// A queue's runtime is void after its period (5.2).
    pub bandwidth_expires: bool,
    /// A queue about to be throttled looks once more whether there is any runtime (5.11 and later).
    pub throttle_borrows: bool,
    /// Throttled tasks leave one by one, as they return to user mode (6.18 and later).
    pub throttles_tasks: bool,
    /// Throttled time counts only while somebody is queued (6.6 and later).
    pub throttle_clock_waits: bool,
    /// A queue is throttled in the accounting that used up its runtime (7.x).
    pub throttles_at_once: bool,
    /// Fair decisions reschedule lazily under `preempt=lazy` (6.13 and later).
    pub lazy: bool,
    /// When HRTICK's timer is due.
    pub hrtick: HrtickRule,
    /// Its tick asks for a full reschedule, not for a lazy one (7.x).
    pub hrtick_full: bool,
    /// A timer that runs is left running when the running task has nobody beside it any more (7.x).
    pub hrtick_stays: bool,
    /// Load tracking.
    pub pelt: Signals,
    /// What keeps the real-time class from taking all the time.
    pub rt_limit: RtLimit,
    /// `__calc_delta` divides instead of multiplying by an inverse (7.x on 64 bits).
    pub delta_divides: bool,
}
