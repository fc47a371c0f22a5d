//! Traces of real kernels: how many of their decisions each row must reach, and that the recorded row wins.
//!
//! The traces in `corpus/` are cut from recordings in QEMU (autogroup off): hackbench; two hogs beside cyclictest and
//! stress-ng's switch; hogs of nice 0, 5 and 12 beside sleepers; hackbench on two CPUs.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use schedlab_policy::Version;
use schedlab_replay::{replay, replay_rows, row_of, Options, Report, Score};

/// A trace, a row, and what must be reached at least: contested picks and preemptions in parts of 10,000, decisions
/// judged, and the equal part of vruntime steps or probed vruntimes.
struct Floor {
    trace: &'static str,
    row: &'static str,
    picks: u64,
    preemptions: u64,
    judged: u64,
    state: u64,
}

const FLOORS: [Floor; 6] = [
    Floor { trace: "6.1.192-1cpu-hack", row: "6.1", picks: 9950, preemptions: 9950, judged: 1490, state: 9990 },
    Floor { trace: "6.1.192-1cpu-hogs", row: "6.1", picks: 9950, preemptions: 9950, judged: 4100, state: 9990 },
    Floor { trace: "6.1.192-1cpu-nice", row: "6.1", picks: 9950, preemptions: 9950, judged: 4400, state: 9990 },
    Floor { trace: "6.1.192-2cpu-hack", row: "6.1", picks: 9900, preemptions: 9900, judged: 4800, state: 9900 },
    Floor { trace: "6.12.107-1cpu-hack", row: "6.12.107", picks: 9950, preemptions: 9950, judged: 400, state: 9900 },
    Floor { trace: "6.12.107-2cpu-hack", row: "6.12.107", picks: 9900, preemptions: 9900, judged: 1400, state: 9000 },
];

fn path(trace: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{trace}.ftrace.gz"))
}

fn run(trace: &str, row: &str) -> Report {
    let mut reader = schedlab_trace::open(&path(trace)).unwrap();
    replay(&mut *reader, Version::find(row).unwrap(), &Options::default()).unwrap()
}

/// Whether `part` of `all` is at least `floor` parts of 10,000.
fn reaches(part: u64, all: u64, floor: u64) -> bool {
    part * 10_000 >= all * floor
}

#[test]
fn every_trace_is_decided_as_its_kernel_did() {
    for floor in &FLOORS {
        let report = run(floor.trace, floor.row);
        let name = floor.trace;
        let judged = report.picks.decisions + report.preemptions.decisions;
        assert!(judged >= floor.judged, "{name}: only {judged} decisions judged\n{report}");
        for (score, wanted) in [(report.picks, floor.picks), (report.preemptions, floor.preemptions)] {
            assert!(reaches(score.agreed, score.decisions, wanted), "{name}: {score:?}\n{report}");
        }
        let (equal, compared) = match report.vruntime.compared {
            0 => (report.state.vruntime.agreed, report.state.vruntime.decisions),
            compared => (report.vruntime.equal, compared),
        };
        assert!(compared > 400 && reaches(equal, compared, floor.state), "{name}: {equal} of {compared}\n{report}");
        assert!(report.unjudged_share < 0.02, "{name}: {:?}", report.unjudged);
        assert_eq!((report.out_of_step, report.trace.lost), (0, 0), "{name}");
    }
}

#[test]
fn the_row_of_the_recorded_kernel_wins() {
    let rows: Vec<&'static Version> = Version::all().iter().collect();
    for floor in &FLOORS {
        let mut reader = schedlab_trace::open(&path(floor.trace)).unwrap();
        // Where the kernel has no row yet, the nearest one must win.
        let recorded = reader.header().kernel.as_deref().and_then(row_of).map_or(floor.row, |row| row.name);
        let reports = replay_rows(&mut *reader, &rows, &Options::default()).unwrap();
        let key = |score: Score| (score.share * 1e6) as u64;
        let total = |report: &Report| key(report.picks) + key(report.preemptions);
        // Rows that differ only where this load does not go may tie with it; none may beat it.
        let best = reports.iter().map(total).max();
        let own = reports.iter().find(|report| report.row == recorded).map(total);
        assert_eq!(own, best, "{}", schedlab_replay::matrix_table(&reports));
    }
}

#[test]
fn simple_rules_are_far_behind() {
    for floor in &FLOORS {
        let report = run(floor.trace, floor.row);
        for baseline in [report.baselines.fifo, report.baselines.lowest_pid] {
            assert!(baseline.share < 0.8 && baseline.decisions == report.picks.decisions, "{}", floor.trace);
        }
    }
}

#[test]
fn a_report_is_json_and_text() {
    let report = run("6.1.192-1cpu-hack", "6.12.0");
    assert!(report.disagreements.iter().any(|one| one.rule.is_some()));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["recorded_row"], "6.1");
    assert!(json["disagreements"][0]["queue"][0]["deadline"].is_u64());
    let text = report.to_string();
    assert!(text.contains("contested picks") && text.contains("rule:") && text.contains("lowest pid"), "{text}");
}
