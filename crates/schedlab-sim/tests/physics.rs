//! Where costs are charged, and when a request to reschedule takes effect.

use crate::support::{flat, kernel, machine, record, spec, tasks, Record};
use schedlab_model::{Nanos, Topology, MSEC, SEC, USEC};
use schedlab_spec::Machine;
use schedlab_trace::{Kind, TaskState};
use schedlab_workload::{Amount, Dist, Op};

/// When the task of that name was last woken before `from`, and when it ran next.
fn wakeups(record: &Record, name: &str) -> Vec<(Nanos, Nanos)> {
    let pid = record.names.iter().find(|(_, known)| known == name).unwrap().0;
    let mut woken = None;
    let mut found = Vec::new();
    for event in &record.events {
        match event.kind {
            Kind::Waking { pid: wakee, .. } if wakee == pid => woken = Some(event.time),
            Kind::Switch { next, .. } if next == pid => found.extend(woken.take().map(|at| (at, event.time))),
            _ => {}
        }
    }
    found
}

#[test]
fn a_wakeup_from_idle_takes_interrupt_and_wakeup_before_the_switch() {
    let sleeper = vec![Op::Sleep(Amount::Fixed(MSEC)), Op::Run(Amount::Fixed(USEC)), Op::Jump(0)];
    let spec = spec(flat(1, 1000), kernel("6.12.0", 1, 250), vec![tasks(vec![("s", 0, None, sleeper)])]);
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let found = wakeups(&record, "s");
    assert!(found.len() > 500, "{}", found.len());
    // Interrupt, wakeup and the test of one CPU cost 1 us each.
    assert!(found.iter().all(|(woken, ran)| ran - woken == 3000), "{:?}", &found[..3]);
}

#[test]
fn a_running_task_notices_a_remote_request_only_by_the_interrupt() {
    let slow_ipi = |mut machine: Machine| {
        machine.costs.ipi.iter_mut().for_each(|ipi| *ipi = Dist::Constant(MSEC));
        machine
    };
    for burst in [SEC, 100 * USEC, 7 * USEC] {
        let hog = vec![Op::Run(Amount::Fixed(burst)), Op::Jump(0)];
        // The wakee's timer is on CPU 1, where it last slept; its affinity places it on the hog's CPU.
        let wakee = vec![Op::SetAffinity(0), Op::Wait(0), Op::Run(Amount::Fixed(10 * USEC)), Op::Jump(1)];
        let waker = vec![Op::Sleep(Amount::Fixed(20 * MSEC)), Op::Post(0), Op::Jump(0)];
        let mut workload =
            tasks(vec![("hog", 0, Some(0), hog), ("wakee", -20, Some(0), wakee), ("waker", 0, Some(1), waker)]);
        workload.objects = vec![schedlab_workload::ObjectSpec::Futex];
        workload.masks = vec![schedlab_model::CpuMask::first(1)];
        let mut spec = spec(slow_ipi(flat(2, 100)), kernel("6.12.0", 2, 100), vec![workload]);
        spec.duration = 200 * MSEC;
        let (outcome, record) = record(&spec);
        outcome.unwrap();
        let found = wakeups(&record, "wakee");
        assert!(!found.is_empty());
        for (woken, ran) in found {
            // A tick is an interrupt as well.
            let tick = woken / (10 * MSEC) != ran / (10 * MSEC);
            assert!(ran - woken >= MSEC || tick, "burst {burst}: ran {} ns after it was woken", ran - woken);
        }
    }
}

/// Sending takes the sender's time and not the wakee's: the waker runs for as much longer after each wakeup, and the
/// wakee is switched in at the same time after it.
#[test]
fn sending_an_interrupt_keeps_the_sender_busy() {
    let run = |ipi_send| {
        let hog = vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)];
        let wakee = vec![Op::Wait(0), Op::Run(Amount::Fixed(10 * USEC)), Op::Jump(0)];
        let waker = vec![Op::Sleep(Amount::Fixed(MSEC)), Op::Post(0), Op::Jump(0)];
        let mut workload =
            tasks(vec![("hog", 0, Some(0), hog), ("wakee", -20, Some(0), wakee), ("waker", 0, Some(1), waker)]);
        workload.objects = vec![schedlab_workload::ObjectSpec::Futex];
        let mut machine = flat(2, 100);
        machine.costs.ipi_send = Dist::Constant(ipi_send);
        let mut spec = spec(machine, kernel("6.12.0", 2, 100), vec![workload]);
        spec.duration = 20 * MSEC;
        let (outcome, record) = record(&spec);
        outcome.unwrap();
        let waited: Vec<Nanos> = wakeups(&record, "wakee").iter().skip(2).map(|(woken, ran)| ran - woken).collect();
        let sleeps: Vec<Nanos> = wakeups(&record, "waker").iter().map(|(woken, _)| *woken).collect();
        (waited[0], sleeps[5] - sleeps[4])
    };
    let (waited, round) = run(0);
    assert_eq!(run(3 * USEC), (waited, round + 3 * USEC));
}

