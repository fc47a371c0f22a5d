//! Spinlocks: a task that waits burns its CPU. A preempted holder of one in user space makes all others wait; one of
//! the kernel is not preempted.

use crate::support::{flat, kernel, record, sampled_time, spec, tasks, Record};
use schedlab_model::{Nanos, MSEC, USEC};
use schedlab_spec::RunSpec;
use schedlab_trace::Kind;
use schedlab_workload::{Amount, ObjectSpec, Op, Section, SectionContext, SpinLockSpec, Workload};

fn lock() -> Op {
    Op::SpinLock { object: 0, metric: 0 }
}

fn run(ns: Nanos) -> Op {
    Op::Run(Amount::Fixed(ns))
}

fn with_lock(mut workload: Workload, spin: Nanos, sleep: Nanos) -> Workload {
    workload.objects = vec![ObjectSpec::SpinLock(SpinLockSpec { spin, sleep, ..SpinLockSpec::default() })];
    workload.metrics = vec![sampled_time("lock.spin")];
    workload
}

/// Machine without costs.
fn free(cpus: u32, workload: Workload) -> RunSpec {
    let mut spec = spec(flat(cpus, 0), kernel("6.12.0", cpus as usize, 250), vec![workload]);
    spec.duration = 100 * MSEC;
    spec
}

fn spun(record: &Record) -> Vec<(Nanos, i32, u64)> {
    let sample = |e: &schedlab_trace::Event| match e.kind {
        Kind::Sample { pid, value, .. } => Some((e.time, pid, value)),
        _ => None,
    };
    record.events.iter().filter_map(sample).collect()
}

#[test]
fn a_task_spins_until_the_holder_releases_and_in_the_order_of_arrival() {
    let first = vec![lock(), run(5 * MSEC), Op::SpinUnlock(0)];
    let second = vec![run(MSEC), lock(), run(3 * MSEC), Op::SpinUnlock(0)];
    let third = vec![run(2 * MSEC), lock(), Op::SpinUnlock(0)];
    let workload = tasks(vec![("a", 0, Some(0), first), ("b", 0, Some(1), second), ("c", 0, Some(2), third)]);
    let (outcome, record) = record(&free(3, with_lock(workload, 0, 0)));
    let outcome = outcome.unwrap();
    assert_eq!(spun(&record), [(5 * MSEC, 2, 4 * MSEC), (8 * MSEC, 3, 6 * MSEC)]);
    // Spinning is CPU time.
    assert_eq!(outcome.cpus.iter().map(|cpu| cpu.busy).collect::<Vec<_>>(), [5 * MSEC, 8 * MSEC, 8 * MSEC]);
}

#[test]
fn a_preempted_holder_makes_the_others_spin() {
    let holder = vec![lock(), run(6 * MSEC), Op::SpinUnlock(0)];
    let hog = vec![run(100 * MSEC)];
    let waiter = vec![run(MSEC), lock(), Op::SpinUnlock(0)];
    let workload =
        tasks(vec![("holder", 0, Some(0), holder), ("hog", 0, Some(0), hog), ("waiter", 0, Some(1), waiter)]);
    let (outcome, record) = record(&free(2, with_lock(workload, 0, 0)));
    outcome.unwrap();
    let [(at, _, spun)] = spun(&record)[..] else { panic!() };
    assert!(at >= 9 * MSEC && spun == at - MSEC, "spun {spun} until {at}");
}

#[test]
fn a_task_that_has_spun_for_long_enough_sleeps() {
    let holder = vec![lock(), run(5 * MSEC), Op::SpinUnlock(0), run(20 * MSEC)];
    let waiter = vec![run(MSEC), lock(), Op::SpinUnlock(0), run(MSEC)];
    let mut workload = tasks(vec![("holder", 0, Some(0), holder), ("waiter", 0, Some(1), waiter)]);
    workload.tasks[1].timer_slack = 0;
    let (outcome, record) = record(&free(2, with_lock(workload, 100 * USEC, MSEC)));
    // It spins at 1 ms, 2.1 ms, 3.2 ms and 4.3 ms for 0.1 ms each and finds the lock free at 5.4 ms.
    assert_eq!(spun(&record), [(5400 * USEC, 2, 400 * USEC)]);
    assert_eq!(outcome.unwrap().cpus[1].busy, 2 * MSEC + 400 * USEC);
}

