//! What a model takes from the trace, and what the reader looks for in later records, is counted and printed.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;

use schedlab_replay::{replay, row_of, InputGroup, InputKind, LookAhead, Options, Report};

fn replayed(name: &str) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{name}.ftrace.gz"));
    let mut reader = schedlab_trace::open(&path).unwrap();
    let row = row_of(reader.header().kernel.as_deref().unwrap()).unwrap();
    replay(&mut *reader, row, &Options::default()).unwrap()
}

fn count(report: &Report, kind: InputKind) -> u64 {
    report.inputs.iter().find(|input| input.kind == kind).map_or(0, |input| input.count)
}

#[test]
fn state_is_taken_once_and_counted() {
    let report = replayed("6.12.107-1cpu-niced");
    assert_eq!(count(&report, InputKind::TaskState), report.tasks.taken);
    assert!(
        count(&report, InputKind::RunTime) > 1000 && count(&report, InputKind::Switch) > 500,
        "{:?}",
        report.inputs
    );
    // The first task that is placed shows the position of its queue, and is then the kernel's.
    let again: Vec<_> = report.inputs.iter().filter(|input| input.group == InputGroup::StateAgain).collect();
    assert!(again.len() == 1 && count(&report, InputKind::TaskStateAgain) == 1, "{again:?}");
    let text = report.to_string();
    let line = |name: &str| {
        text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    assert!(line("state taken from the trace: ").contains(&format!("{} tasks", report.tasks.taken)));
    assert_eq!(line("state taken again: "), "state taken again: 1 tasks");
    assert!(line("other inputs: ").contains("run times"));
}

/// On a machine in use queues begin with tasks that no record has named: their state is taken again, and said to be.
#[test]
fn state_that_is_taken_again_is_counted_apart() {
    let report = replayed("6.18.44-2cpu-sessions-running");
    let again = [InputKind::TaskStateAgain, InputKind::GroupStateAgain].map(|kind| count(&report, kind));
    assert!(again.iter().all(|count| *count > 0), "{:?}", report.inputs);
    assert!(report
        .to_string()
        .contains(&format!("state taken again: {} tasks, {} group entities", again[0], again[1])));
}

#[test]
fn uses_of_later_records_are_counted_by_purpose() {
    let report = replayed("6.12.107-1cpu-niced");
    for purpose in [LookAhead::Outcome, LookAhead::FirstState, LookAhead::InitialTasks] {
        let look = report.look_ahead.iter().find(|look| look.purpose == purpose);
        assert!(look.is_some_and(|look| look.records > 0), "{purpose:?}: {:?}", report.look_ahead);
    }
    assert!(report.to_string().contains("records for which later ones were consulted: "));
}
