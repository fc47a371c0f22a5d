//! Quotas of groups in whole runs: how much CPU time they get, and when.

use std::sync::Arc;

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{Nanos, MSEC, SEC};
use schedlab_policy::Version;
use schedlab_spec::{Cgroup, CpuMax, RunSpec};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Op, Workload};

fn hog() -> Vec<Op> {
    vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)]
}

fn limited(path: &str, quota: Nanos, period: Nanos, burst: Nanos) -> Cgroup {
    Cgroup { path: path.into(), bandwidth: Some(CpuMax { quota, period, burst }), ..Cgroup::default() }
}

fn run_of(
    version: &str,
    cpus: u32,
    cgroups: Vec<Cgroup>,
    mut workload: Workload,
    in_group: &[Option<&str>],
) -> RunSpec {
    for (task, path) in workload.tasks.iter_mut().zip(in_group) {
        task.cgroup = path.map(str::to_string);
    }
    let mut spec = spec(flat(cpus, 500), kernel(version, cpus as usize, 250), vec![workload]);
    spec.cgroups = Arc::new(cgroups);
    spec.duration = 10 * SEC;
    spec
}

/// When the tasks of that name ran, as (from, to).
fn runs(spec: &RunSpec, name: &str) -> Vec<(Nanos, Nanos)> {
    let (outcome, record) = record(spec);
    outcome.unwrap();
    let pids: Vec<i32> = record.names.iter().filter(|(_, known)| known == name).map(|(pid, _)| *pid).collect();
    let mut since = vec![(0, 0); spec.machine.topology.nr_cpus()];
    let mut runs = Vec::new();
    for event in &record.events {
        if let Kind::Switch { next, .. } = event.kind {
            let (pid, start) = std::mem::replace(&mut since[event.cpu.index()], (next, event.time));
            runs.extend(pids.contains(&pid).then_some((start, event.time)));
        }
    }
    let last = since.into_iter().filter(|(pid, _)| pids.contains(pid));
    runs.extend(last.map(|(_, start)| (start, spec.duration)));
    runs
}

/// CPU time between two points in time, as a share of one CPU.
fn part(runs: &[(Nanos, Nanos)], from: Nanos, to: Nanos) -> f64 {
    let ran: Nanos = runs.iter().map(|(a, b)| (*b).min(to).saturating_sub((*a).max(from))).sum();
    ran as f64 / (to - from) as f64
}

/// Four CPUs compete for a quota of 20 ms, and each takes `sched_cfs_bandwidth_slice_us` at a time: with a slice as
/// large as the quota one CPU gets all of it.
#[test]
fn a_cpu_takes_a_slice_of_the_quota_at_a_time() {
    for version in Version::all() {
        for (slice_us, most) in [(1_000, 0.4), (5_000, 0.4), (20_000, 1.0)] {
            let names = ["h0", "h1", "h2", "h3"];
            let workload = tasks((0..4).map(|cpu| (names[cpu as usize], 0, Some(cpu), hog())).collect());
            let group = limited("/g", 20 * MSEC, 100 * MSEC, 0);
            let mut run = run_of(version.name, 4, vec![group], workload, &[Some("/g"); 4]);
            run.kernel.set_knob("sched_cfs_bandwidth_slice_us", slice_us).unwrap();
            run.duration = 90 * MSEC;
            let got: Vec<f64> = names.iter().map(|name| part(&runs(&run, name), 0, 100 * MSEC) / 0.2).collect();
            let highest = got.iter().copied().fold(0.0, f64::max);
            let name = version.name;
            assert!((highest > 0.9) == (most > 0.9) && highest < most + 0.3, "{name}, {slice_us} us: {got:.3?}");
        }
    }
}

#[test]
fn a_quota_is_what_a_group_gets() {
    for version in Version::all() {
        for (cpus, hogs, quota) in [(1, 1, 50), (1, 3, 50), (4, 4, 50), (4, 6, 200), (2, 1, 20)] {
            let mut workload = tasks(vec![("h", 0, None, hog())]);
            workload.tasks[0].count = hogs;
            let group = limited("/g", quota * MSEC, 100 * MSEC, 0);
            let run = run_of(version.name, cpus, vec![group], workload, &[Some("/g")]);
            let got = part(&runs(&run, "h"), SEC, 10 * SEC);
            let expected = quota as f64 / 100.0;
            let name = version.name;
            assert!((got - expected).abs() < 0.01, "{name}: {hogs} hogs on {cpus} CPUs got {got:.4} of {expected}");
        }
    }
}

/// After a second of sleep a group has saved the two refills that came before the timer stopped, as far as burst
/// allows.
#[test]
fn a_burst_is_saved_quota() {
    let sleeper = vec![Op::Sleep(Amount::Fixed(SEC)), Op::Run(Amount::Fixed(10 * SEC)), Op::Jump(0)];
    for version in Version::all() {
        for (burst, expected) in [(0, 0.2), (10, 0.3), (60, 0.6)] {
            let workload = tasks(vec![("s", 0, None, sleeper.clone())]);
            let group = limited("/g", 20 * MSEC, 100 * MSEC, burst * MSEC);
            let run = run_of(version.name, 1, vec![group], workload, &[Some("/g")]);
            let expected = if version.rules.bandwidth_burst { expected } else { 0.2 };
            let runs = runs(&run, "s");
            let (first, later) = (part(&runs, SEC, SEC + 100 * MSEC), part(&runs, 2 * SEC, 10 * SEC));
            let name = version.name;
            assert!((first - expected).abs() < 0.05, "{name}, burst {burst} ms: {first:.3} instead of {expected}");
            assert!((later - 0.2).abs() < 0.01, "{name}, burst {burst} ms: {later:.3} in the long run");
        }
    }
}