#[test]
fn a_task_that_starts_on_a_busy_cpu_may_preempt_at_once() {
    let hog = |ops| vec![Op::Run(Amount::Fixed(SEC)), ops];
    let mut workload = tasks(vec![("hog", 19, None, hog(Op::Exit)), ("late", -20, None, hog(Op::Exit))]);
    workload.tasks[1].delay = 50 * MSEC + 500 * USEC;
    let mut spec = spec(flat(1, 100), kernel("6.12.0", 1, 100), vec![workload]);
    spec.duration = 100 * MSEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let first = record.events.iter().find(|e| matches!(e.kind, Kind::Switch { next: 2, .. })).unwrap();
    assert!(first.time < 50 * MSEC + 510 * USEC, "{}", first.time);
}

#[test]
fn two_threads_of_a_core_share_it() {
    let busy = |threads: u32| {
        let hog = || vec![Op::Run(Amount::Fixed(100 * MSEC)), Op::Exit];
        let list = (0..threads).map(|cpu| (["a", "b"][cpu as usize], 0, Some(cpu), hog())).collect();
        let smt = machine(Topology::regular(1, 1, 1, 2, true).unwrap(), 0);
        record(&spec(smt, kernel("6.12.0", 2, 250), vec![tasks(list)])).0.unwrap().now
    };
    assert_eq!(busy(1), 100 * MSEC);
    // The preset gives each of two busy threads 640/1024 of the core.
    assert_eq!(busy(2), 160 * MSEC);
}

#[test]
fn the_lag_bound_is_checked_where_hogs_compete() {
    let hog = |ns: u64| vec![Op::Run(Amount::Fixed(ns)), Op::Jump(0)];
    let nices = [-20, -10, -5, 0, 0, 3, 10, 19];
    let list = nices.iter().enumerate().map(|(i, nice)| (["a", "b"][i % 2], *nice, Some(0), hog(77_777))).collect();
    let mut workload = tasks(list);
    workload.tasks[3].slice = Some(100 * USEC);
    workload.tasks[4].slice = Some(20 * MSEC);
    let mut spec = spec(flat(1, 500), kernel("6.12.0", 1, 250), vec![workload]);
    spec.duration = 5 * SEC;
    let outcome = record(&spec).0.unwrap();
    let looks = outcome.checks.iter().find(|(check, _)| *check == "lag_bound").unwrap().1;
    assert!(looks > 100, "the bound was checked {looks} times");
}

#[test]
fn places_of_dead_tasks_are_reused() {
    let forks = 20_000;
    let fork = Op::Fork { program: 1, kind: schedlab_workload::TaskKind::Process, into: 0 };
    let parent = vec![Op::Set(7, forks), fork, Op::Reap, Op::DecJump { reg: 7, to: 1 }, Op::Exit];
    let child = vec![Op::Run(Amount::Fixed(2 * USEC)), Op::Exit];
    let mut workload = tasks(vec![("parent", 0, None, parent), ("child", 0, None, child)]);
    workload.tasks.truncate(1);
    let (outcome, record) = record(&spec(flat(2, 100), kernel("6.12.0", 2, 250), vec![workload]));
    assert_eq!(outcome.unwrap().tasks_max, 2);
    let born = record.events.iter().filter_map(|event| match event.kind {
        Kind::Fork { child, .. } => Some(child),
        _ => None,
    });
    assert!(born.eq(2..2 + forks as i32), "pids are never reused");
}

