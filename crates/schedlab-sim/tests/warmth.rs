//! The cost to a task of data that others have displaced from the caches.

use crate::support::{kernel, machine, record, spec, tasks};
use schedlab_model::{CpuId, CpuMask, Nanos, Topology, MSEC, USEC};
use schedlab_sim::Outcome;
use schedlab_spec::{CacheLevel, Caches, FrontEnd, Machine, Mechanism, RunSpec, SharedBy};
use schedlab_trace::{Event, Kind};
use schedlab_workload::catalogue::{self, OptionValue, Where};
use schedlab_workload::{Amount, Op, TaskKind, Workload};

const L2: u64 = 1024;
const LLC: u64 = 8192;
/// Reading 1 KiB out of the core's cache, the last-level cache, the memory.
const READ: [Nanos; 3] = [10, 40, 100];

const FRONT_END: FrontEnd = FrontEnd { kib: 128, warm: 50, cold: 110 };

/// Two nodes with a last-level cache for two cores each.
fn warm_machine(threads: u32, cost: Nanos) -> Machine {
    let mut machine = machine(Topology::regular(2, 1, 2, threads, true).unwrap(), cost);
    let levels = vec![
        CacheLevel { name: "l2", shared_by: SharedBy::Core, kib: L2, read: READ[0] },
        CacheLevel { name: "llc", shared_by: SharedBy::Llc, kib: LLC, read: READ[1] },
    ];
    machine.caches = Some(Caches { levels, memory: READ[2], front_end: Some(FRONT_END) });
    machine.physics.set(Mechanism::Warmth, true);
    machine
}

fn of(mut workload: Workload, sets: &[u32]) -> RunSpec {
    workload.tasks.iter_mut().zip(sets).for_each(|(task, set)| task.working_set = *set);
    workload.tasks.iter_mut().for_each(|task| task.timer_slack = 1);
    let mut spec = spec(warm_machine(1, 0), kernel("6.12.107", 4, 250), vec![workload]);
    spec.duration = 200 * MSEC;
    spec
}

fn run(spec: &RunSpec) -> (Outcome, Vec<Event>) {
    let (outcome, record) = record(spec);
    (outcome.unwrap(), record.events)
}

/// What each stay on a CPU has refilled: KiB and time.
fn refills(events: &[Event]) -> Vec<(u32, Nanos)> {
    let refill = |event: &Event| match event.kind {
        Kind::Refill { kib, time, .. } => Some((kib, time)),
        _ => None,
    };
    events.iter().filter_map(refill).collect()
}

fn hog() -> Vec<Op> {
    vec![Op::Run(Amount::Fixed(MSEC)), Op::Jump(0)]
}

fn two_hogs(sets: [u32; 2]) -> RunSpec {
    of(tasks(vec![("a", 0, Some(0), hog()), ("b", 0, Some(0), hog())]), &sets)
}

#[test]
fn tasks_that_alternate_refill_what_exceeds_the_cache() {
    for (sets, missing) in [([600, 600], 176), ([1000, 100], 76), ([500, 524], 0), ([600, 0], 0)] {
        let found = refills(&run(&two_hogs(sets)).1);
        assert_eq!(found.len() > 10, missing > 0, "{sets:?}: {found:?}");
        let expected = (missing, Nanos::from(missing) * (READ[1] - READ[0]));
        assert!(found.iter().all(|refill| *refill == expected), "{sets:?}: {found:?}");
    }
}

/// A set beyond the core's cache is read from the next level even if nothing disturbs it: only the part in the cache
/// counts.
#[test]
fn no_more_than_a_cache_holds_can_be_displaced_from_it() {
    let found = refills(&run(&two_hogs([4096, 4096])).1);
    assert!(
        found.len() > 10 && found.iter().all(|refill| *refill == (L2 as u32, L2 * (READ[1] - READ[0]))),
        "{found:?}"
    );
}

#[test]
fn without_the_mechanism_or_without_a_working_set_nothing_changes() {
    let plain = |spec: &RunSpec| run(spec).1;
    let off = |mut spec: RunSpec| {
        std::sync::Arc::make_mut(&mut spec.machine).physics.set(Mechanism::Warmth, false);
        spec
    };
    let never = plain(&off(two_hogs([0, 0])));
    assert_eq!(plain(&off(two_hogs([600, 600]))), never);
    assert_eq!(plain(&two_hogs([0, 0])), never);
    assert_ne!(plain(&two_hogs([600, 600])), never);
}

/// A stay that ends before the task has gone through its set refills the part that it went through, and loses that
/// part.
#[test]
fn a_short_stay_refills_no_more_than_it_can_touch() {
    let sleeper = vec![Op::Run(Amount::Fixed(USEC)), Op::Sleep(Amount::Fixed(5 * MSEC)), Op::Jump(0)];
    let spec = of(tasks(vec![("sleeper", -10, Some(0), sleeper), ("hog", 0, Some(0), hog())]), &[512, 1024]);
    let events = run(&spec).1;
    let of_sleeper = events.iter().filter_map(|event| match event.kind {
        Kind::Refill { pid: 1, kib, time } => Some((kib, time)),
        _ => None,
    });
    // 1 us of 5.12 us: 19.5% of 512 KiB, of which 30 ns each are lost.
    let found: Vec<(u32, Nanos)> = of_sleeper.collect();
    assert!(found.len() > 20, "{found:?}");
    assert!(found.iter().all(|(kib, time)| *kib == 100 && time.abs_diff(3000) <= 1), "{found:?}");
}

