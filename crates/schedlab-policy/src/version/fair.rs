//! The rules of the fair and real-time classes over the kernel's releases.

use super::choices::{
    Algorithm, Averaging, DelayedLag, GroupSlice, HrtickRule, IdleRule, LagLimit, Protection, Reweight, SearchRule,
    SliceSource, Throttling, TreeKey, WakeupRule, YieldRule, ZeroPoint,
};
use crate::features::Feature;
use crate::history::table::rules;
use crate::pelt::signals::Signals;
use crate::version::choices::RtLimit;
use crate::weight::FIXEDPOINT_SHIFT;

rules! {
    /// The rules of the fair and real-time classes that differ between releases.
    pub struct Rules in RULES, with pelt: Signals;

    /// The algorithm of the fair class.
    EITHER "algorithm" in "pick_next_entity"
    algorithm: Algorithm = Algorithm::Cfs,
        from "6.6" by "147f3efaa241" => Algorithm::Eevdf;

    /// Order of the red-black tree.
    EITHER "pick: order of the tree" in "__enqueue_entity"
    tree_key: TreeKey = TreeKey::Vruntime,
        from "6.8" by "2227a957e1d5" => TreeKey::Deadline;

    /// Search of a tree sorted by vruntime.
    EEVDF "pick: search" in "pick_eevdf"
    search: SearchRule = SearchRule::OnePass,
        from "6.6" by "b01db23d5923" => SearchRule::Remembers;

    /// Whether a woken task preempts.
    EITHER_PROTECTION "wakeup preemption" in "check_preempt_wakeup"
    wakeup: WakeupRule = WakeupRule::Granularity,
        from "6.6" by "147f3efaa241" => WakeupRule::Pick,
        from "6.12" by "85e511df3cec" => WakeupRule::BreakMarker,
        from "6.17" by "74eec63661d4" => WakeupRule::Unprotected,
        from "6.19" by "e837456fdca8" => WakeupRule::Awake { over_buddy: false },
        from "7.1" by "78cde54ea5f0" => WakeupRule::Awake { over_buddy: true },
        seen "6.18.33" by "e837456fdca8" => WakeupRule::Awake { over_buddy: false };

    /// The pick of that check takes delayed entities off the queue, as the pick of a switch does.
    EEVDF "wakeup preemption: delayed entities" in "wakeup_preempt_fair"
    wakeup_dequeues_delayed: bool = false,
        from "7.1" by "ac8e69e69363" => true,
        seen "6.18.33" by "ac8e69e69363" => true,
        seen "7.0.10" by "ac8e69e69363" => true;

    /// A wakeup is checked even if the running task must reschedule already, while PREEMPT_SHORT is on.
    EEVDF "wakeup preemption: reschedule pending" in "wakeup_preempt_fair"
    checks_while_pending: bool = false,
        from "7.3" by "7ad0ec7890b3" => true;

    /// An eligible wakee with a shorter slice preempts even if another entity would be picked.
    EEVDF "wakeup preemption: shorter slices" in "wakeup_preempt_fair"
    short_needs_no_pick: bool = false,
        from "7.3" by "ba0d3bf5f97b" => true;

    /// A wakee that preempts by a shorter slice becomes the next buddy, unless the present one's slice is shorter
    /// still.
    EEVDF "wakeup preemption: short buddy" in "set_short_buddy"
    short_becomes_buddy: bool = false,
        from "7.3" by "8f97b627ff1c" => true;

    /// A check that does not preempt bounds the protection, whatever the reason, and one that does ends it.
    EEVDF_PROTECTION "protection: after every check" in "wakeup_preempt_fair"
    checks_update_protection: bool = false,
        from "7.3" by "7cd2ef17de5e" => true;

    /// Where a shorter slice waits and PREEMPT_SHORT is on, the protection lasts until the entity is not eligible.
    EEVDF_PROTECTION "protection: until not eligible" in "set_protect_slice"
    protects_until_ineligible: bool = false,
        from "7.3" by "0d1e7a2bab35" => true;

    /// A woken entity bounds the protection from V where the running entity has passed it.
    EEVDF_PROTECTION "protection: bounded from V" in "update_protect_slice"
    protection_from_average: bool = false,
        from "7.3" by "49f87b4d0be8" => true;

    /// Protection of the running entity from an earlier deadline.
    EEVDF_PROTECTION "protection: renewal" in "set_protect_slice"
    protection: Protection = Protection::None,
        from "6.6" by "63304558ba5d" => Protection::Marker,
        from "6.17" by "052c3d87c82e" => Protection::Vprot { renewed_by_requeue: true, in_vlag: true },
        from "7.0" by "bcd74b2ffdd0" => Protection::Vprot { renewed_by_requeue: false, in_vlag: true },
        from "7.0" by "80390ead2080" => Protection::Vprot { renewed_by_requeue: false, in_vlag: false },
        seen "6.18.44" by "bcd74b2ffdd0" => Protection::Vprot { renewed_by_requeue: false, in_vlag: true },
        seen "6.19.14" by "bcd74b2ffdd0" => Protection::Vprot { renewed_by_requeue: false, in_vlag: true };

    /// What counts as idle in wakeup preemption.
    BOTH "idle entities: what is idle" in "check_preempt_wakeup"
    idle: IdleRule = IdleRule::Task,
        from "5.15" by "304000390f88" => IdleRule::TaskThenEntity,
        from "6.12" by "faa42d29419d" => IdleRule::Entity;

    /// An idle entity that another one preempts loses its protection.
    EEVDF_PROTECTION "idle entities: protection" in "check_preempt_wakeup_fair"
    idle_loses_protection: bool = false,
        from "6.15" by "f553741ac8c0" => true,
        from "6.12.23" by "f553741ac8c0" => true;

    /// The slice of an idle entity that competes with others is at least idle_min_granularity.
    CFS "idle entities: slice floor" in "sched_slice"
    idle_slice_floor: bool = false,
        from "5.16" by "51ce83ed523b" => true;

    /// An idle entity's sleeper credit is min_granularity.
    CFS "idle entities: sleeper credit" in "place_entity"
    idle_sleeper_credit: bool = false,
        from "5.16" by "2cae3948edd4" => true;

    /// The tick caps the ideal slice at sched_latency.
    CFS "tick: slice cap" in "check_preempt_tick"
    tick_slice_cap: bool = false,
        from "6.3" by "79ba1e607d68" => true,
        from "6.6" by "5e963f2bd465" => false;

    /// An entity that slept for 104 days is placed without comparing vruntimes.
    CFS "placement: long sleepers" in "place_entity"
    long_sleeper: bool = false,
        from "6.3" by "829c1651e9c4" => true,
        seen "5.10.262" by "829c1651e9c4" => true,
        seen "5.15.148" by "829c1651e9c4" => true,
        from "6.1.22" by "829c1651e9c4" => true;

    /// A fork charges the parent and places the child on the forking CPU; later the child is placed by its first
    /// enqueue, which is known as such.
    EITHER "placement: forks" in "task_fork_fair"
    fork_places: bool = true,
        from "6.12" by "c40dd90ac045" => false;

    /// A relative deadline is kept even without PLACE_REL_DEADLINE.
    EEVDF "placement: relative deadline" in "place_entity"
    keeps_rel_deadline: bool = false,
        from "6.13" by "6d71a9c61604" => true,
        from "7.1" by "101f3498b4bd" => false;

    /// Placing an entity heavier than the queue moves v0 along.
    EEVDF "placement: zero point follows" in "place_entity"
    place_moves_zero: bool = false,
        from "7.1" by "556146ce5e94" => true;

    /// The lag to place with is a sum, so that its product with a weight does not overflow.
    EEVDF "placement: lag as a sum" in "place_entity"
    lag_as_sum: bool = false,
        from "7.3" unverified "read in 7.3.4" => true;

    /// The zero point of vruntimes.
    EITHER "zero point of vruntimes" in "update_zero_vruntime"
    zero: ZeroPoint = ZeroPoint::Minimum,
        from "6.19" by "79f3f9bedd14" => ZeroPoint::AverageOfTree,
        from "7.0" by "b3d99f43c72b" => ZeroPoint::Average,
        from "6.12.64" by "79f3f9bedd14" => ZeroPoint::AverageOfTree,
        from "6.12.78" by "b3d99f43c72b" => ZeroPoint::Average,
        seen "6.18.5" by "79f3f9bedd14" => ZeroPoint::AverageOfTree,
        seen "6.18.44" by "b3d99f43c72b" => ZeroPoint::Average,
        seen "6.19.14" by "b3d99f43c72b" => ZeroPoint::Average;

    /// V is rounded towards v0 instead of down.
    EEVDF "average: rounding" in "avg_vruntime"
    average_truncates: bool = false;

    /// Weights in the sums of V have their full resolution, and eligibility is compared in 128 bits.
    EEVDF "average: weights in full" in "avg_vruntime_weight"
    average_full_weights: bool = false,
        from "7.1" by "4823725d9d1d" => true;

    /// The weighted sum of slices is kept too.
    EEVDF "average: of slices" in "avg_slice_add"
    average_slices: bool = false;

    /// Where a task's slice comes from.
    EEVDF "slices: source" in "set_slice"
    slice: SliceSource = SliceSource::Base,
        from "6.12" by "857b158dc5e8" => SliceSource::Custom;

    /// The slice of a group's entity.
    EEVDF "slices: of groups" in "set_min_slice"
    group_slice: GroupSlice = GroupSlice::Base,
        from "6.12" by "aef6987d8954" => GroupSlice::Stale,
        from "6.15" by "563bc2161b94" => GroupSlice::Exact,
        from "6.12.23" by "563bc2161b94" => GroupSlice::Exact;

    /// The shortest slice that a tree's node keeps of its subtree does not follow where nodes change places.
    EEVDF "slices: stale in trees" in "min_vruntime_cb"
    stale_slices: bool = true,
        from "7.3" by "51b0e68cfa0a" => false,
        seen "7.2.13" by "51b0e68cfa0a" => false;

    /// The bound of an entity's lag.
    EEVDF_PROTECTION "lag: limit" in "entity_lag"
    lag_limit: LagLimit = LagLimit::OwnSlice,
        from "7.0" by "6e3c0a4e1ad1" => LagLimit::LongestSlice,
        seen "6.18.44" by "6e3c0a4e1ad1" => LagLimit::LongestSlice,
        seen "6.19.14" by "6e3c0a4e1ad1" => LagLimit::LongestSlice;

    /// The lag of an entity whose dequeue is delayed.
    EEVDF "lag: delayed entities" in "requeue_delayed_entity"
    delayed_lag: DelayedLag = DelayedLag::Dropped,
        from "7.1" by "059258b0d424" => DelayedLag::Heals;

    /// A slice that ends reschedules; without this the tick picks anew.
    EEVDF_PROTECTION "slice end reschedules" in "update_curr"
    expiry_reschedules: bool = false,
        from "6.6" by "147f3efaa241" => true;

    /// The running entity is charged before an entity whose dequeue is delayed is queued again.
    EEVDF "lag: charge before a requeue" in "requeue_delayed_entity"
    requeue_charges: bool = false,
        from "7.2" unverified "read in 7.2.13; 7.1.13 does not have it" => true;

    /// The feature that lets the pick honour the next buddy.
    EEVDF "buddies: which feature" in "pick_next_entity"
    buddy_feature: Feature = Feature::NextBuddy,
        from "6.14" by "2a77e4be12cb" => Feature::PickBuddy,
        from "6.12.13" by "2a77e4be12cb" => Feature::PickBuddy;

    /// Picking an entity clears it as a buddy even if it runs already.
    CFS "buddies: cleared by the pick" in "pick_next_task_fair"
    pick_clears_buddies: bool = true,
        from "5.14" by "21f56ffe4482" => false;

    /// What `sched_yield` does.
    EITHER "yield" in "yield_task_fair"
    yields: YieldRule = YieldRule::Skip,
        from "6.6" by "147f3efaa241" => YieldRule::LaterDeadline,
        from "6.19" by "79104becf42b" => YieldRule::ForfeitRequest,
        from "6.12.63" by "79104becf42b" => YieldRule::ForfeitRequest,
        seen "6.18.2" by "79104becf42b" => YieldRule::ForfeitRequest;

    /// What a new weight does to a queued entity.
    EITHER "reweight: how" in "reweight_entity"
    reweight: Reweight = Reweight::Nothing,
        from "6.6" by "147f3efaa241" => Reweight::Deadline,
        from "6.7" by "eab03c23c2a1" => Reweight::AroundOthers { updates_min: false },
        from "6.8" by "5068d84054b7" => Reweight::AroundOthers { updates_min: true },
        from "6.9" by "afae8002b4fd" => Reweight::AroundAverage,
        from "6.13" by "6d71a9c61604" => Reweight::Replaced { keeps_protection: false },
        from "7.0" by "ff38424030f9" => Reweight::Replaced { keeps_protection: true },
        from "7.1" by "101f3498b4bd" => Reweight::AroundAverage,
        seen "6.6.9" by "eab03c23c2a1" => Reweight::AroundOthers { updates_min: false },
        from "6.6.14" by "5068d84054b7" => Reweight::AroundOthers { updates_min: true },
        seen "6.18.44" by "ff38424030f9" => Reweight::Replaced { keeps_protection: true },
        seen "6.19.14" by "ff38424030f9" => Reweight::Replaced { keeps_protection: true };

    /// A new weight rescales a relative deadline too.
    EEVDF "reweight: relative deadline" in "rescale_entity"
    reweight_deadline: bool = false,
        from "6.13" by "6d71a9c61604" => true;

    /// A task that becomes SCHED_IDLE is reweighted as by a new nice value; before, its weight was merely replaced, and
    /// the lag that it brings back is worth less service.
    EITHER "reweight: to SCHED_IDLE" in "set_load_weight"
    idle_reweights: bool = false,
        from "6.11" by "d32960528702" => true,
        seen "5.10.262" unverified "not read there; the 5.15 and 6.1 series have it since July 2024" => true,
        from "6.1.103" by "d32960528702" => true;

    /// `update_cfs_group` reweights even if the weight stays.
    BOTH "reweight: unchanged weights" in "update_cfs_group"
    reweights_unchanged: bool = true,
        from "6.7" by "eab03c23c2a1" => false,
        seen "6.6.9" by "eab03c23c2a1" => false;

    /// A new weight of any queued entity charges the running one first; before, only its own new weight did.
    BOTH "reweight: charges first" in "reweight_entity"
    reweight_charges: bool = false,
        from "6.9" by "afae8002b4fd" => true;

    /// Tasks of all groups compete on the queue of their CPU, by weights along the hierarchy, which a task takes over
    /// when it is queued or picked and at its ticks.
    EEVDF "groups: one queue" in "enqueue_task_fair"
    flat_hierarchy: bool = false,
        from "7.3" unverified "read in 7.3.4" => true;

    /// A group without load on a CPU keeps its weight there, which matters while it is delayed.
    EITHER "groups: weight while empty" in "update_cfs_group"
    keeps_empty_weight: bool = false,
        from "6.13" by "66951e4860d3" => true,
        from "6.12.11" by "66951e4860d3" => true;

    /// A running task that changes its group reschedules.
    CFS "groups: a move reschedules" in "sched_move_task"
    move_reschedules: bool = false,
        from "5.6" by "2a4b03ffc69f" => true;

    /// A new policy dequeues and enqueues a queued task with DEQUEUE_MOVE, so its vruntime is made relative to a
    /// min_vruntime that has advanced to the waiting tasks: a running task loses its lead.
    CFS "new policy: moves the task" in "__sched_setscheduler"
    setscheduler_moves: bool = true,
        from "5.14" by "f558c2b834ec" => false,
        seen "5.10.262" by "f558c2b834ec" => false;

    /// Unused quota carries over, up to quota and burst.
    BOTH "quota: burst" in "__refill_cfs_bandwidth_runtime"
    bandwidth_burst: bool = false,
        from "5.14" by "f4183717b370" => true;

    /// The period timer of each group has a random phase. Up to 6.3 the timers of groups with equal periods expire
    /// together.
    BOTH "quota: periods of groups apart" in "init_cfs_bandwidth"
    bandwidth_interleaves: bool = false,
        from "6.4" by "41abdba93747" => true;

    /// A queue's runtime expires with its period.
    BOTH "quota: slices expire" in "expire_cfs_rq_runtime"
    bandwidth_expires: bool = true,
        from "5.4" by "de53fd7aedb1" => false;

    /// A queue about to be throttled looks once more whether there is any runtime.
    BOTH "quota: borrows once more" in "throttle_cfs_rq"
    throttle_borrows: bool = false,
        from "5.8" by "e98fa02c4f2e" => true;

    /// Throttled time counts only while tasks are queued.
    BOTH "quota: time of empty groups" in "throttle_cfs_rq"
    throttle_clock_waits: bool = false,
        from "6.6" by "79462e8c879a" => true;

    /// When the tasks of a group that used up its quota leave the queue.
    BOTH "quota: what leaves, when" in "throttle_cfs_rq"
    throttling: Throttling = Throttling::Queue,
        from "6.18" by "e1fad12dcb66" => Throttling::Tasks,
        from "7.2" by "f666241e6bd5" => Throttling::TasksAtOnce;

    /// What keeps the real-time class from taking all the time.
    BOTH "real-time: limit" in "update_curr_rt"
    rt_limit: RtLimit = RtLimit::Throttling,
        from "6.12" by "5f6bd380c7bd" => RtLimit::FairServer;

    /// A nice change of the only task reschedules.
    CFS "nice: lone task" in "prio_changed_fair"
    prio_changed_alone: bool = true,
        from "5.6" by "7c2e8bbd87db" => false;

    /// Writing latency or granularity recomputes `sched_nr_latency`.
    CFS "sysctl: nr_latency" in "sched_proc_update_handler"
    sysctl_updates_nr_latency: bool = true,
        from "5.13" by "8a99b6833c88" => false;

    /// When the timer of HRTICK fires.
    EITHER "hrtick: when" in "hrtick_start_fair"
    hrtick: HrtickRule = HrtickRule::Slice,
        from "7.1" by "558c18d3fbb6" => HrtickRule::Deadline;

    /// Its tick reschedules fully instead of lazily.
    BOTH "hrtick: full reschedule" in "entity_tick"
    hrtick_full: bool = false,
        from "7.1" by "5d88e424ec1b" => true;

    /// A running timer stays armed when the running task becomes the only one.
    BOTH "hrtick: stays armed" in "hrtick_update"
    hrtick_stays: bool = false,
        from "7.1" by "97015376642f" => true;

    /// Divides by the weight instead of multiplying by its inverse, on 64 bits.
    BOTH "calc_delta: division" in "__calc_delta"
    delta_divides: bool = false,
        from "7.1" by "db4551e2ba34" => true;

    /// Fair decisions reschedule lazily under `preempt=lazy`.
    PREEMPTION "lazy rescheduling" in "resched_curr_lazy"
    lazy: bool = false,
        from "6.13" by "7c70cb94d29c" => true;
}

impl Rules {
    /// How V is computed.
    #[must_use]
    pub const fn averaging(&self) -> Averaging {
        Averaging {
            shift: if self.average_full_weights { 0 } else { FIXEDPOINT_SHIFT },
            wide: self.average_full_weights,
            truncates: self.average_truncates,
            slices: self.average_slices,
        }
    }

    /// Throttled tasks leave one by one.
    #[inline]
    #[must_use]
    pub const fn throttles_tasks(&self) -> bool {
        !matches!(self.throttling, Throttling::Queue)
    }

    /// A queue is throttled in the accounting that used up its runtime.
    #[inline]
    #[must_use]
    pub const fn throttles_at_once(&self) -> bool {
        matches!(self.throttling, Throttling::TasksAtOnce)
    }
}
