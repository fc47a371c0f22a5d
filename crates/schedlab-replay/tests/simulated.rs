//! A trace recorded from the fair class itself must replay without a single difference.

#![allow(clippy::unwrap_used)]

mod support;

use proptest::prelude::*;
use schedlab_policy::Version;
use schedlab_replay::{replay, Options, Report};

/// Replays a random history. It moves exiting tasks within their group, so the row must be of a release that does
/// (6.12.43, not 6.12.0).
fn replayed(row: &str, cpus: usize, steps: usize, seed: u64) -> Report {
    let version = Version::find(row).unwrap();
    let mut trace = support::generate(version, cpus, steps, seed);
    replay(&mut trace, version, &Options { warm_up: 0, ..Options::default() }).unwrap()
}

/// Nothing differs.
fn check(report: &Report) -> Result<(), TestCaseError> {
    let (picks, preemptions, steps) = (report.picks, report.preemptions, &report.vruntime);
    prop_assert_eq!(picks.agreed, picks.decisions, "{}", report);
    prop_assert_eq!(preemptions.agreed, preemptions.decisions, "{}", report);
    prop_assert_eq!(steps.equal, steps.compared, "{}", report);
    prop_assert_eq!(report.desyncs, 0, "{}", report);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_the_class_decided_is_found_again(cpus in 1usize..4, seed: u64, eevdf: bool) {
        check(&replayed(if eevdf { "6.12.43" } else { "6.1" }, cpus, 400, seed))?;
    }

    #[test]
    fn a_damaged_trace_ends_in_a_report(cpus in 1usize..4, seed: u64, recorded in 0usize..11, row in 0usize..11) {
        let rows: Vec<&'static Version> = Version::all().iter().collect();
        let (recorded, row) = (rows[recorded % rows.len()], rows[row % rows.len()]);
        let mut trace = support::generate(recorded, cpus, 300, seed).damage(seed);
        replay(&mut trace, row, &Options::default()).unwrap();
    }
}

#[test]
fn a_long_run_has_every_kind_of_decision() {
    for row in ["6.1", "6.12.43"] {
        let report = replayed(row, 3, 20_000, 1);
        check(&report).unwrap();
        assert!(report.picks.decisions > 3000 && report.preemptions.decisions > 2000, "{report}");
        assert!(report.unjudged_share < 0.05, "{report}");
        for kind in ["wakeup", "fork", "tick", "balance"] {
            assert!(report.kinds.iter().any(|part| part.name == kind && part.score.decisions > 30), "{kind}: {report}");
        }
    }
}
