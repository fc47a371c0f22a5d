//! Where in its period everything periodic is at time 0: drawn from the seed, since a program may be started at any
//! time. What else is periodic follows from these: balancing and the watchdogs of deadlines from ticks, the threads of
//! `housekeeping` are workloads with timers of their own (`housekeeping.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{Nanos, MSEC};
use schedlab_spec::{Cgroup, CpuMax, RunSpec};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, ObjectSpec, Op, TimerMode, Workload};

const RUN: Nanos = 400 * MSEC;

/// A workload of tasks that compute all the time.
fn hogs(names: &[&str]) -> Workload {
    let hog = vec![Op::Run(Amount::Fixed(RUN))];
    tasks(names.iter().map(|name| (*name, 0, Some(0), hog.clone())).collect())
}

/// A workload of one task that runs for 10 us when its timer expires.
fn periodic(name: &str, period: Nanos) -> Workload {
    let timer = Op::Timer { object: 0, period: Amount::Fixed(period), mode: TimerMode::Absolute };
    let mut workload = tasks(vec![(name, 0, Some(1), vec![timer, Op::Run(Amount::Fixed(10_000)), Op::Jump(0)])]);
    workload.name = name.into();
    workload.objects = vec![ObjectSpec::Timer];
    workload
}

fn limited(workloads: &mut [Workload], groups: &[&str]) -> Vec<Cgroup> {
    for (task, path) in workloads[0].tasks.iter_mut().zip(groups) {
        task.cgroup = Some((*path).into());
    }
    let bandwidth = Some(CpuMax { quota: 2 * MSEC, period: 40 * MSEC, burst: 0 });
    groups.iter().map(|path| Cgroup { path: (*path).into(), bandwidth, ..Cgroup::default() }).collect()
}

/// A run, and the task whose switches show the phase after the first 100 ms.
struct Case {
    what: &'static str,
    period: Nanos,
    row: &'static str,
    workloads: Vec<Workload>,
    groups: Vec<Cgroup>,
    shown_by: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |what, period, row, mut workloads: Vec<Workload>, groups: &[&str], shown_by| {
        let groups = limited(&mut workloads, groups);
        Case { what, period, row, workloads, groups, shown_by }
    };
    vec![
        case("the tick", 4 * MSEC, "6.1", vec![hogs(&["a", "b"])], &[], "a"),
        case("the period of a quota", 40 * MSEC, "6.1", vec![hogs(&["a"])], &["/q"], "a"),
        case("the period of a quota", 40 * MSEC, "6.12.107", vec![hogs(&["a"])], &["/q"], "a"),
        case("a program's timer", 30 * MSEC, "6.12.107", vec![periodic("a", 30 * MSEC), hogs(&["b"])], &[], "a"),
    ]
}

/// The first time after 100 ms at which the task is switched in, within the period.
fn phase(case: &Case, name: &str, seed: u64, noise: bool) -> Nanos {
    let mut run: RunSpec = spec(flat(2, 0), kernel(case.row, 2, 250), case.workloads.clone());
    (run.seed, run.noise, run.duration) = (seed, noise, RUN);
    run.cgroups = Arc::new(case.groups.clone());
    let (outcome, record) = record(&run);
    outcome.unwrap();
    let is_shown = |kind: &Kind| matches!(kind, Kind::Switch { next, .. } if record.name(*next) == name);
    let shown = record.events.iter().find(|event| event.time > 100 * MSEC && is_shown(&event.kind));
    shown.map(|event| event.time % case.period).unwrap_or_else(|| panic!("{}: {name} does not run", case.what))
}

#[test]
fn everything_periodic_begins_where_the_seed_puts_it() {
    for case in cases() {
        let quarters: BTreeSet<u64> =
            (1..=12).map(|seed| 4 * phase(&case, case.shown_by, seed, true) / case.period).collect();
        assert!(quarters.len() >= 3, "{}, row {}: only in the quarters {quarters:?}", case.what, case.row);
        let without: BTreeSet<u64> = (1..4).map(|seed| phase(&case, case.shown_by, seed, false)).collect();
        assert_eq!(without.len(), 1, "{}: {without:?}", case.what);
    }
}

/// Up to 6.3 groups with equal periods are refilled at once; 41abdba93747 gives each a phase of its own.
#[test]
fn groups_are_refilled_together_before_6_4() {
    for (row, together) in [("6.1", true), ("6.12.107", false)] {
        let mut workloads = vec![hogs(&["a", "b"])];
        workloads[0].tasks[1].affinity = schedlab_model::CpuMask::from_list("1");
        let groups = limited(&mut workloads, &["/p", "/q"]);
        let case = Case { what: "two quotas", period: 40 * MSEC, row, workloads, groups, shown_by: "" };
        let apart = (1..=6).filter(|seed| phase(&case, "a", *seed, true) != phase(&case, "b", *seed, true)).count();
        assert_eq!(apart, if together { 0 } else { 6 }, "{row}");
    }
}

/// The timers of two programs keep their distance in a run, which differs between seeds.
#[test]
fn programs_with_timers_start_apart() {
    let workloads = vec![periodic("a", 30 * MSEC), periodic("b", 30 * MSEC)];
    let case = Case { what: "two timers", period: 30 * MSEC, row: "6.12.107", workloads, groups: vec![], shown_by: "" };
    let distance = |seed| (30 * MSEC + phase(&case, "a", seed, true) - phase(&case, "b", seed, true)) % (30 * MSEC);
    let distances: BTreeSet<u64> = (1..=12).map(|seed| 4 * distance(seed) / (30 * MSEC)).collect();
    assert!(distances.len() >= 3, "{distances:?}");
}
