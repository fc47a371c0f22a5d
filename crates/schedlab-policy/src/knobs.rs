//! Every scheduler knob (sysctl or debugfs file) the model obeys: names, units, ranges, defaults, versions.

use crate::version::series::Series;
use schedlab_model::Nanos;

/// A knob, named as in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Knob {
    /// `sysctl_sched_latency`.
    Latency,
    /// `sysctl_sched_min_granularity`.
    MinGranularity,
    /// `sysctl_sched_base_slice`.
    BaseSlice,
    /// `sysctl_sched_wakeup_granularity`.
    WakeupGranularity,
    /// `sysctl_sched_idle_min_granularity`.
    IdleMinGranularity,
    /// `sysctl_sched_tunable_scaling`.
    TunableScaling,
    /// `sysctl_sched_migration_cost`.
    MigrationCost,
    /// `sysctl_sched_nr_migrate`.
    NrMigrate,
    /// `sysctl_sched_child_runs_first`.
    ChildRunsFirst,
    /// `sysctl_sched_rr_timeslice`.
    RrTimeslice,
    /// `sysctl_sched_rt_period`.
    RtPeriod,
    /// `sysctl_sched_rt_runtime`.
    RtRuntime,
    /// `sysctl_sched_cfs_bandwidth_slice`.
    CfsBandwidthSlice,
}

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
    /// Smallest and largest value of its debugfs file (5.13 and later), or of a sysctl; see [`KnobInfo::range_in`].
    pub range: (u64, u64),
    /// What it does.
    pub effect: &'static str,
    /// Default before scaling by the number of CPUs.
    pub default: u64,
    /// Whether the default is multiplied by the tunable-scaling factor.
    pub scaled: bool,
    first: Series,
    last: Series,
}

const U32: (u64, u64) = (0, u32::MAX as u64);
const SLICE: (u64, u64) = (1, u32::MAX as u64);

const fn nanos(knob: Knob, name: &'static str, path: &'static str, default: u64, effect: &'static str) -> KnobInfo {
    let (first, last) = (Series::V5_2, Series::V7_2);
    KnobInfo { knob, name, path, unit: KnobUnit::Nanos, range: SLICE, effect, default, scaled: true, first, last }
}

const fn number(knob: Knob, name: &'static str, path: &'static str, default: u64, effect: &'static str) -> KnobInfo {
    let (unit, scaled) = (KnobUnit::Number, false);
    KnobInfo { unit, scaled, ..nanos(knob, name, path, default, effect) }
}

