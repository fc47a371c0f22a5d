//! Which kernel is modelled: one row of data per version, never a fork of the code.
//!
//! A row names a [`Series`] (the column of the feature and knob tables) and the rules its `kernel/sched/fair.c`
//! follows. Code asks a row for a rule; it never compares version names.

use crate::config::PreemptModel;
use crate::features::{Feature, FeatureSet};
use crate::pelt::Signals;
use crate::rt::RtLimit;
use crate::weight::FIXEDPOINT_SHIFT;
use schedlab_model::nearest;

/// The columns of the feature and knob tables, oldest first. A column is not yet a version: only [`Version::all`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Series {
    V5_2,
    V5_7,
    V5_13,
    V6_1,
    V6_3,
    EevdfRfc,
    V6_6,
    V6_12_0,
    V6_12_107,
    V6_18,
    V7_2,
}

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
        /// Also when a running task is only requeued, not just when it is picked (6.18).
        renewed_by_requeue: bool,
    },
}

/// The zero point of vruntimes (v0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZeroPoint {
    /// `min_vruntime`: the smallest vruntime, never moving left.
    Minimum,
    /// `zero_vruntime`: V, moved whenever V is computed (6.12 stable, 7.x).
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
}

/// The bound of the lag an entity keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LagLimit {
    /// Twice its own slice, or a tick if that is longer.
    OwnSlice,
    /// The longest slice on the queue and a tick (7.x).
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
    /// As before, a shorter slice looks through the protection (6.18).
    Unprotected,
    /// As before, but forks never preempt and delayed entities met on the way leave (7.x).
    Requeue,
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
    Replaced,
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
    /// Protection of the running entity.
    pub protection: Protection,
    /// `task_fork_fair` charges the parent and places the child on the forking CPU (up to 6.6).
    pub fork_places: bool,
    /// The first enqueue after fork is known as such (6.12 and later): half a slice.
    pub initial_enqueue: bool,
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
    /// A group's slice.
    pub group_slice: GroupSlice,
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
    /// A queue is throttled in the accounting that used up its runtime (7.x).
    pub throttles_at_once: bool,
    /// Fair decisions reschedule lazily under `preempt=lazy` (6.13 and later).
    pub lazy: bool,
    /// HRTICK.
    pub hrtick: HrtickRule,
    /// Load tracking.
    pub pelt: Signals,
    /// What keeps the real-time class from taking all the time.
    pub rt_limit: RtLimit,
    /// `__calc_delta` divides instead of multiplying by an inverse (7.x on 64 bits).
    pub delta_divides: bool,
}

/// One kernel version.
#[derive(Debug)]
pub struct Version {
    /// Canonical name, as scenario files and results print it.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// One line for people: the exact tree the row was read from.
    pub summary: &'static str,
    /// Column of the feature and knob tables.
    pub series: Series,
    /// Rule choices.
    pub rules: Rules,
    /// Preemption models it can be built or booted with.
    pub preempt_models: &'static [PreemptModel],
    /// The model used when nobody says otherwise.
    pub preempt_default: PreemptModel,
}

/// No such version.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown kernel version \"{name}\"")]
pub struct VersionError {
    /// What was asked for.
    pub name: String,
    /// The closest names that exist, best first.
    pub nearest: Vec<&'static str>,
}

impl VersionError {
    /// What to do instead.
    #[must_use]
    pub fn hint(&self) -> String {
        let all: Vec<&str> = Version::all().iter().map(|v| v.name).collect();
        match self.nearest.first() {
            Some(name) => format!("did you mean \"{name}\"? modelled versions: {}", all.join(", ")),
            None => format!("modelled versions: {}", all.join(", ")),
        }
    }
}

const CLASSIC_PREEMPT: &[PreemptModel] = &[PreemptModel::None, PreemptModel::Voluntary, PreemptModel::Full];
const LAZY_PREEMPT: &[PreemptModel] =
    &[PreemptModel::None, PreemptModel::Voluntary, PreemptModel::Full, PreemptModel::Lazy];
