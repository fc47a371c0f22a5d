//! What a control group's `cpu.stat` counts of its quota, as metrics: `/PATH.nr_throttled` and so on.

use crate::workload::{Better, MetricDecl, MetricKind, Unit};

/// Of [`cpu_stat`], by place.
pub const NR_PERIODS: usize = 0;
/// Periods in which it was throttled.
pub const NR_THROTTLED: usize = 1;
/// Throttled time.
pub const THROTTLED: usize = 2;
/// Periods in which it used more than its quota.
pub const NR_BURSTS: usize = 3;
/// What it used beyond.
pub const BURST: usize = 4;

/// How many there are of each group.
pub const CPU_STATS: usize = 5;

/// The metrics of one group, named as in `cpu.stat` (cgroup v2); times are counted in ns and shown in us.
#[must_use]
pub fn cpu_stat() -> [MetricDecl; CPU_STATS] {
    [
        total("nr_periods", Unit::Count, Better::Neither, "periods of the quota in which a task ran"),
        total("nr_throttled", Unit::Count, Better::Neither, "periods at whose end the group was throttled somewhere"),
        total("throttled_usec", Unit::Microseconds, Better::Lower, "time throttled, summed over CPUs, by its end"),
        total("nr_bursts", Unit::Count, Better::Neither, "periods in which the group used more than its quota"),
        total("burst_usec", Unit::Microseconds, Better::Neither, "CPU time used beyond the quota"),
    ]
}

/// The share of a group's periods in which it was throttled: `nr_throttled` / `nr_periods`, in percent.
#[must_use]
pub fn throttled_periods() -> MetricDecl {
    let help = "periods at whose end the group was throttled somewhere, of those in which a task ran";
    total("throttled_periods", Unit::Percent, Better::Lower, help)
}

fn total(name: &str, unit: Unit, better: Better, help: &str) -> MetricDecl {
    MetricDecl {
        name: name.to_owned(),
        help: help.to_owned(),
        unit,
        better,
        kind: MetricKind::Total,
        default_stats: Vec::new(),
        divide: 1,
        queueing: false,
    }
}