static KNOBS: [KnobInfo; 13] = [
    KnobInfo {
        last: Series::V6_3,
        ..nanos(Knob::Latency, "latency_ns", "sched/latency_ns", 6_000_000, "period in which every task runs once")
    },
    KnobInfo {
        last: Series::V6_3,
        ..nanos(
            Knob::MinGranularity,
            "min_granularity_ns",
            "sched/min_granularity_ns",
            750_000,
            "shortest slice before the tick preempts",
        )
    },
    KnobInfo {
        first: Series::EevdfRfc,
        ..nanos(Knob::BaseSlice, "base_slice_ns", "sched/base_slice_ns", 750_000, "slice of a task without its own")
    },
    KnobInfo {
        last: Series::V6_3,
        range: U32,
        ..nanos(
            Knob::WakeupGranularity,
            "wakeup_granularity_ns",
            "sched/wakeup_granularity_ns",
            1_000_000,
            "lead a wakee needs to preempt",
        )
    },
    KnobInfo {
        first: Series::V6_1,
        last: Series::V6_3,
        scaled: false,
        ..nanos(
            Knob::IdleMinGranularity,
            "idle_min_granularity_ns",
            "sched/idle_min_granularity_ns",
            750_000,
            "shortest slice of an idle entity beside others",
        )
    },
    KnobInfo {
        unit: KnobUnit::Number,
        range: (0, 2),
        scaled: false,
        ..nanos(
            Knob::TunableScaling,
            "tunable_scaling",
            "sched/tunable_scaling",
            1,
            "how slices grow with CPUs: 0 none, 1 log, 2 linear; as in the kernel a write acts on the next CPU hotplug",
        )
    },
    KnobInfo {
        range: U32,
        scaled: false,
        ..nanos(
            Knob::MigrationCost,
            "migration_cost_ns",
            "sched/migration_cost_ns",
            500_000,
            "a task that ran this recently is cache hot; idle spells shorter than this skip newidle balancing",
        )
    },
    KnobInfo {
        unit: KnobUnit::Number,
        range: U32,
        scaled: false,
        ..nanos(Knob::NrMigrate, "nr_migrate", "sched/nr_migrate", 32, "most tasks one balancing pass looks at")
    },
    KnobInfo {
        last: Series::V6_3,
        unit: KnobUnit::Number,
        range: (0, 1),
        scaled: false,
        ..nanos(
            Knob::ChildRunsFirst,
            "child_runs_first",
            "kernel.sched_child_runs_first",
            0,
            "a forked child goes before its parent",
        )
    },
    KnobInfo {
        range: (1, 60_000),
        ..number(
            Knob::RrTimeslice,
            "rr_timeslice_ms",
            "kernel.sched_rr_timeslice_ms",
            100,
            "ms a SCHED_RR task runs before the next of its priority, in whole ticks",
        )
    },
    KnobInfo {
        range: (1, i32::MAX as u64),
        ..number(
            Knob::RtPeriod,
            "rt_period_us",
            "kernel.sched_rt_period_us",
            1_000_000,
            "us in which sched_rt_runtime_us is counted; from 6.12 on without effect on scheduling",
        )
    },
    KnobInfo {
        range: (0, i32::MAX as u64),
        ..number(
            Knob::RtRuntime,
            "rt_runtime_us",
            "kernel.sched_rt_runtime_us",
            950_000,
            "us per period after which real-time tasks rest, none if the period is no longer, at most the period; from \
             6.12 on without effect on scheduling",
        )
    },
    KnobInfo {
        range: (1, i32::MAX as u64),
        ..number(
            Knob::CfsBandwidthSlice,
            "cfs_bandwidth_slice_us",
            "kernel.sched_cfs_bandwidth_slice_us",
            5_000,
            "us of its group's quota that a CPU takes at once",
        )
    },
];

impl Knob {
    /// Every knob any modelled kernel has.
    #[must_use]
    pub fn all() -> &'static [KnobInfo] {
        &KNOBS
    }

    /// The knob called `name`: the file name, with or without its folder, `kernel.`, `sched_` and `_ns`.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static KnobInfo> {
        let short = name.rsplit('/').next().unwrap_or(name);
        let short = short.strip_prefix("kernel.").unwrap_or(short);
        let short = short.strip_prefix("sched_").unwrap_or(short);
        let bare = |name: &'static str| name.strip_suffix("_ns").unwrap_or(name);
        KNOBS.iter().find(|info| info.name == short || bare(info.name) == short)
    }
}

impl KnobInfo {
    /// Whether a kernel of that series has the knob.
    #[must_use]
    pub fn exists_in(&self, series: Series) -> bool {
        self.first <= series && series <= self.last
    }

    /// Smallest and largest value that a kernel of that series takes. Its debugfs files take any number of 32 bits, the
    /// sysctls up to 5.12 had bounds (`min_sched_granularity_ns` and those beside it, kernel/sysctl.c). A length of 0 would
    /// pass there, but means nothing.
    #[must_use]
    pub fn range_in(&self, series: Series) -> (u64, u64) {
        match self.knob {
            Knob::Latency | Knob::MinGranularity if series < Series::V5_13 => (100_000, 1_000_000_000),
            Knob::WakeupGranularity if series < Series::V5_13 => (0, 1_000_000_000),
            Knob::MigrationCost | Knob::NrMigrate if series < Series::V5_13 => (0, i32::MAX as u64),
            _ => self.range,
        }
    }

    /// The default in a kernel of that series, before scaling.
    #[must_use]
    pub fn default_in(&self, series: Series) -> u64 {
        match self.knob {
            // 0.70 ms since commit 2ae891b82695: a tick arriving marginally early no longer costs a whole extra tick.
            Knob::BaseSlice if series >= Series::V6_12_107 => 700_000,
            _ => self.default,
        }
    }
}