#[test]
fn a_task_that_moves_refills_its_set_from_where_it_lies() {
    // To the other core of the same cache, and to the other node.
    for (to, behind) in [(1, READ[1]), (2, READ[2])] {
        let mut workload = tasks(vec![(
            "mover",
            0,
            Some(0),
            vec![Op::Run(Amount::Fixed(MSEC)), Op::SetAffinity(0), Op::Run(Amount::Fixed(MSEC)), Op::Exit],
        )]);
        workload.masks = vec![CpuMask::from_iter([CpuId(to)])];
        let events = run(&of(workload, &[512])).1;
        assert_eq!(refills(&events), [(512, 512 * (behind - READ[0]))], "to CPU {to}");
    }
}

/// A refill delays the task by its time.
#[test]
fn work_takes_longer_by_what_is_refilled() {
    let done = |sets: [u32; 2]| {
        let work = |name| (name, 0, Some(0), vec![Op::Run(Amount::Fixed(40 * MSEC)), Op::Exit]);
        let (outcome, events) = run(&of(tasks(vec![work("a"), work("b")]), &sets));
        (outcome.now, refills(&events).iter().map(|(_, time)| time).sum::<Nanos>())
    };
    let ((cold, lost), (warm, nothing)) = (done([600, 600]), done([500, 500]));
    assert!(lost > 50 * USEC && nothing == 0);
    assert!((cold - warm).abs_diff(lost) <= 20, "{cold} {warm} {lost}");
}

/// The checks of every run hold with refills on threads that share their core's rate, with system calls and preemption.
#[test]
fn time_is_conserved_with_refills() {
    let groups = ("groups".to_owned(), OptionValue::Int(8), Where::default());
    let mut workload = catalogue::build("hackbench", &[groups], "hackbench", false, 8).unwrap();
    workload.tasks.iter_mut().for_each(|task| task.working_set = 64);
    let mut hogs = catalogue::build("hog", &[], "hog", false, 8).unwrap();
    hogs.tasks.iter_mut().for_each(|task| task.working_set = 700);
    let mut spec = spec(warm_machine(2, 200), kernel("6.18.2", 8, 250), vec![workload, hogs]);
    spec.duration = 50 * MSEC;
    spec.noise = true;
    let found = refills(&run(&spec).1).len();
    assert!(found > 100, "{found}");
}

/// A forked task has the set of its program, or that of its parent where the program has none.
#[test]
fn a_forked_task_has_the_set_of_its_program() {
    let worked = |parent: u32, of_program: u32| {
        let body = vec![Op::Run(Amount::Fixed(40 * MSEC)), Op::Exit];
        let fork = Op::Fork { program: 2, kind: TaskKind::Process, into: 0 };
        let mut workload = tasks(vec![
            ("parent", 0, Some(0), vec![fork, Op::Exit]),
            ("other", 0, Some(0), hog()),
            ("never", 0, Some(0), body),
        ]);
        workload.programs[2].working_set = of_program;
        workload.tasks.pop();
        let events = run(&of(workload, &[parent, 600])).1;
        refills(&events).iter().map(|(kib, _)| *kib).max().unwrap_or(0)
    };
    // 600 KiB of the other task and the child's set are this much more than the L2.
    let cases = [(0, 0, 0), (0, 700, 276), (500, 0, 76), (500, 700, 276)];
    for (parent, of_program, missing) in cases {
        assert_eq!(worked(parent, of_program), missing, "{parent} {of_program}");
    }
}

/// Code is displaced by that of other workloads only, and beyond what the front end holds it is never warm.
#[test]
fn workloads_that_alternate_displace_each_others_code() {
    let each = |kib: u32| {
        let mut workload = tasks(vec![("a", 0, Some(0), hog())]);
        workload.tasks[0].code = kib;
        workload
    };
    let missing = |workloads: Vec<Workload>| {
        let mut spec = of(tasks(vec![]), &[]);
        spec.workloads = std::sync::Arc::new(workloads);
        refills(&run(&spec).1)
    };
    for (code, kib) in [([100, 100], 72), ([64, 64], 0), ([500, 500], 128), ([100, 0], 0)] {
        let found = missing(code.map(each).to_vec());
        assert_eq!(found.len() > 10, kib > 0, "{code:?}: {found:?}");
        let expected = (kib, Nanos::from(kib) * (FRONT_END.cold - FRONT_END.warm));
        assert!(found.iter().all(|refill| *refill == expected), "{code:?}: {found:?}");
    }
    let mut one = tasks(vec![("a", 0, Some(0), hog()), ("b", 0, Some(0), hog())]);
    one.tasks.iter_mut().for_each(|task| task.code = 100);
    assert_eq!(missing(vec![one]), []);
}