/// Where the architecture supports it, 7.x is built with these two only.
const NEW_PREEMPT: &[PreemptModel] = &[PreemptModel::Full, PreemptModel::Lazy];

const SCALED: Averaging = Averaging { shift: FIXEDPOINT_SHIFT, wide: false, truncates: false };

/// 6.1; the fields that only EEVDF reads are as in its first version.
const CFS: Rules = Rules {
    policy: Policy::Cfs,
    tree_key: TreeKey::Vruntime,
    idle: IdleRule::TaskThenEntity,
    idle_slice_floor: true,
    idle_sleeper_credit: true,
    tick_slice_cap: false,
    long_sleeper: true,
    pick_clears_buddies: false,
    sysctl_updates_nr_latency: false,
    prio_changed_alone: false,
    protection: Protection::None,
    fork_places: true,
    initial_enqueue: false,
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
    group_slice: GroupSlice::Base,
    keeps_empty_weight: false,
    bandwidth_burst: true,
    bandwidth_expires: false,
    throttle_borrows: true,
    throttles_tasks: false,
    throttles_at_once: false,
    lazy: false,
    hrtick: HrtickRule::Slice,
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

const CFS_5_2: Rules = Rules { prio_changed_alone: true, pelt: Signals::V5_2, bandwidth_expires: true, ..CFS_5_7 };

const EEVDF_RFC: Rules = Rules {
    policy: Policy::Eevdf,
    averaging: Averaging { truncates: true, ..SCALED },
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
    protection: Protection::Vprot { renewed_by_requeue: true },
    wakeup: WakeupRule::Unprotected,
    reweight_deadline: true,
    reweight: Reweight::Replaced,
    throttles_tasks: true,
    lazy: true,
    ..EEVDF_6_12_STABLE
};

const EEVDF_7: Rules = Rules {
    zero: ZeroPoint::Average,
    averaging: Averaging { shift: 0, wide: true, truncates: false },
    lag_limit: LagLimit::LongestSlice,
    delayed_lag: DelayedLag::Heals,
    protection: Protection::Vprot { renewed_by_requeue: false },
    wakeup: WakeupRule::Requeue,
    hrtick: HrtickRule::Deadline,
    pelt: Signals::V7_2,
    delta_divides: true,
    reweight: Reweight::AroundAverage,
    throttles_at_once: true,
    ..EEVDF_6_18
};

static VERSIONS: [Version; 11] = [
    Version {
        name: "5.2",
        aliases: &["5.2.1"],
        summary: "CFS as in 5.2.1: the period counts the queue's own entities, slices have no floor",
        series: Series::V5_2,
        rules: CFS_5_2,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "5.7",
        aliases: &["5.7.14"],
        summary: "CFS as in 5.7.14: as 5.2, but a nice change of a lone task no longer reschedules",
        series: Series::V5_7,
        rules: CFS_5_7,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "5.13",
        aliases: &[],
        summary: "CFS as in 5.13 (between 5.11 and 5.14.2): ALT_PERIOD and BASE_SLICE, knobs in debugfs",
        series: Series::V5_13,
        rules: CFS_5_13,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.1",
        aliases: &["6.1.192"],
        summary: "CFS as in Debian 6.1.192 (stable backports included, autogroup off)",
        series: Series::V6_1,
        rules: CFS,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.3",
        aliases: &["6.3.8"],
        summary: "CFS as in 6.3.8: the tick caps slices at sched_latency",
        series: Series::V6_3,
        rules: CFS_6_3,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "eevdf-rfc",
        aliases: &[],
        summary: "the EEVDF series of March 2023 on 6.3: latency-nice, PLACE_FUDGE, PLACE_BONUS, a pick at every tick",
        series: Series::EevdfRfc,
        rules: EEVDF_RFC,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.6",
        aliases: &["6.6.0"],
        summary: "EEVDF as in 6.6.0: RUN_TO_PARITY, one slice for all, tree by vruntime",
        series: Series::V6_6,
        rules: EEVDF_6_6,
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.12.0",
        aliases: &[],
        summary: "EEVDF as in vanilla 6.12.0: delayed dequeue, custom slices, PREEMPT_SHORT",
        series: Series::V6_12_0,
        rules: EEVDF_6_12,
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
        preempt_models: CLASSIC_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "6.18",
        aliases: &["6.18.2"],
        summary: "EEVDF as in 6.18.2: protection by shortest slice (vprot), lazy rescheduling",
        series: Series::V6_18,
        rules: EEVDF_6_18,
        preempt_models: LAZY_PREEMPT,
        preempt_default: PreemptModel::Voluntary,
    },
    Version {
        name: "7.2",
        aliases: &["7.2.13"],
        summary: "EEVDF as in Debian 7.2.13: full-resolution weights, lag that heals while delayed, lazy by default",
        series: Series::V7_2,
        rules: EEVDF_7,
        preempt_models: NEW_PREEMPT,
        preempt_default: PreemptModel::Lazy,
    },
];

impl Version {
    /// Every modelled version, oldest first.
    #[must_use]
    pub fn all() -> &'static [Version] {
        &VERSIONS
    }

    /// The version called `name`, by canonical name or alias.
    pub fn find(name: &str) -> Result<&'static Version, VersionError> {
        let known = |v: &&Version| v.name == name || v.aliases.contains(&name);
        VERSIONS
            .iter()
            .find(known)
            .ok_or_else(|| VersionError { name: name.to_string(), nearest: nearest_versions(name) })
    }

    /// The row a kernel release such as `6.12.107+deb13-cloud-amd64` belongs to, if it is modelled: by its whole number, or
    /// by a row that stands for its series.
    #[must_use]
    pub fn of_release(release: &str) -> Option<&'static Version> {
        let number: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let mut parts = number.split('.');
        let series = [parts.next()?, parts.next()?].join(".");
        Version::find(&number).or_else(|_| Version::find(&series)).ok()
    }

    /// The feature switches as this kernel boots with them.
    #[must_use]
    pub fn features(&self) -> FeatureSet {
        FeatureSet::defaults(self.series)
    }
}