/// The values in force, scaled; a knob the version lacks keeps its default and is read by nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knobs {
    /// `sysctl_sched_latency`.
    pub latency: Nanos,
    /// `sysctl_sched_min_granularity`.
    pub min_granularity: Nanos,
    /// `sysctl_sched_base_slice`.
    pub base_slice: Nanos,
    /// `sysctl_sched_wakeup_granularity`.
    pub wakeup_granularity: Nanos,
    /// `sysctl_sched_idle_min_granularity`.
    pub idle_min_granularity: Nanos,
    /// `sysctl_sched_tunable_scaling`: 0, 1 or 2.
    pub tunable_scaling: u64,
    /// `sysctl_sched_migration_cost`.
    pub migration_cost: Nanos,
    /// `sysctl_sched_nr_migrate`.
    pub nr_migrate: u64,
    /// `sysctl_sched_child_runs_first`.
    pub child_runs_first: bool,
    /// `sysctl_sched_rr_timeslice`, in ms.
    pub rr_timeslice_ms: u64,
    /// `sysctl_sched_rt_period`, in us.
    pub rt_period_us: u64,
    /// `sysctl_sched_rt_runtime`, in us.
    pub rt_runtime_us: u64,
    /// `sysctl_sched_cfs_bandwidth_slice`, in us.
    pub cfs_bandwidth_slice_us: u64,
    /// `sched_nr_latency`: tasks that fit one period of `latency`.
    pub nr_latency: u64,
}

impl Knobs {
    /// The unscaled ("normalized") values a kernel of that series is built with.
    #[must_use]
    pub(crate) fn normalized(series: Series) -> Knobs {
        let mut knobs = Knobs {
            latency: 0,
            min_granularity: 0,
            base_slice: 0,
            wakeup_granularity: 0,
            idle_min_granularity: 0,
            tunable_scaling: 0,
            migration_cost: 0,
            nr_migrate: 0,
            child_runs_first: false,
            rr_timeslice_ms: 0,
            rt_period_us: 0,
            rt_runtime_us: 0,
            cfs_bandwidth_slice_us: 0,
            nr_latency: 8,
        };
        for info in &KNOBS {
            knobs.put(info.knob, info.default_in(series));
        }
        knobs
    }

    /// The value of one knob.
    #[must_use]
    pub fn get(&self, knob: Knob) -> u64 {
        match knob {
            Knob::Latency => self.latency,
            Knob::MinGranularity => self.min_granularity,
            Knob::BaseSlice => self.base_slice,
            Knob::WakeupGranularity => self.wakeup_granularity,
            Knob::IdleMinGranularity => self.idle_min_granularity,
            Knob::TunableScaling => self.tunable_scaling,
            Knob::MigrationCost => self.migration_cost,
            Knob::NrMigrate => self.nr_migrate,
            Knob::ChildRunsFirst => u64::from(self.child_runs_first),
            Knob::RrTimeslice => self.rr_timeslice_ms,
            Knob::RtPeriod => self.rt_period_us,
            Knob::RtRuntime => self.rt_runtime_us,
            Knob::CfsBandwidthSlice => self.cfs_bandwidth_slice_us,
        }
    }

    pub(crate) fn put(&mut self, knob: Knob, value: u64) {
        match knob {
            Knob::Latency => self.latency = value,
            Knob::MinGranularity => self.min_granularity = value,
            Knob::BaseSlice => self.base_slice = value,
            Knob::WakeupGranularity => self.wakeup_granularity = value,
            Knob::IdleMinGranularity => self.idle_min_granularity = value,
            Knob::TunableScaling => self.tunable_scaling = value,
            Knob::MigrationCost => self.migration_cost = value,
            Knob::NrMigrate => self.nr_migrate = value,
            Knob::ChildRunsFirst => self.child_runs_first = value != 0,
            Knob::RrTimeslice => self.rr_timeslice_ms = value,
            Knob::RtPeriod => self.rt_period_us = value,
            Knob::RtRuntime => self.rt_runtime_us = value,
            Knob::CfsBandwidthSlice => self.cfs_bandwidth_slice_us = value,
        }
    }

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
        assert!(Knob::find("").is_none() && Knob::find("slice").is_none());
    }
}