#[test]
fn a_lock_outlives_its_holder_and_a_message_to_the_dead_is_lost() {
    let fork = |program| Op::Fork { program, kind: schedlab_workload::TaskKind::Thread, into: 0 };
    // The first child exits with the lock held. The second reuses its place, is posted by its handle and may not
    // unlock.
    let parent =
        vec![fork(1), Op::Copy { into: 1, from: 0 }, Op::Reap, fork(2), Op::PostPeer(1), Op::PostPeer(0), Op::Reap];
    let (dies, waits) = (vec![Op::Lock(0), Op::Exit], vec![Op::WaitOwn, Op::Unlock(0)]);
    let mut workload = tasks(vec![("parent", 0, None, parent), ("dies", 0, None, dies), ("waits", 0, None, waits)]);
    workload.tasks.truncate(1);
    workload.objects = vec![schedlab_workload::ObjectSpec::Mutex { pi: false }];
    let error = record(&spec(flat(1, 100), kernel("6.12.0", 1, 250), vec![workload])).0.unwrap_err();
    assert!(error.to_string().contains("the task does not hold this mutex"), "{error}");
}

/// `prev_state` is what `__schedule` read before it dequeued the task, not what a waker has made of it since.
#[test]
fn a_task_woken_while_its_cpu_leaves_it_leaves_as_a_sleeper() {
    let waiter = vec![Op::Wait(0), Op::Run(Amount::Fixed(500)), Op::Jump(0)];
    // From posts that find the waiter running to posts that find its CPU idle.
    let pauses = (0..50).map(|step| Op::Run(Amount::Fixed(200 * step)));
    let waker = pauses.flat_map(|pause| [pause, Op::Post(0)]).chain([Op::Jump(0)]).collect();
    let mut workload = tasks(vec![("waiter", 0, Some(0), waiter), ("waker", 0, Some(1), waker)]);
    workload.objects = vec![schedlab_workload::ObjectSpec::Futex];
    let mut machine = flat(2, 1000);
    machine.costs.schedule = Dist::Constant(2 * USEC);
    let mut spec = spec(machine, kernel("6.12.0", 2, 250), vec![workload]);
    spec.duration = 50 * MSEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let (mut woken, mut early) = (false, 0);
    for event in &record.events {
        match event.kind {
            Kind::Waking { pid: 1, .. } => woken = true,
            Kind::Switch { prev: 1, prev_state, next, .. } => {
                assert!(next != 0 || prev_state != TaskState::Running, "runnable, yet the CPU goes idle: {event:?}");
                early += u32::from(std::mem::take(&mut woken) && prev_state == TaskState::Sleeping);
            }
            Kind::Switch { next: 1, .. } => woken = false,
            _ => {}
        }
    }
    assert!(early > 0, "no wakeup met the CPU inside __schedule");
}

/// The interrupt of a wakelist may come for another task while the CPU, which is in `__schedule` with interrupts
/// disabled, has been given the task that it is about to leave as well (WF_ON_CPU): that one is enqueued after the
/// switch.
#[test]
fn a_wakelist_with_the_task_that_its_cpu_leaves_waits_for_the_switch() {
    let sleeper = |futex| vec![Op::Wait(futex), Op::Run(Amount::Fixed(500)), Op::Jump(0)];
    let pauses = (0..50).map(|step| Op::Run(Amount::Fixed(1000 * step)));
    let waker = pauses.flat_map(|pause| [pause, Op::Post(1), Op::Post(0)]).chain([Op::Jump(0)]).collect();
    let all = vec![("leaves", 0, Some(0), sleeper(0)), ("other", 0, Some(0), sleeper(1)), ("waker", 0, Some(1), waker)];
    let mut workload = tasks(all);
    workload.objects = vec![schedlab_workload::ObjectSpec::Futex, schedlab_workload::ObjectSpec::Futex];
    // Two caches, so that wakeups cross by the wakelist.
    let mut machine = crate::support::machine(Topology::regular(1, 2, 1, 1, true).unwrap(), 300);
    machine.costs.schedule = Dist::Constant(20 * USEC);
    // Long enough for both wakeups to be on the list when the interrupt arrives.
    machine.costs.ipi = [0; 5].map(|_| Dist::Constant(5 * USEC));
    let mut spec = spec(machine, kernel("5.10", 2, 250), vec![workload]);
    spec.duration = 50 * MSEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let runs = |pid| {
        record.events.iter().filter(|event| matches!(event.kind, Kind::Switch { next, .. } if next == pid)).count()
    };
    assert!(runs(1) > 100 && runs(2) > 100, "{} and {}", runs(1), runs(2));
}
