//! Every scheduler feature switch of `kernel/sched/features.h`, one line of data each.

use crate::version::series::Series;

/// What is known about one feature.
#[derive(Debug)]
pub struct FeatureInfo {
    /// The switch.
    pub feature: Feature,
    /// Kernel name.
    pub name: &'static str,
    /// What it does.
    pub effect: &'static str,
    /// Why switching it would change nothing in this model, where that is so; then it is refused.
    pub left_out: Option<&'static str>,
    defaults: &'static [u8; SERIES],
}

const SERIES: usize = 12;

/// `Variant NAME "why it is not modelled, if it is not" "one letter per Series: T on, F off, - absent" "effect"`.
macro_rules! features {
    ($($variant:ident $name:ident $left_out:literal $defaults:literal $effect:literal;)*) => {
        /// A feature switch, named as in the kernel.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Feature {
            $(#[doc = $effect] $variant,)*
        }

        static FEATURES: &[FeatureInfo] = &[$(FeatureInfo {
            feature: Feature::$variant,
            name: stringify!($name),
            effect: $effect,
            left_out: if $left_out.is_empty() { None } else { Some($left_out) },
            defaults: $defaults,
        },)*];
    };
}

//                     5.2 5.7 5.13 6.1 6.3 RFC 6.6 6.12.0 6.12.107 6.18.2 6.18.44 7.2
features! {
    GentleFairSleepers GENTLE_FAIR_SLEEPERS "" b"TTTTT-------" "halve the credit of a sleeper";
    StartDebit START_DEBIT "" b"TTTTT-------" "place a new task one slice to the right";
    PlaceLag PLACE_LAG "" b"-----TTTTTTT" "keep the lag over sleep and migration";
    PlaceFudge PLACE_FUDGE "" b"-----T------" "place short slices at zero lag";
    PlaceBonus PLACE_BONUS "" b"-----F------" "move a sleeper left by half a slice";
    MinimalVa MINIMAL_VA "" b"-----F------" "measure vruntimes from V instead of the minimum";
    PlaceDeadlineInitial PLACE_DEADLINE_INITIAL "" b"-----TTTTTTT" "a new task's first slice is half as long";
    PlaceRelDeadline PLACE_REL_DEADLINE "" b"-------TTTTT" "keep the relative deadline over a requeue";
    RunToParity RUN_TO_PARITY "" b"------TTTTTT" "let the running task reach parity or its slice";
    PreemptShort PREEMPT_SHORT "" b"-------TTTTT" "a shorter slice may break that protection";
    NextBuddy NEXT_BUDDY "" b"FFFFFFFFFFFF" "prefer the task woken last";
    LastBuddy LAST_BUDDY "" b"TTTTT-------" "prefer the task preempted last";
    PickBuddy PICK_BUDDY "" b"--------TTTT" "honour the next buddy when picking";
    CacheHotBuddy CACHE_HOT_BUDDY "" b"TTTTTTTTTTTT" "the balancer treats buddies as cache hot";
    DelayDequeue DELAY_DEQUEUE "" b"-------TTTTT" "a sleeper that owes service stays queued";
    DelayZero DELAY_ZERO "" b"-------TTTTT" "such a sleeper never comes back with credit";
    ParanoidAvg PARANOID_AVG "a check, it decides nothing" b"-----------F" "check the sums for overflow";
    WakeupPreemption WAKEUP_PREEMPTION "" b"TTTTTTTTTTTT" "a wakeup may preempt at all";
    Hrtick HRTICK "" b"FFFFFFFFFFFT" "a timer at the exact end of the slice (7.2: off without CONFIG_HRTIMER_REARM_DEFERRED)";
    HrtickDl HRTICK_DL "there is no SCHED_DEADLINE" b"--FFFFFFFFFT" "the same for SCHED_DEADLINE";
    DoubleTick DOUBLE_TICK "" b"FFFFFFFFF---" "up to 6.3: test at the tick although the timer is armed";
    NontaskCapacity NONTASK_CAPACITY "they do not here" b"TTTTTTTTTTTT" "interrupts reduce a CPU's capacity";
    TtwuQueue TTWU_QUEUE "" b"TTTTTTTTTTTT" "queue a remote wakeup by interrupt";
    SisAvgCpu SIS_AVG_CPU "" b"FF----------" "skip the idle search when idle time is short";
    SisProp SIS_PROP "" b"TTTFFFF-----" "bound the idle search by average idle time";
    SisUtil SIS_UTIL "" b"---TTTTTTTTT" "bound the idle search by the LLC's utilisation";
    LbBias LB_BIAS "there are no averages (cpu_load[]) to choose from" b"F-----------" "bias the balancer towards staying";
    LbMin LB_MIN "" b"FFFFFFFFFFFF" "the balancer leaves tiny loads alone";
    AttachAgeLoad ATTACH_AGE_LOAD "they always are" b"TTTTTTTTTTTT" "age loads before they are attached";
    WaIdle WA_IDLE "" b"TTTTTTTTTTTT" "wake_affine: prefer an idle waker or previous CPU";
    WaWeight WA_WEIGHT "" b"TTTTTTTTTTTT" "wake_affine: compare loads";
    WaBias WA_BIAS "" b"TTTTTTTTTTTT" "wake_affine: bias the comparison by the domain's imbalance";
    UtilEst UTIL_EST "" b"TTTTTTTTTTTT" "estimate utilisation over sleeps";
    UtilEstFastup UTIL_EST_FASTUP "" b"-TTTTTT-----" "let the estimate rise at once";
    RtPushIpi RT_PUSH_IPI "they are pulled directly" b"TTTFTTTTFTFF" "push real-time tasks by interrupt";
    RtRuntimeShare RT_RUNTIME_SHARE "" b"TTFFFFFFFFFF" "the real-time class borrows runtime from other CPUs";
    WarnDoubleClock WARN_DOUBLE_CLOCK "a check, it decides nothing" b"FFFFFFFFFFFF" "debugging aid";
    LatencyWarn LATENCY_WARN "a check, it decides nothing" b"--FFFFFFFFFF" "debugging aid";
    AltPeriod ALT_PERIOD "" b"--TTT-------" "the period counts the CPU's tasks, not the queue's";
    BaseSlice BASE_SLICE "" b"--TTT-------" "a slice is never below min_granularity";
    HzBw HZ_BW "no CPU stops its tick while it is busy" b"------T-----" "keep the tick for bandwidth-limited tasks";
    NiRandom NI_RANDOM "" b"---T----T-TT" "skip newidle balancing at random by its success rate";
    NiRate NI_RATE "successes alone count" b"-----------T" "count the rate of newidle balancing as success";
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
    /// Whether switching it changes anything in this model.
    #[must_use]
    pub fn is_modelled(&self) -> bool {
        self.left_out.is_none()
    }

    /// The default in a kernel of that series; `None` where the feature does not exist.
    #[must_use]
    pub fn default_in(&self, series: Series) -> Option<bool> {
        match self.defaults[series as usize] {
            b'T' => Some(true),
            b'F' => Some(false),
            _ => None,
        }
    }
}

/// The features that are on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// The features a kernel of that series boots with.
    #[must_use]
    pub fn defaults(series: Series) -> FeatureSet {
        let mut set = FeatureSet::default();
        for info in FEATURES {
            set.put(info.feature, info.default_in(series) == Some(true));
        }
        set
    }

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
            assert!(info.defaults.iter().all(|c| b"TF-".contains(c)), "{}", info.name);
        }
    }

    #[test]
    fn defaults_of_the_modelled_rows() {
        let on = |version: &str| -> Vec<&str> {
            let set = Version::find(version).unwrap().features();
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
