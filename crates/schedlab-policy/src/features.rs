//! Every switch of `kernel/sched/features.h` over the kernel's releases.

use crate::history::left_out::{left_out, LeftOut};
use crate::history::release::{since, when, Change, When};

/// What is known about one feature.
#[derive(Debug)]
pub struct FeatureInfo {
    /// The switch.
    pub feature: Feature,
    /// Kernel name.
    pub name: &'static str,
    /// What it does.
    pub effect: &'static str,
    /// Where switching it changes nothing in this model; there it is refused.
    pub(crate) left_out: Option<LeftOut>,
    /// For a switch of a series that was not merged: the message that posted it, and on what.
    pub proposed: Option<&'static str>,
    pub(crate) first: Option<bool>,
    pub(crate) changes: &'static [Change<Option<bool>>],
}

const ON: Option<bool> = Some(true);
const OFF: Option<bool> = Some(false);
const ABSENT: Option<bool> = None;

/// The message of a series that was not merged, if the entry names one.
macro_rules! proposed {
    () => {
        None
    };
    ($mail:literal) => {
        Some($mail)
    };
}

/// An entry reads
///
/// ```text
/// /// What it does.
/// Variant KERNEL_NAME VALUE_IN_THE_OLDEST_ROW,
///     from "6.12" by "COMMIT" => VALUE,
///     left_out(from "6.12" because "switching it changes nothing, and why");
///     proposed("MESSAGE-ID of a series that was not merged");
/// ```
macro_rules! features {
    ($(
        #[doc = $effect:literal]
        $Variant:ident $NAME:ident $first:ident
        $(, $how:ident $release:literal $origin:ident $text:literal => $value:ident)*
        $(; left_out($($out:tt)*))?
        $(; proposed($mail:literal))?;
    )+) => {
        /// A feature switch, named as in the kernel.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Feature {
            $(#[doc = $effect] $Variant,)+
        }

        static FEATURES: &[FeatureInfo] = &[$(FeatureInfo {
            feature: Feature::$Variant,
            name: stringify!($NAME),
            effect: $effect.trim_ascii(),
            left_out: left_out!($($($out)*)?),
            proposed: proposed!($($mail)?),
            first: $first,
            changes: &[$(Change { when: when!($how $release $origin $text), value: $value },)*],
        },)+];
    };
}

