//! The rules of load tracking over the kernel's releases.

use super::series::CAPACITY_SHIFT;
use super::sum_floor::{SumFloor, UnchangedLoad};
use super::util_est::UtilEst;
use crate::history::table::{rules, Shown};

rules! {
    /// What of load tracking differs between releases.
    pub struct Signals in SIGNALS;

    /// The second signal is `runnable_load_avg`, weighted and without blocked tasks, instead of `runnable_avg`.
    BOTH "load: second signal" in "update_load_avg"
    runnable_load: bool = true,
        from "5.7" by "0dacee1bfa70" => false;

    /// How a queue's sums are kept with its averages when load leaves.
    BOTH "load: sums kept" in "update_cfs_rq_load_avg"
    floor: SumFloor = SumFloor::None,
        from "5.14" by "1c35b07e6d39" => SumFloor::Synced,
        from "5.17" by "95246d1ec80b" => SumFloor::Truncated,
        from "7.0" by "089d84203ad4" => SumFloor::Wide,
        seen "5.10.262" by "1c35b07e6d39" => SumFloor::Synced;

    /// What an unchanged average of load does to the sums when a group's load is propagated.
    BOTH "load: unchanged averages" in "update_tg_cfs_load"
    unchanged_load: UnchangedLoad = UnchangedLoad::Follows,
        from "5.14" by "83c5e9d573e1" => UnchangedLoad::EntityOnly,
        from "5.17" by "2d02fa8cc21a" => UnchangedLoad::Nothing;

    /// Load that is propagated is divided by the largest sum at the end of a segment, LOAD_AVG_MAX, wherever in the
    /// segment the parent's queue is.
    BOTH "load: divider of propagated load" in "update_tg_cfs_load"
    propagates_by_max: bool = true,
        from "5.8" by "95d685935a2e" => false;

    /// The sum of load is kept with its average when a queued entity leaves or changes its weight too.
    BOTH "load: sums kept at dequeues" in "dequeue_load_avg"
    dequeue_keeps_load_sum: bool = false,
        from "5.14" by "ceb6ba45dc80" => true;

    /// The sum of utilisation is raised to its average, as from 5.17 on, when utilisation of entities that left while
    /// they slept is removed; elsewhere it is computed from the average.
    BOTH "load: removed utilisation" in "update_cfs_rq_load_avg"
    removed_util_raised: bool = false,
        from "5.17" by "98b0d890220d" => true,
        seen "5.10.262" by "98b0d890220d" => true,
        seen "5.15.148" by "98b0d890220d" => true;

    /// An entity that joins a queue with almost no load has a sum of at least 1.
    BOTH "load: least sum" in "attach_entity_load_avg"
    attach_keeps_load_sum: bool = false,
        from "5.18" by "40f5aa4c5eae" => true,
        seen "5.10.262" by "40f5aa4c5eae" => true,
        seen "5.15.148" by "40f5aa4c5eae" => true;

    /// Delayed tasks do not count in a queue's runnable signal.
    BOTH "load: delayed tasks" in "se_update_runnable"
    delayed_not_runnable: bool = false,
        from "6.13" by "76f2f783294d" => true,
        from "6.12.7" by "76f2f783294d" => true;

    /// A waking task that leaves an idle CPU is decayed by the time its queue was not updated.
    BOTH "load: waking from idle" in "migrate_se_pelt_lag"
    migrate_lag: bool = false,
        from "6.0" by "e2f3e35f1f5a" => true;

    /// A queued task that moves is detached within its dequeue (DO_DETACH).
    BOTH "load: detached within the dequeue" in "update_load_avg"
    detach_in_dequeue: bool = false,
        from "6.1" by "e1f078f50478" => true;

    /// A new task's utilisation is estimated with its weight at full resolution, which mostly exceeds the cap.
    BOTH "load: new tasks" in "post_init_entity_util_avg"
    init_full_weight: bool = true,
        from "6.10" by "72bffbf57c52" => false;

    /// Estimated utilisation.
    BOTH "load: util_est" in "util_est_update"
    util_est: UtilEst = UtilEst::PAIR,
        from "5.13" by "68d7a190682a" => UtilEst::PAIR_KEEPS_LAST,
        from "6.8" by "11137d384996" => UtilEst::SINGLE,
        seen "5.10.262" by "68d7a190682a" => UtilEst::PAIR_KEEPS_LAST;

    /// `update_tg_load_avg` runs at most once per this many ns and queue.
    BOTH "load: how often of groups" in "update_tg_load_avg"
    tg_update_interval: u64 = 0,
        from "6.7" by "1528c661c24b" => 1_000_000;

    /// The CPUs whose domains are built anew contribute nothing to the load of groups until its next update, and one
    /// that is offline nothing at all.
    BOTH "load: groups on CPUs that are offline" in "clear_tg_offline_cfs_rqs"
    offline_leaves_groups: bool = false,
        from "6.8" by "f60a631ab9ed" => true;

    /// The weight that a group divides among CPUs grows with its runnable tasks, up to the number of CPUs in its
    /// cpuset, without cpusets of those online (`cgroup_mode` concur, the default); before, it is its shares.
    BOTH "load: shares of groups" in "calc_group_shares"
    shares_by_tasks: bool = false,
        from "7.3" unverified "read in 7.3.4" => true;
}

impl Signals {
    /// As in the release that `text` names.
    #[cfg(test)]
    pub(crate) const fn of(text: &str) -> Signals {
        Signals::at(crate::history::release::Release::new(text))
    }

    /// The scale of the second signal's sum.
    #[inline]
    #[must_use]
    pub const fn runnable_shift(&self) -> u32 {
        if self.runnable_load {
            0
        } else {
            CAPACITY_SHIFT
        }
    }
}

impl Shown for SumFloor {
    fn shown(&self) -> String {
        match self {
            SumFloor::None => "reduced on their own",
            SumFloor::Synced => "computed from the averages",
            SumFloor::Truncated => "raised to the averages, in 32 bits",
            SumFloor::Wide => "raised to the averages",
        }
        .to_owned()
    }
}

impl Shown for UnchangedLoad {
    fn shown(&self) -> String {
        match self {
            UnchangedLoad::Follows => "both sums follow",
            UnchangedLoad::EntityOnly => "the entity's sum follows",
            UnchangedLoad::Nothing => "both sums stay",
        }
        .to_owned()
    }
}

impl Shown for UtilEst {
    fn shown(&self) -> String {
        match *self {
            UtilEst::PAIR => "last value and average",
            UtilEst::PAIR_KEEPS_LAST => "last value, always kept, and average",
            _ => "one number",
        }
        .to_owned()
    }
}
