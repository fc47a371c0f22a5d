//! Columns of rt-app's log as metrics, over all tasks of the file.

use crate::{Better, MetricDecl, MetricKind, Unit};

/// Time of one `run` or `runtime` event.
pub(super) const RUN: &str = "run";
/// Time of one pass through a phase.
pub(super) const PERIOD: &str = "period";
/// Lateness of timer wakeups.
pub(super) const WU_LAT: &str = "wu_lat";
/// Time left before a timer's expiry.
pub(super) const SLACK: &str = "slack";
/// Expiries that had passed.
pub(super) const MISSES: &str = "misses";

fn sampled(name: &str, better: Better, stats: &[&str], help: &str) -> MetricDecl {
    MetricDecl {
        name: name.to_string(),
        help: help.to_string(),
        unit: Unit::Microseconds,
        better,
        kind: MetricKind::Samples,
        default_stats: stats.iter().map(ToString::to_string).collect(),
        divide: 1,
        queueing: false,
    }
}

/// The declarations; those of timers only where there are some that can be followed.
pub(super) fn declarations(timers: bool) -> Vec<MetricDecl> {
    let mut all = vec![
        sampled(RUN, Better::Lower, &["mean", "p99"], "time from begin to end of a run event, preemption included"),
        sampled(PERIOD, Better::Neither, &["mean", "p99"], "time of one pass through a phase"),
    ];
    if timers {
        all.push(sampled(WU_LAT, Better::Lower, &["p50", "p99", "max"], "from a timer's expiry until the task ran"));
        all.push(sampled(
            SLACK,
            Better::Higher,
            &["mean"],
            "time left when a task reached its timer; a miss counts as 0",
        ));
        all.push(MetricDecl {
            unit: Unit::PerSecond,
            kind: MetricKind::Rate,
            default_stats: Vec::new(),
            help: "timer expiries per second that had passed before the task reached them".to_string(),
            ..sampled(MISSES, Better::Lower, &[], "")
        });
    }
    all
}
