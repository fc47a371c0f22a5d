//! A trace that lacks a part of what replay needs says so first: traces of the corpus without that part.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;

use schedlab_replay::{replay, row_of, Options, Report};
use schedlab_trace::{Body, Header, Kind, Record, TraceError, TraceReader};

/// A trace without some of its records and lines of its header.
struct Without {
    reader: Box<dyn TraceReader>,
    /// The same, to see the next record.
    ahead: Box<dyn TraceReader>,
    header: Header,
    lacks: fn(&Record<'_>) -> bool,
}

impl TraceReader for Without {
    fn header(&self) -> &Header {
        &self.header
    }

    fn next_record(&mut self) -> Result<Option<Record<'_>>, TraceError> {
        while matches!(self.ahead.next_record()?, Some(record) if (self.lacks)(&record)) {
            self.reader.next_record()?;
        }
        self.reader.next_record()
    }
}

fn replayed(name: &str, lacks: fn(&Record<'_>) -> bool, keeps: fn(&str) -> bool) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{name}.ftrace.gz"));
    let reader = schedlab_trace::open(&path).unwrap();
    let mut header = reader.header().clone();
    header.comments.retain(|line| keeps(line));
    let row = row_of(header.kernel.as_deref().unwrap()).unwrap();
    let ahead = schedlab_trace::open(&path).unwrap();
    replay(&mut Without { reader, ahead, header, lacks }, row, &Options::default()).unwrap()
}

fn check(report: &Report, missing: &[&str]) {
    assert_eq!(report.missing.len(), missing.len(), "{:?}", report.missing);
    let said = report.missing.iter().zip(missing);
    assert!(said.clone().all(|(said, wanted)| said.contains(wanted)), "{:?}", report.missing);
    let first = report.to_string().lines().next().unwrap_or_default().to_owned();
    assert_eq!(first.starts_with("unreliable: the trace lacks"), !missing.is_empty(), "{first}");
}

const NICED: &str = "6.12.107-1cpu-niced";

fn nothing(_: &Record<'_>) -> bool {
    false
}

fn is_run_time(record: &Record<'_>) -> bool {
    matches!(record.body, Body::Event(Kind::Runtime { .. }, _))
}

#[test]
fn run_times_that_are_missing_at_the_beginning_are_named() {
    check(&replayed(NICED, nothing, |_| true), &[]);
    check(&replayed(NICED, is_run_time, |_| true), &["run times (sched_stat_runtime)"]);
    // The trace begins at 3.1 s.
    check(
        &replayed(NICED, |record| is_run_time(record) && record.time < 3_112_000_000, |_| true),
        &["the run times of the first "],
    );
}

#[test]
fn settings_that_the_header_lacks_are_named() {
    check(&replayed(NICED, nothing, |line| !line.starts_with("sched_")), &["sched_autogroup_enabled"]);
    check(&replayed(NICED, nothing, |line| line.starts_with("hz ")), &["the settings of the kernel"]);
    // A kernel without CONFIG_SCHED_AUTOGROUP has no such file.
    check(&replayed(NICED, nothing, |line| !line.starts_with("sched_autogroup")), &[]);
}

/// The system calls and probes that announce changes.
fn announces(record: &Record<'_>) -> bool {
    match record.body {
        Body::Other { name, .. } => {
            ["sa", "ni", "at", "mt"].contains(&name) || name.starts_with("sys_set") || name.starts_with("sys_sched_set")
        }
        Body::Event(..) | Body::Lost(_) => false,
    }
}

#[test]
fn changes_that_nothing_announces_are_counted_first() {
    let name = "7.2.13-1cpu-chaos-classes-31";
    check(&replayed(name, nothing, |_| true), &[]);
    check(&replayed(name, announces, |_| true), &["only later records show"]);
    // Where vruntime is printed, it shows the weight.
    check(&replayed("6.1.192-1cpu-chaos-slices", announces, |_| true), &[]);
}

#[test]
fn a_switch_from_a_task_to_which_the_cpu_had_not_switched_counts_as_a_loss() {
    assert_eq!(replayed(NICED, nothing, |_| true).trace.lost, 0);
    let one = |record: &Record<'_>| {
        matches!(record.body, Body::Event(Kind::Switch { .. }, _)) && record.time == 3_424_027_000
    };
    assert_eq!(replayed(NICED, one, |_| true).trace.lost, 1);
}

/// A kind of records, and what replay says where all of them are missing.
type Missing = (fn(&Record<'_>) -> bool, &'static str);

/// Records of each kind are missing as a whole; what remains shows that they should be there.
#[test]
fn kinds_of_records_that_are_missing_are_named() {
    let trace = "6.12.117-4cpu-mix";
    check(&replayed(trace, nothing, |_| true), &[]);
    let kinds: [Missing; 5] = [
        (|r| matches!(r.body, Body::Event(Kind::Migrate { .. }, _)), "migrations (sched_migrate_task)"),
        (|r| matches!(r.body, Body::Event(Kind::Fork { .. }, _)), "forks (sched_process_fork)"),
        (|r| matches!(r.body, Body::Event(Kind::WakeupNew { .. }, _)), "first wakeups of new tasks (sched_wakeup_new)"),
        (|r| matches!(r.body, Body::Event(Kind::Exit { .. }, _)), "exits (sched_process_exit)"),
        (
            |r| matches!(r.body, Body::Event(Kind::Waking { .. } | Kind::Wakeup { .. }, _)),
            "wakeups (sched_waking, sched_wakeup)",
        ),
    ];
    for (lacks, said) in kinds {
        let report = replayed(trace, lacks, |_| true);
        assert!(report.missing.iter().any(|missing| missing.contains(said)), "{said}: {:?}", report.missing);
    }
}
