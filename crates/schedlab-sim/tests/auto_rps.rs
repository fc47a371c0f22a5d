//! `auto-rps` of schbench 1.0 makes the CPUs as busy as it is asked to.

use crate::support::{flat, kernel, record, spec};
use schedlab_model::{MSEC, SEC};
use schedlab_trace::Kind;
use schedlab_workload::catalogue::{self, OptionValue, Where};

/// Requests completed in the last ten of 25 seconds on four CPUs.
fn served(percent: i64, rps: i64) -> u64 {
    let numbers = [("auto-rps", percent), ("rps", rps), ("threads", 12), ("runtime", 25)];
    let mut options: Vec<_> =
        numbers.map(|(key, value)| (key.to_owned(), OptionValue::Int(value), Where::default())).into();
    // A worker that spins for a lock is busy, too, and serves nothing.
    options.push(("no-locking".to_owned(), OptionValue::Bool(true), Where::default()));
    let workload = catalogue::build("schbench-1.0", &options, "w", false, 4).unwrap();
    let mut spec = spec(flat(4, 100), kernel("6.12.107", 4, 250), vec![workload]);
    spec.duration = 26 * SEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let late = record.events.iter().filter(|event| (15 * SEC..25 * SEC).contains(&event.time));
    late.filter(|event| matches!(event.kind, Kind::Count { metric: 2, .. })).count() as u64
}

#[test]
fn the_rate_of_requests_settles_where_the_cpus_are_as_busy_as_asked() {
    for (percent, rps) in [(50, 0), (25, 0), (25, 2_000)] {
        // 2.6 ms of work for each request, and next to nothing else.
        let wanted = 4 * 10 * SEC * percent as u64 / 100 / (26 * MSEC / 10);
        let found = served(percent, rps);
        assert!(found.abs_diff(wanted) * 10 < wanted, "{percent}%: {found} requests instead of {wanted}");
    }
}
