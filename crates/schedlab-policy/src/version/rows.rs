//! The versions: which rules each row follows, oldest first; a row says only what differs from another.

use super::rules::{
    Averaging, DelayedLag, GroupSlice, HrtickRule, IdleRule, LagLimit, Policy, Protection, Reweight, Rules, SearchRule,
    SliceSource, TreeKey, WakeupRule, YieldRule, ZeroPoint,
};
use super::series::Series;
use super::{names, Version};
use crate::features::Feature;
use crate::pelt::Signals;
use crate::preempt_model::PreemptModel;
use crate::rt::RtLimit;
use crate::select::rules as placement;
use crate::weight::FIXEDPOINT_SHIFT;

pub(super) static VERSIONS: [Version; 12] = [
    Version {
        name: "5.2",
        aliases: &["5.2.1"],
        summary: "CFS as in 5.2.1: the period counts the queue's own entities, slices have no floor",
        series: Series::V5_2,
        rules: CFS_5_2,
        placement: placement::V5_2,
        names: &names::CHECK_PREEMPT_CURR,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "5.7",
        aliases: &["5.7.14"],
        summary: "CFS as in 5.7.14: as 5.2, but a nice change of a lone task no longer reschedules",
        series: Series::V5_7,
        rules: CFS_5_7,
        placement: placement::V5_7,
        names: &names::CHECK_PREEMPT_CURR,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "5.13",
        aliases: &[],
        summary: "CFS as in 5.13 (between 5.11 and 5.14.2): ALT_PERIOD and BASE_SLICE, knobs in debugfs",
        series: Series::V5_13,
        rules: CFS_5_13,
        placement: placement::V5_13,
        names: &names::CHECK_PREEMPT_CURR,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.1",
        aliases: &["6.1.192"],
        summary: "CFS as in Debian 6.1.192 (stable backports included, autogroup off)",
        series: Series::V6_1,
        rules: CFS,
        placement: placement::V6_1,
        names: &names::CHECK_PREEMPT_CURR,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.3",
        aliases: &["6.3.8"],
        summary: "CFS as in 6.3.8: the tick caps slices at sched_latency",
        series: Series::V6_3,
        rules: CFS_6_3,
        placement: placement::V6_3,
        names: &names::CHECK_PREEMPT_CURR,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "eevdf-rfc",
        aliases: &[],
        summary: "the EEVDF series of March 2023 on 6.3: latency-nice, PLACE_FUDGE, PLACE_BONUS, a pick at every tick",
        series: Series::EevdfRfc,
        rules: EEVDF_RFC,
        placement: placement::V6_3,
        names: &names::CHECK_PREEMPT_CURR,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.6",
        aliases: &["6.6.0"],
        summary: "EEVDF as in 6.6.0: RUN_TO_PARITY, one slice for all, tree by vruntime",
        series: Series::V6_6,
        rules: EEVDF_6_6,
        placement: placement::V6_6,
        names: &names::CHECK_PREEMPT_CURR,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.12.0",
        aliases: &[],
        summary: "EEVDF as in vanilla 6.12.0: delayed dequeue, custom slices, PREEMPT_SHORT",
        series: Series::V6_12_0,
        rules: EEVDF_6_12,
        placement: placement::V6_12,
        names: &names::WAKEUP_PREEMPT,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.12.107",
        aliases: &["6.12"],
        summary:
            "EEVDF as in Debian 6.12.107: zero_vruntime, PICK_BUDDY, 0.70 ms base slice, yield gives up the request",
        series: Series::V6_12_107,
        rules: EEVDF_6_12_STABLE,
        placement: placement::V6_12_107,
        names: &names::WAKEUP_PREEMPT,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.18.2",
        aliases: &[],
        summary: "EEVDF as in 6.18.2: protection by shortest slice (vprot), lazy rescheduling",
        series: Series::V6_18_2,
        rules: EEVDF_6_18,
        placement: placement::V6_18,
        names: &names::WAKEUP_PREEMPT,
        preempt_models: LAZY_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.18.44",
        aliases: &["6.18"],
        summary: "EEVDF as in 6.18.44: 6.18.2 with zero_vruntime, lag bound by the longest slice, forks never preempt",
        series: Series::V6_18_44,
        rules: EEVDF_6_18_STABLE,
        placement: placement::V6_18,
        names: &names::WAKEUP_PREEMPT,
        preempt_models: LAZY_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "7.2",
        aliases: &["7.2.13"],
        summary: "EEVDF as in Debian 7.2.13: full-resolution weights, lag that heals while delayed, lazy by default",
        series: Series::V7_2,
        rules: EEVDF_7,
        placement: placement::V7_2,
        names: &names::WAKEUP_PREEMPT_FAIR,
        preempt_models: NEW_PREEMPT,
        preempt_default: PreemptModel::Lazy,
    },
];
const CLASSIC_PREEMPT: &[PreemptModel] = &[PreemptModel::None, PreemptModel::Voluntary, PreemptModel::Full];
const LAZY_PREEMPT: &[PreemptModel] =
    &[PreemptModel::None, PreemptModel::Voluntary, PreemptModel::Full, PreemptModel::Lazy];
/// Where the architecture supports it, 7.x is built with these two only.
const NEW_PREEMPT: &[PreemptModel] = &[PreemptModel::Full, PreemptModel::Lazy];

const SCALED: Averaging = Averaging { shift: FIXEDPOINT_SHIFT, wide: false, truncates: false, slices: false };

