//! Columns of rt-app's log as metrics: over all tasks of the file and, as rt-app writes a log for each thread, by the
//! name of the task where there are several.

use std::collections::BTreeSet;

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

/// Most tasks of a file that have metrics of their own.
const MAX_NAMES: usize = 1_000;

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

/// The declarations; those of timers only where there are some that can be followed. `tasks` has the name of each task
/// and whether it has such a timer. What concerns one task of several is not shown unless a `[[metric]]` asks for it.
pub(super) fn declarations(tasks: &[(&str, bool)]) -> Vec<MetricDecl> {
    let mut all = columns(tasks.iter().any(|(_, timers)| *timers));
    if (2..=MAX_NAMES).contains(&tasks.len()) {
        let mut seen = BTreeSet::new();
        for (task, timers) in tasks.iter().filter(|(task, _)| seen.insert(*task)) {
            let sampled = columns(*timers).into_iter().filter(|column| column.kind == MetricKind::Samples);
            all.extend(sampled.map(|column| MetricDecl {
                name: format!("{task}.{}", column.name),
                help: format!("{}, of {task} alone", column.help),
                default_stats: Vec::new(),
                ..column
            }));
        }
    }
    all
}

fn columns(timers: bool) -> Vec<MetricDecl> {
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
