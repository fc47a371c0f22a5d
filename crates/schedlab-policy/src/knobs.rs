//! Every scheduler knob (sysctl or debugfs file) of the model over the kernel's releases.

use crate::history::left_out::{left_out, LeftOut};
use crate::history::release::{since, when, Change, When};
use schedlab_model::Nanos;

/// What a knob's number counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnobUnit {
    /// Nanoseconds.
    Nanos,
    /// A plain number.
    Number,
}

/// What is known about one knob.
#[derive(Debug)]
pub struct KnobInfo {
    /// The knob.
    pub knob: Knob,
    /// Name of its debugfs file or sysctl without `sched_`, as [`Knob::find`] returns it.
    pub name: &'static str,
    /// Where 5.13 and later keep it.
    pub path: &'static str,
    /// What its number counts.
    pub unit: KnobUnit,
    /// What it does.
    pub effect: &'static str,
    /// Whether the default is multiplied by the tunable-scaling factor.
    pub scaled: bool,
    /// Smallest and largest value of its file; up to 5.12 sysctls had bounds of their own (kernel/sysctl.c). A length of 0
    /// would pass there, but means nothing.
    pub(crate) range: (u64, u64),
    pub(crate) range_up_to_5_12: (u64, u64),
    /// Where a write changes nothing in this model; there it is refused.
    pub(crate) left_out: Option<LeftOut>,
    pub(crate) first: Option<u64>,
    pub(crate) changes: &'static [Change<Option<u64>>],
}

const U32: (u64, u64) = (0, u32::MAX as u64);
const SLICE: (u64, u64) = (1, u32::MAX as u64);
const POSITIVE: (u64, u64) = (1, i32::MAX as u64);
const NOT_NEGATIVE: (u64, u64) = (0, i32::MAX as u64);
const OLD_SLICE: (u64, u64) = (100_000, 1_000_000_000);
const ABSENT: Option<u64> = None;

