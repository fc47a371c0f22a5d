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
    /// Whether switching it changes anything in this model.
    pub modelled: bool,
    defaults: &'static [u8; SERIES],
}

const SERIES: usize = 11;

/// `Variant NAME modelled "one letter per Series: T on, F off, - absent" "effect"`.
macro_rules! features {
    ($($variant:ident $name:ident $modelled:literal $defaults:literal $effect:literal;)*) => {
        /// A feature switch, named as in the kernel.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Feature {
            $(#[doc = $effect] $variant,)*
        }

        static FEATURES: &[FeatureInfo] = &[$(FeatureInfo {
            feature: Feature::$variant,
            name: stringify!($name),
            effect: $effect,
            modelled: $modelled,
            defaults: $defaults,
        },)*];
    };
}

//                     5.2 5.7 5.13 6.1 6.3 RFC 6.6 6.12.0 6.12.107 6.18 7.2
features! {
    GentleFairSleepers GENTLE_FAIR_SLEEPERS true b"TTTTT------" "halve the credit of a sleeper";
    StartDebit START_DEBIT true b"TTTTT------" "place a new task one slice to the right";
    PlaceLag PLACE_LAG true b"-----TTTTTT" "keep the lag over sleep and migration";
    PlaceFudge PLACE_FUDGE true b"-----T-----" "place short slices at zero lag";
    PlaceBonus PLACE_BONUS true b"-----F-----" "move a sleeper left by half a slice";
    MinimalVa MINIMAL_VA true b"-----F-----" "measure vruntimes from V instead of the minimum";
    PlaceDeadlineInitial PLACE_DEADLINE_INITIAL true b"-----TTTTTT" "a new task's first slice is half as long";
    PlaceRelDeadline PLACE_REL_DEADLINE true b"-------TTTT" "keep the relative deadline over a requeue";
    RunToParity RUN_TO_PARITY true b"------TTTTT" "let the running task reach parity or its slice";
    PreemptShort PREEMPT_SHORT true b"-------TTTT" "a shorter slice may break that protection";
    NextBuddy NEXT_BUDDY true b"FFFFFFFFFFF" "prefer the task woken last";
    LastBuddy LAST_BUDDY true b"TTTTT------" "prefer the task preempted last";
    PickBuddy PICK_BUDDY true b"--------TTT" "honour the next buddy when picking";
    CacheHotBuddy CACHE_HOT_BUDDY true b"TTTTTTTTTTT" "the balancer treats buddies as cache hot";
    DelayDequeue DELAY_DEQUEUE true b"-------TTTT" "a sleeper that owes service stays queued";
    DelayZero DELAY_ZERO true b"-------TTTT" "such a sleeper never comes back with credit";
    ParanoidAvg PARANOID_AVG false b"----------F" "check the sums for overflow";
    WakeupPreemption WAKEUP_PREEMPTION true b"TTTTTTTTTTT" "a wakeup may preempt at all";
    Hrtick HRTICK true b"FFFFFFFFFFT" "a timer at the exact end of the slice";
    HrtickDl HRTICK_DL false b"--FFFFFFFFT" "the same for SCHED_DEADLINE";
    DoubleTick DOUBLE_TICK true b"FFFFFFFFF--" "up to 6.3: test at the tick although the timer is armed";
    NontaskCapacity NONTASK_CAPACITY false b"TTTTTTTTTTT" "interrupts reduce a CPU's capacity";
    TtwuQueue TTWU_QUEUE true b"TTTTTTTTTTT" "queue a remote wakeup by interrupt";
    SisAvgCpu SIS_AVG_CPU true b"FF---------" "skip the idle search when idle time is short";
    SisProp SIS_PROP true b"TTTFFFF----" "bound the idle search by average idle time";
    SisUtil SIS_UTIL true b"---TTTTTTTT" "bound the idle search by the LLC's utilisation";
    LbBias LB_BIAS false b"F----------" "bias the balancer towards staying";
    LbMin LB_MIN true b"FFFFFFFFFFF" "the balancer leaves tiny loads alone";
    AttachAgeLoad ATTACH_AGE_LOAD false b"TTTTTTTTTTT" "age the load of an attached task";
    WaIdle WA_IDLE true b"TTTTTTTTTTT" "wake_affine: prefer an idle waker or previous CPU";
    WaWeight WA_WEIGHT true b"TTTTTTTTTTT" "wake_affine: compare loads";
    WaBias WA_BIAS true b"TTTTTTTTTTT" "wake_affine: bias the comparison by the domain's imbalance";
    UtilEst UTIL_EST true b"TTTTTTTTTTT" "estimate utilisation over sleeps";
    UtilEstFastup UTIL_EST_FASTUP true b"-TTTTTT----" "let the estimate rise at once";
    RtPushIpi RT_PUSH_IPI false b"TTTFTTTTFTF" "real-time push by interrupt";
    RtRuntimeShare RT_RUNTIME_SHARE true b"TTFFFFFFFFF" "the real-time class borrows runtime from other CPUs";
    WarnDoubleClock WARN_DOUBLE_CLOCK false b"FFFFFFFFFFF" "debugging aid";
    LatencyWarn LATENCY_WARN false b"--FFFFFFFFF" "debugging aid";
    AltPeriod ALT_PERIOD true b"--TTT------" "the period counts the CPU's tasks, not the queue's";
    BaseSlice BASE_SLICE true b"--TTT------" "a slice is never below min_granularity";
    HzBw HZ_BW false b"------T----" "keep the tick for bandwidth-limited tasks";
    NiRandom NI_RANDOM true b"---T----T-T" "skip newidle balancing at random by its success rate";
    NiRate NI_RATE false b"----------T" "scale newidle balancing's success ratio by its rate";
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