/// 6.1; the fields that only EEVDF reads are as in its first version.
const CFS: Rules = Rules {
    policy: Policy::Cfs,
    tree_key: TreeKey::Vruntime,
    search: SearchRule::OnePass,
    idle: IdleRule::TaskThenEntity,
    idle_slice_floor: true,
    idle_sleeper_credit: true,
    tick_slice_cap: false,
    long_sleeper: true,
    pick_clears_buddies: false,
    sysctl_updates_nr_latency: false,
    prio_changed_alone: false,
    move_reschedules: true,
    protection: Protection::None,
    fork_places: true,
    initial_enqueue: false,
    keeps_rel_deadline: false,
    place_moves_zero: false,
    zero: ZeroPoint::Minimum,
    averaging: SCALED,
    lag_limit: LagLimit::OwnSlice,
    delayed_lag: DelayedLag::Dropped,
    slice: SliceSource::Base,
    wakeup: WakeupRule::Granularity,
    idle_loses_protection: false,
    expiry_reschedules: false,
    buddy_feature: Feature::NextBuddy,
    yields: YieldRule::Skip,
    reweight_deadline: false,
    reweight: Reweight::Nothing,
    reweights_unchanged: true,
    reweight_charges: false,
    group_slice: GroupSlice::Base,
    stale_slices: true,
    keeps_empty_weight: false,
    bandwidth_burst: true,
    bandwidth_expires: false,
    throttle_borrows: true,
    throttles_tasks: false,
    throttle_clock_waits: false,
    throttles_at_once: false,
    lazy: false,
    hrtick: HrtickRule::Slice,
    hrtick_full: false,
    hrtick_stays: false,
    pelt: Signals::V6_1,
    rt_limit: RtLimit::Throttling,
    delta_divides: false,
};

const CFS_6_3: Rules = Rules { tick_slice_cap: true, ..CFS };

const CFS_5_13: Rules = Rules {
    idle: IdleRule::Task,
    idle_slice_floor: false,
    idle_sleeper_credit: false,
    long_sleeper: false,
    pelt: Signals::V5_13,
    bandwidth_burst: false,
    ..CFS
};

const CFS_5_7: Rules = Rules {
    pick_clears_buddies: true,
    sysctl_updates_nr_latency: true,
    pelt: Signals::V5_7,
    throttle_borrows: false,
    ..CFS_5_13
};

const CFS_5_2: Rules = Rules {
    prio_changed_alone: true,
    move_reschedules: false,
    pelt: Signals::V5_2,
    bandwidth_expires: true,
    ..CFS_5_7
};

const EEVDF_RFC: Rules = Rules {
    policy: Policy::Eevdf,
    averaging: Averaging { truncates: true, slices: true, ..SCALED },
    slice: SliceSource::LatencyNice,
    wakeup: WakeupRule::Pick,
    yields: YieldRule::LaterDeadline,
    ..CFS
};

const EEVDF_6_6: Rules = Rules {
    averaging: SCALED,
    slice: SliceSource::Base,
    protection: Protection::Marker,
    expiry_reschedules: true,
    reweight: Reweight::Deadline,
    search: SearchRule::Remembers,
    throttle_clock_waits: true,
    ..EEVDF_RFC
};

const EEVDF_6_12: Rules = Rules {
    tree_key: TreeKey::Deadline,
    idle: IdleRule::Entity,
    fork_places: false,
    initial_enqueue: true,
    slice: SliceSource::Custom,
    wakeup: WakeupRule::BreakMarker,
    pelt: Signals::V6_12,
    rt_limit: RtLimit::FairServer,
    reweight: Reweight::AroundAverage,
    reweights_unchanged: false,
    reweight_charges: true,
    group_slice: GroupSlice::Stale,
    ..EEVDF_6_6
};

const EEVDF_6_12_STABLE: Rules = Rules {
    zero: ZeroPoint::Average,
    idle_loses_protection: true,
    buddy_feature: Feature::PickBuddy,
    yields: YieldRule::ForfeitRequest,
    pelt: Signals::V6_12_STABLE,
    group_slice: GroupSlice::Exact,
    keeps_empty_weight: true,
    ..EEVDF_6_12
};

const EEVDF_6_18: Rules = Rules {
    zero: ZeroPoint::Minimum,
    protection: Protection::Vprot { renewed_by_requeue: true, in_vlag: true },
    wakeup: WakeupRule::Unprotected,
    reweight_deadline: true,
    reweight: Reweight::Replaced { keeps_protection: false },
    keeps_rel_deadline: true,
    throttles_tasks: true,
    lazy: true,
    ..EEVDF_6_12_STABLE
};

const EEVDF_6_18_STABLE: Rules = Rules {
    zero: ZeroPoint::Average,
    lag_limit: LagLimit::LongestSlice,
    protection: Protection::Vprot { renewed_by_requeue: false, in_vlag: true },
    wakeup: WakeupRule::Requeue { over_buddy: false },
    reweight: Reweight::Replaced { keeps_protection: true },
    ..EEVDF_6_18
};

const EEVDF_7: Rules = Rules {
    averaging: Averaging { shift: 0, wide: true, truncates: false, slices: false },
    stale_slices: false,
    delayed_lag: DelayedLag::Heals,
    protection: Protection::Vprot { renewed_by_requeue: false, in_vlag: false },
    wakeup: WakeupRule::Requeue { over_buddy: true },
    hrtick: HrtickRule::Deadline,
    hrtick_full: true,
    hrtick_stays: true,
    keeps_rel_deadline: false,
    place_moves_zero: true,
    pelt: Signals::V7_2,
    delta_divides: true,
    reweight: Reweight::AroundAverage,
    throttles_at_once: true,
    ..EEVDF_6_18_STABLE
};