/// An entry reads
///
/// ```text
/// /// What it does.
/// Variant field "name" at "path" counts UNIT scaled BOOL takes RANGE before 5.13 RANGE:
///     DEFAULT_IN_THE_OLDEST_ROW,
///     from "6.12" by "COMMIT" => DEFAULT,
///     left_out(from "6.12" because "switching it changes nothing, and why");
/// ```
macro_rules! knobs {
    ($(
        #[doc = $effect:literal]
        $Variant:ident $field:ident $name:literal at $path:literal counts $Unit:ident scaled $scaled:literal
        takes $range:expr, before 5.13 $old_range:expr,
        default $first:expr
        $(, $how:ident $release:literal $origin:ident $text:literal => $value:expr)*
        $(; left_out($($out:tt)*))?;
    )+) => {
        /// A knob, named as in the kernel.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Knob {
            $(#[doc = $effect] $Variant,)+
        }

        static KNOBS: &[KnobInfo] = &[$(KnobInfo {
            knob: Knob::$Variant,
            name: $name,
            path: $path,
            unit: KnobUnit::$Unit,
            effect: $effect.trim_ascii(),
            scaled: $scaled,
            range: $range,
            range_up_to_5_12: $old_range,
            left_out: left_out!($($($out)*)?),
            first: $first,
            changes: &[$(Change { when: when!($how $release $origin $text), value: $value },)*],
        },)+];

        /// The values in force, scaled. A knob that the kernel lacks has the value it is introduced with, and is not
        /// read.
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        pub struct Knobs {
            $(#[doc = $effect] pub $field: Nanos,)+
            /// `sched_nr_latency`: tasks that fit one period of `latency`.
            pub nr_latency: u64,
        }

        impl Knobs {
            /// The value of one knob.
            #[must_use]
            pub fn get(&self, knob: Knob) -> u64 {
                match knob { $(Knob::$Variant => self.$field,)+ }
            }

            pub(crate) fn put(&mut self, knob: Knob, value: u64) {
                match knob { $(Knob::$Variant => self.$field = value,)+ }
            }
        }
    };
}

knobs! {
    /// period in which every task runs once
    Latency latency "latency_ns" at "sched/latency_ns" counts Nanos scaled true
    takes SLICE, before 5.13 OLD_SLICE,
    default Some(6_000_000), from "6.6" by "5e963f2bd465" => ABSENT;

    /// shortest slice before the tick preempts
    MinGranularity min_granularity "min_granularity_ns" at "sched/min_granularity_ns" counts Nanos scaled true
    takes SLICE, before 5.13 OLD_SLICE,
    default Some(750_000), from "6.6" by "e4ec3318a17f" => ABSENT;

    /// slice of a task without its own
    BaseSlice base_slice "base_slice_ns" at "sched/base_slice_ns" counts Nanos scaled true
    takes SLICE, before 5.13 SLICE,
    default ABSENT,
        from "6.6" by "e4ec3318a17f" => Some(750_000),
        from "6.15" by "2ae891b82695" => Some(700_000),
        from "6.12.31" by "2ae891b82695" => Some(700_000);

    /// lead that a wakee needs to preempt
    WakeupGranularity wakeup_granularity "wakeup_granularity_ns" at "sched/wakeup_granularity_ns" counts Nanos scaled true
    takes U32, before 5.13 (0, 1_000_000_000),
    default Some(1_000_000), from "6.6" by "5e963f2bd465" => ABSENT;

    /// shortest slice of an idle entity that competes with others
    IdleMinGranularity idle_min_granularity "idle_min_granularity_ns" at "sched/idle_min_granularity_ns" counts Nanos
    scaled false
    takes SLICE, before 5.13 SLICE,
    default ABSENT, from "5.16" by "51ce83ed523b" => Some(750_000), from "6.6" by "5e963f2bd465" => ABSENT;

    /// how slices grow with CPUs: 0 none, 1 log, 2 linear
    TunableScaling tunable_scaling "tunable_scaling" at "sched/tunable_scaling" counts Number scaled false
    takes (0, 2), before 5.13 (0, 2),
    default Some(1);
    left_out(because "it takes effect only when a CPU goes online or offline; set the slices instead");

    /// a task that ran this recently is cache hot; up to 5.15 also the least average idle time for newidle balancing, later a floor of its limit
    MigrationCost migration_cost "migration_cost_ns" at "sched/migration_cost_ns" counts Nanos scaled false
    takes U32, before 5.13 NOT_NEGATIVE,
    default Some(500_000);

    /// most tasks that one balancing pass looks at
    NrMigrate nr_migrate "nr_migrate" at "sched/nr_migrate" counts Number scaled false
    takes U32, before 5.13 NOT_NEGATIVE,
    default Some(32);

    /// a forked child runs before its parent
    ChildRunsFirst child_runs_first "child_runs_first" at "kernel.sched_child_runs_first" counts Number scaled false
    takes (0, 1), before 5.13 (0, 1),
    default Some(0), from "6.6" by "5e963f2bd465" => ABSENT;

    /// ms that a SCHED_RR task runs before the next of its priority, in whole ticks
    RrTimeslice rr_timeslice_ms "rr_timeslice_ms" at "kernel.sched_rr_timeslice_ms" counts Number scaled false
    takes (1, 60_000), before 5.13 (1, 60_000),
    default Some(100);

    /// us in which sched_rt_runtime_us is counted
    RtPeriod rt_period_us "rt_period_us" at "kernel.sched_rt_period_us" counts Number scaled false
    takes POSITIVE, before 5.13 POSITIVE,
    default Some(1_000_000);
    left_out(from "6.12" because "the deadline server of the fair class limits real-time tasks instead");

    /// us per period that real-time tasks may run; at most the period, which means no limit
    RtRuntime rt_runtime_us "rt_runtime_us" at "kernel.sched_rt_runtime_us" counts Number scaled false
    takes NOT_NEGATIVE, before 5.13 NOT_NEGATIVE,
    default Some(950_000);
    left_out(from "6.12" because "the deadline server of the fair class limits real-time tasks instead");

    /// 1: the threads of a process are brought together under one last-level cache
    LlcEnabled llc_enabled "llc_balancing/enabled" at "sched/llc_balancing/enabled" counts Number scaled false
    takes (0, 1), before 5.13 (0, 1),
    default ABSENT, from "7.2" unverified "read in 7.2.13" => Some(1);

    /// how many running threads of a process fit a cache, in its CPUs: 0 none, 100 any number
    LlcAggrTolerance llc_aggr_tolerance "llc_balancing/aggr_tolerance" at "sched/llc_balancing/aggr_tolerance"
    counts Number scaled false
    takes U32, before 5.13 U32,
    default ABSENT, from "7.2" unverified "read in 7.2.13" => Some(1);

    /// jiffies after which the run time of a process counts half; the kernel's default is HZ / 100
    LlcEpochPeriod llc_epoch_period "llc_balancing/epoch_period" at "sched/llc_balancing/epoch_period"
    counts Number scaled false
    takes POSITIVE, before 5.13 POSITIVE,
    default ABSENT, from "7.2" unverified "read in 7.2.13" => Some(2);

    /// epochs after which a process whose threads were not ticked prefers no cache
    LlcEpochAffinityTimeout llc_epoch_affinity_timeout "llc_balancing/epoch_affinity_timeout"
    at "sched/llc_balancing/epoch_affinity_timeout" counts Number scaled false
    takes U32, before 5.13 U32,
    default ABSENT, from "7.2" unverified "read in 7.2.13" => Some(5);

    /// percent of its capacity from which on a cache is busy, with one thread per core half as much again
    LlcOveraggrPct llc_overaggr_pct "llc_balancing/overaggr_pct" at "sched/llc_balancing/overaggr_pct"
    counts Number scaled false
    takes U32, before 5.13 U32,
    default ABSENT, from "7.2" unverified "read in 7.2.13" => Some(50);

    /// percent by which a busy cache may be used more than the other
    LlcImbPct llc_imb_pct "llc_balancing/imb_pct" at "sched/llc_balancing/imb_pct" counts Number scaled false
    takes U32, before 5.13 U32,
    default ABSENT, from "7.2" unverified "read in 7.2.13" => Some(20);

    /// 1: tasks move to the node of their memory, and pages to the node of their tasks
    NumaBalancing numa_balancing "numa_balancing" at "kernel.numa_balancing" counts Number scaled false
    takes (0, 1), before 5.13 (0, 1),
    default Some(1);
    left_out(until "5.7" because "NUMA balancing of kernels before 5.7, which searches for no idle CPU, is not modelled");

    /// ms from the start of a process until it is scanned for NUMA balancing
    NumaScanDelay numa_scan_delay "numa_balancing/scan_delay_ms" at "sched/numa_balancing/scan_delay_ms"
    counts Number scaled false
    takes U32, before 5.13 U32,
    default Some(1_000);
    left_out(until "5.7" because "NUMA balancing of kernels before 5.7, which searches for no idle CPU, is not modelled");

    /// shortest time in ms in which a process is scanned once
    NumaScanPeriodMin numa_scan_period_min "numa_balancing/scan_period_min_ms" at "sched/numa_balancing/scan_period_min_ms"
    counts Number scaled false
    takes U32, before 5.13 U32,
    default Some(1_000);
    left_out(until "5.7" because "NUMA balancing of kernels before 5.7, which searches for no idle CPU, is not modelled");

    /// longest time in ms in which a process is scanned once
    NumaScanPeriodMax numa_scan_period_max "numa_balancing/scan_period_max_ms" at "sched/numa_balancing/scan_period_max_ms"
    counts Number scaled false
    takes U32, before 5.13 U32,
    default Some(60_000);
    left_out(until "5.7" because "NUMA balancing of kernels before 5.7, which searches for no idle CPU, is not modelled");

    /// MiB of a process that are scanned at once
    NumaScanSize numa_scan_size "numa_balancing/scan_size_mb" at "sched/numa_balancing/scan_size_mb"
    counts Number scaled false
    takes (1, i32::MAX as u64), before 5.13 (1, i32::MAX as u64),
    default Some(256);
    left_out(until "5.7" because "NUMA balancing of kernels before 5.7, which searches for no idle CPU, is not modelled");

    /// us of its group's quota that a CPU takes at once
    CfsBandwidthSlice cfs_bandwidth_slice_us "cfs_bandwidth_slice_us" at "kernel.sched_cfs_bandwidth_slice_us"
    counts Number scaled false
    takes POSITIVE, before 5.13 POSITIVE,
    default Some(5_000);
}

impl Knob {
    /// Every knob any modelled kernel has.
    #[must_use]
    pub fn all() -> &'static [KnobInfo] {
        KNOBS
    }

    /// The knob called `name`: the file name, with or without its folder, `kernel.`, `sched_` and `_ns`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static KnobInfo> {
        let short = name.rsplit('/').next().unwrap_or(name);
        let short = short.strip_prefix("kernel.").unwrap_or(short);
        let short = short.strip_prefix("sched_").unwrap_or(short);
        let bare = |name: &'static str| name.strip_suffix("_ns").unwrap_or(name);
        // A file in a folder goes by both, or by the kernel's variable (`llc_imb_pct`).
        let in_folder = |info: &KnobInfo| {
            info.name.split_once("_balancing/").is_some_and(|(of, file)| {
                let variable = short.strip_prefix(of).and_then(|rest| rest.strip_prefix('_'));
                name == info.name || name == info.path || variable == Some(file)
            })
        };
        KNOBS.iter().find(|info| info.name == short || bare(info.name) == short || in_folder(info))
    }
}