/// The stricter of two nested quotas applies; a task outside the groups gets the rest of the CPU.
#[test]
fn nested_quotas_hold_both() {
    for version in Version::all() {
        let groups = vec![
            limited("/g", 40 * MSEC, 100 * MSEC, 0),
            limited("/g/a", 30 * MSEC, 100 * MSEC, 0),
            limited("/g/b", 30 * MSEC, 50 * MSEC, 0),
        ];
        let list = vec![("a", 0, None, hog()), ("b", 0, None, hog()), ("o", 0, None, hog())];
        let in_group = [Some("/g/a"), Some("/g/b"), None];
        let run = run_of(version.name, 1, groups, tasks(list), &in_group);
        let share = |name: &str| part(&runs(&run, name), SEC, 10 * SEC);
        let (a, b, outside) = (share("a"), share("b"), share("o"));
        assert!((a + b - 0.4).abs() < 0.01, "{}: {a:.3} + {b:.3} of 0.4", version.name);
        assert!(a < 0.31, "{}: {a:.3} of 0.3", version.name);
        assert!((outside - 0.6).abs() < 0.02, "{}: {outside:.3} of the rest", version.name);
    }
}

/// A hog with half a CPU is throttled in every period, and half the time.
#[test]
fn throttling_is_counted() {
    for version in Version::all() {
        let group = limited("/g", 50 * MSEC, 100 * MSEC, 0);
        let run = run_of(version.name, 1, vec![group], tasks(vec![("h", 0, None, hog())]), &[Some("/g")]);
        let outcome = record(&run).0.unwrap();
        let [(path, stats)] = &outcome.bandwidth[..] else { panic!("one group has a quota") };
        assert_eq!(path, "/g");
        assert!((98..=100).contains(&stats.nr_periods), "{}: {stats:?}", version.name);
        assert!(stats.nr_periods - stats.nr_throttled <= 1, "{}: {stats:?}", version.name);
        let throttled = stats.throttled_time as f64 / (10 * SEC) as f64;
        assert!((throttled - 0.5).abs() < 0.02, "{}: {throttled:.3} of the time", version.name);
    }
}

/// From 6.18 a throttled task leaves its queue at the end of the interrupt that found the quota used up, if no
/// reschedule is pending: no competitor has to be picked first, and the group's weight leaves with it.
#[test]
fn a_throttled_task_leaves_before_the_next_pick() {
    for version in Version::all().iter().filter(|version| version.rules.throttles_at_once()) {
        let list = vec![("w", 0, None, hog()), ("h", -10, None, hog())];
        let mut workload = tasks(list);
        workload.tasks.iter_mut().for_each(|task| task.slice = Some(100 * MSEC));
        let group = limited("/web", 10 * MSEC, 100 * MSEC, 0);
        let run = run_of(version.name, 1, vec![group], workload, &[Some("/web"), None]);
        let mut sink = crate::support::Record::default();
        let mut session = schedlab_sim::Session::new(&run, &mut sink);
        let cpu = schedlab_model::CpuId(0);
        let (mut throttled, mut waits) = (0, 0);
        while session.now() < SEC {
            session.step(&std::sync::atomic::AtomicBool::new(false)).unwrap();
            let fair = &session.sched().fair;
            let web = schedlab_policy::fair::GroupId(1);
            let w = schedlab_model::TaskId(0);
            if fair.group_rq(web, cpu).throttled && fair.curr(cpu) != Some(w) {
                throttled += 1;
                waits += u32::from(fair.entity(w).on_rq);
            }
        }
        assert!(throttled > 10 && waits == 0, "{}: queued {waits} of {throttled} times", version.name);
    }
}

/// A task that sleeps when the quota is used up is not kept from running; up to 6.5 the time counts as throttled all
/// the same.
#[test]
fn throttled_time_of_an_empty_group() {
    let nap = vec![Op::Run(Amount::Fixed(10 * MSEC)), Op::Sleep(Amount::Fixed(90 * MSEC)), Op::Jump(0)];
    for version in Version::all() {
        let group = limited("/g", 10 * MSEC, 100 * MSEC, 0);
        let run = run_of(version.name, 1, vec![group], tasks(vec![("n", 0, None, nap.clone())]), &[Some("/g")]);
        let outcome = record(&run).0.unwrap();
        let stats = outcome.bandwidth[0].1;
        let throttled = stats.throttled_time as f64 / (10 * SEC) as f64;
        let counts = !version.rules.throttle_clock_waits;
        assert!(if counts { throttled > 0.2 } else { throttled < 0.01 }, "{}: {throttled} {stats:?}", version.name);
    }
}

/// Two hogs in a group whose parent has the quota. 7.2 throttles only the one that ran when the quota was used up: the
/// other is picked within the same group, where `set_next_task_fair` does not look at the levels above, and is never
/// throttled. That of 7.3 looks at every level.
#[test]
fn a_quota_above_a_group_of_two_hogs() {
    for version in Version::all() {
        let groups = vec![limited("/g", 50 * MSEC, 100 * MSEC, 0), Cgroup { path: "/g/a".into(), ..Cgroup::default() }];
        let mut workload = tasks(vec![("h", 0, None, hog())]);
        workload.tasks[0].count = 2;
        let run = run_of(version.name, 1, groups, workload, &[Some("/g/a")]);
        let got = part(&runs(&run, "h"), SEC, 10 * SEC);
        let looks_above = !version.rules.throttles_at_once() || version.rules.flat_hierarchy;
        let expected = if looks_above { 0.5 } else { 1.0 };
        assert!((got - expected).abs() < 0.01, "{}: {got:.4} of {expected}", version.name);
    }
}
