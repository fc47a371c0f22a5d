//! Control groups whose CPUs change while their tasks run: nobody runs elsewhere for longer than a move takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::support::{flat, kernel, record, spec, tasks};
use proptest::prelude::*;
use schedlab_model::{CpuMask, Nanos, MSEC, SEC};
use schedlab_spec::{Cgroup, RunSpec};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Op};

fn cpus(list: &str) -> CpuMask {
    CpuMask::from_list(list).unwrap()
}

/// Of group `/g`, whose CPUs change at these times: hogs, tasks that sleep, and one that asked for CPU 0. Beside them
/// hogs of no group.
fn run_of(version: &str, changes: &[(Nanos, CpuMask)]) -> RunSpec {
    let hog = || vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)];
    let sleeper = || vec![Op::Run(Amount::Fixed(300_000)), Op::Sleep(Amount::Fixed(700_000)), Op::Jump(0)];
    let list = vec![
        ("hog", 0, None, hog()),
        ("sleeper", 0, None, sleeper()),
        ("asks", 0, Some(0), hog()),
        ("outside", 0, None, hog()),
    ];
    let mut workload = tasks(list);
    for (task, count) in workload.tasks.iter_mut().zip([2, 3, 1, 2]) {
        task.count = count;
        task.cgroup = (task.name != "outside").then(|| "/g".to_owned());
    }
    let mut spec = spec(flat(4, 500), kernel(version, 4, 250), vec![workload]);
    let [(_, first), later @ ..] = changes else { panic!("the CPUs at the start") };
    let group = Cgroup { path: "/g".into(), cpus: Some(*first), cpus_later: later.to_vec(), ..Cgroup::default() };
    spec.cgroups = Arc::new(vec![group]);
    spec.duration = changes.last().unwrap().0 + 100 * MSEC;
    spec
}

/// The CPUs on which tasks of each name were switched in during each period, without its first 10 ms.
fn used(spec: &RunSpec, changes: &[(Nanos, CpuMask)]) -> Vec<BTreeMap<String, BTreeSet<u32>>> {
    let (outcome, record) = record(spec);
    outcome.unwrap();
    let names: BTreeMap<i32, &str> = record.names.iter().map(|(pid, name)| (*pid, name.as_str())).collect();
    let mut used = vec![BTreeMap::<String, BTreeSet<u32>>::new(); changes.len()];
    for event in &record.events {
        let Kind::Switch { next, .. } = event.kind else { continue };
        let period = changes.iter().rposition(|(at, _)| event.time >= *at).unwrap();
        if let (true, Some(name)) = (event.time >= changes[period].0 + 10 * MSEC, names.get(&next)) {
            used[period].entry((*name).to_owned()).or_default().insert(event.cpu.0);
        }
    }
    used
}

#[test]
fn tasks_follow_the_cpus_of_their_group() {
    let changes = [(0, cpus("0-1")), (100 * MSEC, cpus("2-3")), (200 * MSEC, cpus("0-1"))];
    for (version, asked) in [("6.1", [0, 1].into()), ("6.12.107", BTreeSet::from([0])), ("7.2", [0].into())] {
        let used = used(&run_of(version, &changes), &changes);
        for (period, own) in [(0, [0, 1]), (1, [2, 3]), (2, [0, 1])] {
            let own = BTreeSet::from(own);
            for name in ["hog", "sleeper", "asks"] {
                let cpus = used[period].get(name).cloned().unwrap_or_default();
                assert!(cpus.is_subset(&own), "{version}, period {period}: {name} on {cpus:?}");
            }
        }
        assert_eq!(used[0]["asks"], [0].into(), "{version}");
        // What a task asked for outlives a group without it from 6.2 on.
        let last = used[2].get("asks").cloned().unwrap_or_default();
        assert!(last.is_subset(&asked), "{version}: {last:?} of {asked:?}");
    }
}

#[test]
fn a_group_without_any_of_its_parents_cpus_has_the_parents() {
    let mut spec = run_of("6.12.107", &[(0, cpus("0-3"))]);
    let parent = Cgroup { path: "/g".into(), cpus: Some(cpus("2-3")), ..Cgroup::default() };
    let child = Cgroup { path: "/g/inner".into(), cpus: Some(cpus("0-1")), ..Cgroup::default() };
    spec.cgroups = Arc::new(vec![parent, child]);
    let mut workloads = spec.workloads.to_vec();
    workloads[0].tasks[0].cgroup = Some("/g/inner".into());
    spec.workloads = Arc::new(workloads);
    let used = used(&spec, &[(0, cpus("2-3"))]);
    assert!(used[0]["hog"].is_subset(&[2, 3].into()), "{used:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever the CPUs change to and when, no task of the group is switched in elsewhere 10 ms later, and those
    /// outside go on.
    #[test]
    fn no_change_breaks_an_affinity(
        version in prop::sample::select(&["6.1", "6.6", "6.12.107", "7.3"][..]),
        masks in prop::collection::vec((1u64..16, 1u64..60), 1..6),
    ) {
        let mut at = 0;
        let mut changes = Vec::new();
        for (bits, gap) in masks {
            let mask = CpuMask::from_iter((0..4).filter(|cpu| bits >> cpu & 1 == 1).map(schedlab_model::CpuId));
            changes.push((at, mask));
            at += gap * MSEC;
        }
        let used = used(&run_of(version, &changes), &changes);
        for ((_, mask), used) in changes.iter().zip(&used) {
            for (name, cpus) in used.iter().filter(|(name, _)| *name != "outside") {
                prop_assert!(cpus.iter().all(|cpu| mask.has(schedlab_model::CpuId(*cpu))), "{} on {:?}", name, cpus);
            }
        }
    }
}