impl KnobInfo {
    /// The first default of the knob.
    pub(crate) fn introduced_with(&self) -> u64 {
        let later = self.changes.iter().find_map(|change| change.value);
        self.first.or(later).unwrap_or_default()
    }

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

impl Knobs {
    /// Multiplies every scaled knob of `normalized` by the factor (`update_sysctl`).
    pub(crate) fn scale_from(&mut self, normalized: &Knobs, factor: u64) {
        for info in KNOBS.iter().filter(|info| info.scaled) {
            self.put(info.knob, normalized.get(info.knob) * factor);
        }
    }

    /// Divides every scaled knob by the factor (the normalized side of `sched_update_scaling`).
    pub(crate) fn unscale_from(&mut self, effective: &Knobs, factor: u64) {
        for info in KNOBS.iter().filter(|info| info.scaled) {
            self.put(info.knob, effective.get(info.knob) / factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_finds_the_knob() {
        for name in ["base_slice_ns", "base_slice", "sched/base_slice_ns", "sched_base_slice"] {
            assert_eq!(Knob::find(name).map(|i| i.knob), Some(Knob::BaseSlice), "{name}");
        }
        assert_eq!(Knob::find("kernel.sched_latency_ns").map(|i| i.knob), Some(Knob::Latency));
        for name in ["llc_balancing/enabled", "sched/llc_balancing/enabled", "llc_enabled"] {
            assert_eq!(Knob::find(name).map(|i| i.knob), Some(Knob::LlcEnabled), "{name}");
        }
        assert!(Knob::find("enabled").is_none());
        assert!(Knob::find("").is_none() && Knob::find("slice").is_none());
    }
}