#[test]
fn a_spinner_that_was_preempted_takes_the_lock_when_it_runs_again() {
    // Both wait on one CPU for a holder on another.
    let holder = vec![lock(), run(10 * MSEC), Op::SpinUnlock(0)];
    let waiter = || vec![lock(), run(MSEC), Op::SpinUnlock(0)];
    let workload =
        tasks(vec![("holder", 0, Some(0), holder), ("a", 0, Some(1), waiter()), ("b", 0, Some(1), waiter())]);
    let (outcome, record) = record(&free(2, with_lock(workload, 0, 0)));
    outcome.unwrap();
    let found = spun(&record);
    assert_eq!(found.len(), 2);
    assert!(found[0].0 == 10 * MSEC && found[1].0 <= 16 * MSEC, "{found:?}");
    // One of them at a time used the CPU.
    assert!(found.iter().map(|(_, _, spun)| spun).sum::<u64>() <= found[1].0);
}

#[test]
fn misuse_is_an_error_of_the_program() {
    for (ops, expected) in [
        (vec![lock(), lock()], "holds this spinlock already"),
        (vec![Op::SpinUnlock(0)], "does not hold this spinlock"),
    ] {
        let workload = tasks(vec![("a", 0, None, ops)]);
        let (outcome, _) = record(&free(1, with_lock(workload, 0, 0)));
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_session_names_the_lock_and_what_its_holder_does() {
    let holder = vec![lock(), run(6 * MSEC), Op::SpinUnlock(0)];
    let hog = vec![run(100 * MSEC)];
    let waiter = vec![run(MSEC), lock(), Op::SpinUnlock(0)];
    let workload =
        tasks(vec![("holder", 0, Some(0), holder), ("hog", 0, Some(0), hog), ("waiter", 0, Some(1), waiter)]);
    let mut workload = with_lock(workload, 0, 0);
    workload.object_names = vec!["buffers".into()];
    let spec = free(2, workload);
    let mut sink = Record::default();
    let mut session = schedlab_sim::Session::new(&spec, &mut sink);
    let cancel = std::sync::atomic::AtomicBool::new(false);
    while session.next_time().is_some_and(|time| time <= 5 * MSEC) {
        session.step(&cancel).unwrap();
    }
    let executes = session.executes(schedlab_model::CpuId(1)).unwrap();
    assert_eq!(executes, "spins for \"buffers\", held by task 1, which was preempted");
}

/// A call that holds the spinlock of the kernel for this long.
fn kernel_section(ns: Nanos) -> Vec<Op> {
    let section = Section { context: SectionContext::Spinlock, might_sleep: false, every: 0 };
    let held = Op::Section { amount: Amount::Fixed(ns), section, last: false };
    let lock = Op::KernelLock { object: 0, metric: 0 };
    vec![Op::Call, lock, held, Op::KernelUnlock { object: 0, last: true }]
}

fn with_kernel_lock(workload: Workload) -> Workload {
    Workload { objects: vec![ObjectSpec::KernelLock], metrics: vec![sampled_time("lock.spin")], ..workload }
}

/// Three tasks try to take the lock one after the other. They get it in that order; on rt those that wait sleep.
#[test]
fn a_spinlock_of_the_kernel_is_handed_over_in_the_order_of_arrival() {
    let after = |ns: Nanos, held: Nanos| [vec![run(ns)], kernel_section(held)].concat();
    let programs = [after(0, 5 * MSEC), after(MSEC, 3 * MSEC), after(2 * MSEC, MSEC)];
    let workload = || {
        let named = ["a", "b", "c"].into_iter().zip(programs.clone()).enumerate();
        with_kernel_lock(tasks(named.map(|(cpu, (name, program))| (name, 0, Some(cpu as u32), program)).collect()))
    };
    for (preempt, busy) in [("none", [5, 8, 9]), ("full", [5, 8, 9]), ("rt", [5, 4, 3])] {
        let mut spec = free(3, workload());
        spec.kernel.set_preempt(preempt.parse().unwrap()).unwrap();
        let (outcome, record) = record(&spec);
        let busy = busy.map(|ms| ms * MSEC);
        assert_eq!(outcome.unwrap().cpus.iter().map(|cpu| cpu.busy).collect::<Vec<_>>(), busy, "{preempt}");
        let got: Vec<(Nanos, i32)> = spun(&record).iter().map(|(time, pid, _)| (*time, *pid)).collect();
        assert_eq!(got, [(5 * MSEC, 2), (8 * MSEC, 3)], "{preempt}");
        let exits = |pid| {
            record
                .events
                .iter()
                .any(|event| matches!(event.kind, Kind::Switch { prev, .. } if prev == pid && event.time >= 5 * MSEC))
        };
        assert!([1, 2, 3].into_iter().all(exits), "{preempt}");
    }
}

/// A task that holds a spinlock of the kernel, or spins for one, is not preempted before it has released it.
#[test]
fn a_holder_and_a_waiter_of_a_kernel_spinlock_are_not_preempted() {
    let woken = || vec![Op::Sleep(Amount::Fixed(2 * MSEC)), run(MSEC)];
    let waits = [vec![run(MSEC)], kernel_section(MSEC), vec![run(50 * MSEC)]].concat();
    let holds = [kernel_section(6 * MSEC), vec![run(50 * MSEC)]].concat();
    let workload = tasks(vec![
        ("holder", 19, Some(0), holds),
        ("wakee", -20, Some(0), woken()),
        ("waiter", 19, Some(1), waits),
        ("wakee", -20, Some(1), woken()),
    ]);
    let mut spec = free(2, with_kernel_lock(workload));
    spec.kernel.set_preempt("full".parse().unwrap()).unwrap();
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let out = |pid: i32| {
        let switch =
            |e: &schedlab_trace::Event| matches!(e.kind, Kind::Switch { prev, .. } if prev == pid).then_some(e.time);
        record.events.iter().find_map(switch).unwrap()
    };
    assert_eq!((out(1), out(3)), (6 * MSEC, 7 * MSEC));
}

/// Without noise a sleep is half as long again as the last, and one beyond the maximum starts again.
#[test]
fn the_sleeps_for_a_lock_grow_up_to_the_maximum() {
    let holder = vec![lock(), run(20 * MSEC), Op::SpinUnlock(0)];
    let waiter = vec![run(MSEC), lock(), Op::SpinUnlock(0), run(MSEC)];
    let mut workload = tasks(vec![("holder", 0, Some(0), holder), ("waiter", 0, Some(1), waiter)]);
    workload.tasks[1].timer_slack = 0;
    let mut spec = free(2, with_lock(workload, 100 * USEC, MSEC));
    let spec_of_lock = SpinLockSpec { spin: 100 * USEC, sleep: MSEC, sleep_max: 2 * MSEC, slice_extension: false };
    std::sync::Arc::make_mut(&mut spec.workloads)[0].objects = vec![ObjectSpec::SpinLock(spec_of_lock)];
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let woken = |e: &schedlab_trace::Event| matches!(e.kind, Kind::Wakeup { pid: 2, .. }).then_some(e.time);
    let times: Vec<_> = record.events.iter().filter_map(woken).collect();
    let sleeps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0] - 100 * USEC).collect();
    assert_eq!(sleeps[..4], [1_500 * USEC, MSEC, 1_500 * USEC, MSEC]);
}