features! {
    /// halve the credit of a sleeper
    GentleFairSleepers GENTLE_FAIR_SLEEPERS ON, from "6.6" by "86bfbb7ce4f6" => ABSENT;
    /// place a new task one slice to the right
    StartDebit START_DEBIT ON, from "6.6" by "e0c2ff903c32" => ABSENT;
    /// keep the lag over sleep and migration
    PlaceLag PLACE_LAG ABSENT, from "6.6" by "86bfbb7ce4f6" => ON;
    /// place short slices at zero lag
    PlaceFudge PLACE_FUDGE ABSENT;
    /// move a sleeper left by half a slice
    PlaceBonus PLACE_BONUS ABSENT;
    /// measure vruntimes from V instead of the minimum
    MinimalVa MINIMAL_VA ABSENT;
    /// a new task's first slice is half as long
    PlaceDeadlineInitial PLACE_DEADLINE_INITIAL ABSENT, from "6.6" by "147f3efaa241" => ON;
        left_out(until "6.12" because "the first enqueue places a new task again, without it");
    /// keep the relative deadline over a requeue
    PlaceRelDeadline PLACE_REL_DEADLINE ABSENT, from "6.12" by "82e9d0456e06" => ON;
    /// let the running task reach parity or its slice
    RunToParity RUN_TO_PARITY ABSENT, from "6.6" by "63304558ba5d" => ON;
    /// a shorter slice may break that protection
    PreemptShort PREEMPT_SHORT ABSENT, from "6.12" by "85e511df3cec" => ON;
    /// prefer the task woken last
    NextBuddy NEXT_BUDDY OFF;
    /// prefer the task preempted last
    LastBuddy LAST_BUDDY ON, from "6.6" by "5e963f2bd465" => ABSENT;
    /// honour the next buddy when picking
    PickBuddy PICK_BUDDY ABSENT, from "6.14" by "2a77e4be12cb" => ON, from "6.12.13" by "2a77e4be12cb" => ON;
    /// the balancer treats buddies as cache hot
    CacheHotBuddy CACHE_HOT_BUDDY ON;
    /// a sleeper with negative lag stays queued
    DelayDequeue DELAY_DEQUEUE ABSENT, from "6.12" by "152e11f6df29" => ON;
    /// such a sleeper never wakes with positive lag
    DelayZero DELAY_ZERO ABSENT, from "6.12" by "54a58a787791" => ON;
    /// check the sums for overflow
    ParanoidAvg PARANOID_AVG ABSENT, from "7.1" by "4823725d9d1d" => OFF;
        left_out(because "a check, it decides nothing");
    /// a wakeup may preempt at all
    WakeupPreemption WAKEUP_PREEMPTION ON;
    /// a timer at the exact end of the slice (7.1 and later: off without CONFIG_HRTIMER_REARM_DEFERRED)
    Hrtick HRTICK OFF, from "7.1" by "9213aa4784cf" => ON;
    /// the same for SCHED_DEADLINE
    HrtickDl HRTICK_DL ABSENT, from "5.12" by "e0ee463c93c4" => OFF, from "7.1" by "9213aa4784cf" => ON;
    /// up to 6.3: test at the tick although the timer is armed
    DoubleTick DOUBLE_TICK OFF, from "6.13" by "e31488c9df27" => ABSENT;
        left_out(from "6.6" because "nothing reads it since check_preempt_tick() was removed");
    /// interrupts reduce a CPU's capacity
    NontaskCapacity NONTASK_CAPACITY ON;
        left_out(because "interrupts do not reduce capacity here");
    /// queue a remote wakeup by interrupt
    TtwuQueue TTWU_QUEUE ON;
    /// skip the idle search when idle time is short
    SisAvgCpu SIS_AVG_CPU OFF, from "5.12" by "e6e0dc2d5497" => ABSENT;
    /// the CPU scan of the idle search skips CPUs that the core scan found busy
    SisIteratorMask SIS_ITERATOR_MASK ABSENT;
        proposed("20190708045432.18774-1-parth@linux.ibm.com on 5.2, not merged");
    /// a CPU about to become idle first pulls from its cache's queue of woken tasks
    Swqueue SWQUEUE ABSENT;
        proposed("20230613052004.2836135-1-void@manifault.com on 6.3, not merged");
    /// bound the idle search by average idle time
    SisProp SIS_PROP ON, from "6.0" by "70fb5ccf2ebb" => OFF, from "6.7" by "984ffb6a4366" => ABSENT,
        seen "5.15.148" by "70fb5ccf2ebb" => OFF;
    /// bound the idle search by the LLC's utilisation
    SisUtil SIS_UTIL ABSENT, from "6.0" by "70fb5ccf2ebb" => ON, seen "5.15.148" by "70fb5ccf2ebb" => ON;
    /// bias the balancer towards staying
    LbBias LB_BIAS OFF, from "5.3" by "1c1b8a7b03ef" => ABSENT;
        left_out(because "there are no averages (cpu_load[]) to choose from");
    /// the balancer leaves tiny loads alone
    LbMin LB_MIN OFF;
    /// age loads before they are attached
    AttachAgeLoad ATTACH_AGE_LOAD ON;
        left_out(because "loads are always aged first");
    /// wake_affine: prefer an idle waker or previous CPU
    WaIdle WA_IDLE ON;
    /// wake_affine: compare loads
    WaWeight WA_WEIGHT ON;
    /// wake_affine: bias the comparison by the domain's imbalance
    WaBias WA_BIAS ON;
    /// estimate utilisation over sleeps
    UtilEst UTIL_EST ON;
    /// let the estimate rise at once
    UtilEstFastup UTIL_EST_FASTUP ABSENT, from "5.5" by "b8c96361402a" => ON, from "6.8" by "7736ae5572eb" => ABSENT;
    /// push real-time tasks by interrupt
    RtPushIpi RT_PUSH_IPI ON,
        from "7.2" by "dd29c017aed6" => OFF,
        from "6.1.178" by "dd29c017aed6" => OFF,
        from "6.12.96" by "dd29c017aed6" => OFF,
        seen "6.18.44" by "dd29c017aed6" => OFF,
        seen "7.1.13" by "dd29c017aed6" => OFF;
        left_out(because "real-time tasks are pulled directly");
    /// the real-time class borrows runtime from other CPUs
    RtRuntimeShare RT_RUNTIME_SHARE ON, from "5.10" by "2586af1ac187" => OFF;
        left_out(from "6.12" because "without RT_GROUP_SCHED no runtime is left to borrow since the deadline server");
    /// debugging aid
    WarnDoubleClock WARN_DOUBLE_CLOCK OFF;
        left_out(because "a check, it decides nothing");
    /// debugging aid
    LatencyWarn LATENCY_WARN ABSENT, from "5.13" by "c006fac556e4" => OFF;
        left_out(because "a check, it decides nothing");
    /// the period counts the CPU's tasks, not the queue's
    AltPeriod ALT_PERIOD ABSENT, from "5.13" by "0c2de3f054a5" => ON, from "6.6" by "5e963f2bd465" => ABSENT,
        seen "5.10.262" by "0c2de3f054a5" => ON;
    /// a slice is never below min_granularity
    BaseSlice BASE_SLICE ABSENT, from "5.13" by "0c2de3f054a5" => ON, from "6.6" by "5e963f2bd465" => ABSENT,
        seen "5.10.262" by "0c2de3f054a5" => ON;
    /// keep the tick for bandwidth-limited tasks
    HzBw HZ_BW ABSENT, from "6.6" by "88c56cfeaec4" => ON, from "6.12" by "a58501fb8320" => ABSENT;
        left_out(because "no CPU stops its tick while it is busy");
    /// skip newidle balancing at random by its success rate
    NiRandom NI_RANDOM ABSENT,
        from "6.19" by "33cf66d88306" => ON,
        from "6.1.160" by "33cf66d88306" => ON,
        from "6.12.65" by "33cf66d88306" => ON,
        seen "6.18.5" by "33cf66d88306" => ON;
    /// newidle balancing that is rarely called is tried more often than its successes justify
    NiRate NI_RATE ABSENT, from "7.1" by "9fe89f022c05" => ON;
}