/// The names closest to one that does not exist: by release number if it has one, else by spelling.
fn nearest_versions(name: &str) -> Vec<&'static str> {
    let Some(wanted) = release(name) else {
        return nearest(name, VERSIONS.iter().map(|v| v.name));
    };
    let mut names: Vec<&'static str> = VERSIONS.iter().map(|v| v.name).collect();
    names.sort_by_key(|name| release(name).map_or(u64::MAX, |release| release.abs_diff(wanted)));
    names.truncate(3);
    names
}

/// Major, minor and sublevel as one ordered number.
fn release(name: &str) -> Option<u64> {
    let mut parts = name.trim_start_matches('v').split(['.', '-']).map(|part| part.parse::<u16>().ok());
    let (major, minor) = (parts.next()??, parts.next().flatten().unwrap_or(0));
    Some(u64::from(major) << 32 | u64::from(minor) << 16 | u64::from(parts.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_or_answered_with_the_nearest() {
        assert_eq!(Version::find("6.1").unwrap().name, "6.1");
        for (alias, name) in [("6.1.192", "6.1"), ("6.12", "6.12.107"), ("7.2.13", "7.2")] {
            assert_eq!(Version::find(alias).unwrap().name, name);
        }
        for (wrong, nearest) in [("6.12.108", "6.12.107"), ("6.2", "6.1"), ("v6.1", "6.1"), ("7.1", "7.2")] {
            assert_eq!(Version::find(wrong).unwrap_err().nearest[0], nearest, "{wrong}");
        }
        assert!(Version::find("").unwrap_err().hint().contains("6.12.0"));
    }
}