impl Feature {
    /// Every feature any modelled kernel has.
    #[must_use]
    pub fn all() -> &'static [FeatureInfo] {
        FEATURES
    }

    /// The feature called `name` in the kernel.
    #[must_use]
    pub fn find(name: &str) -> Option<Feature> {
        FEATURES.iter().find(|info| info.name == name).map(|info| info.feature)
    }

    /// What is known about it.
    #[must_use]
    pub fn info(self) -> &'static FeatureInfo {
        &FEATURES[self as usize]
    }
}

impl FeatureInfo {
    /// The changes of its default, without their values.
    pub fn history(&self) -> impl Iterator<Item = When> {
        self.changes.iter().map(|change| change.when)
    }

    /// The releases that changed its default, with their commits.
    #[must_use]
    pub fn since(&self) -> String {
        since(&self.history().collect::<Vec<_>>())
    }
}

/// The features that are on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// Whether the feature is on.
    #[inline]
    #[must_use]
    pub fn has(self, feature: Feature) -> bool {
        self.0 >> feature as u32 & 1 == 1
    }

    /// Switches a feature.
    pub fn put(&mut self, feature: Feature, on: bool) {
        let bit = 1 << feature as u32;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    #[test]
    fn table_is_well_formed() {
        assert!(FEATURES.len() <= 64, "FeatureSet is one word");
        for (index, info) in FEATURES.iter().enumerate() {
            assert_eq!(info.feature as usize, index, "{}", info.name);
            let values: Vec<Option<bool>> = info.changes.iter().map(|change| change.value).collect();
            let mainline = |change: &&Change<Option<bool>>| change.when.first && change.when.release.is_mainline();
            let first = std::iter::once(info.first);
            let line: Vec<_> = first.chain(info.changes.iter().filter(mainline).map(|change| change.value)).collect();
            assert!(line.windows(2).all(|pair| pair[0] != pair[1]), "{}: {values:?}", info.name);
        }
    }

    #[test]
    fn defaults_of_the_modelled_rows() {
        let on = |version: &str| -> Vec<&str> {
            let set = Version::find(version).unwrap().feature_set();
            FEATURES.iter().filter(|i| set.has(i.feature)).map(|i| i.name).collect()
        };
        let cfs = on("6.1");
        for name in ["GENTLE_FAIR_SLEEPERS", "START_DEBIT", "LAST_BUDDY", "ALT_PERIOD", "BASE_SLICE", "NI_RANDOM"] {
            assert!(cfs.contains(&name), "{name}");
        }
        let eevdf = on("6.12.0");
        for name in ["PLACE_LAG", "PLACE_REL_DEADLINE", "RUN_TO_PARITY", "PREEMPT_SHORT", "DELAY_DEQUEUE", "DELAY_ZERO"]
        {
            assert!(eevdf.contains(&name) && !cfs.contains(&name), "{name}");
        }
        assert!(!eevdf.contains(&"NEXT_BUDDY") && !eevdf.contains(&"NI_RANDOM"));
    }
}
