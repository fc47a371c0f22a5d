//! Time slice extensions: what a request to reschedule does to a task in a critical section that has asked for one.
//! Everything costs nothing but a page fault, so that the times are exact.

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{Nanos, MSEC, USEC};
use schedlab_trace::{Extension, Kind};
use schedlab_workload::{Amount, Dist, MemoryWork, ObjectSpec, Op, Policy, SpinLockSpec, Workload};

/// The running task takes the lock here, between two ticks.
const LOCKED: Nanos = 10_000 * USEC;
/// A task that preempts the running one wakes here.
const WOKEN: Nanos = 10_500 * USEC;
/// The part of the critical section before that.
const BEFORE: Nanos = WOKEN - LOCKED;
/// A real-time task wakes so much later.
const LATER: Nanos = 2 * USEC;
const LIMIT: Nanos = 5 * USEC;
const FAULT: Nanos = 20 * USEC;

fn run(ns: Nanos) -> Op {
    Op::Run(Amount::Fixed(ns))
}

fn fault() -> Op {
    Op::Memory { work: MemoryWork::Map, kib: 4 }
}

fn sleep(ns: Nanos) -> Op {
    Op::Sleep(Amount::Fixed(ns))
}

/// The critical section of the running task; the lock is taken before and released after it.
fn workload(section: Vec<Op>, slice_extension: bool, real_time: bool) -> Workload {
    let lock = Op::SpinLock { object: 0, metric: 0 };
    let mut holder = vec![run(LOCKED), lock];
    holder.extend(section);
    holder.extend([Op::SpinUnlock(0), run(100 * MSEC)]);
    let mut list = vec![("wakee", 0, Some(0), vec![sleep(WOKEN), run(MSEC)]), ("holder", 0, Some(0), holder)];
    if real_time {
        list.push(("late", 0, Some(0), vec![sleep(WOKEN + LATER), run(MSEC)]));
    }
    let mut workload = tasks(list);
    workload.objects = vec![ObjectSpec::SpinLock(SpinLockSpec { slice_extension, ..SpinLockSpec::default() })];
    workload.tasks.iter_mut().for_each(|task| task.timer_slack = 0);
    // Any other fair task preempts one of this policy.
    workload.tasks[1].policy = Policy::Idle;
    if real_time {
        workload.tasks[2].policy = Policy::Fifo(1);
    }
    workload
}

/// What happened to extensions, and when the holder was first switched out after the wakeup.
fn outcome(preempt: &str, workload: Workload) -> (Vec<(Nanos, Extension)>, Nanos) {
    let mut config = kernel("7.2", 1, 250);
    config.set_preempt(preempt.parse().unwrap()).unwrap();
    let mut machine = flat(1, 0);
    machine.costs.fault = Dist::Constant(FAULT);
    let mut spec = spec(machine, config, vec![workload]);
    spec.duration = 50 * MSEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let holder = record.names.iter().find(|(_, name)| name == "holder").unwrap().0;
    let what = |e: &schedlab_trace::Event| match e.kind {
        Kind::Extension { pid, what } if pid == holder => Some((e.time, what)),
        _ => None,
    };
    let left =
        |e: &&schedlab_trace::Event| e.time >= WOKEN && matches!(e.kind, Kind::Switch { prev, .. } if prev == holder);
    let switched = record.events.iter().find(left).unwrap().time;
    (record.events.iter().filter_map(what).collect(), switched)
}

#[track_caller]
fn check(preempt: &str, section: Vec<Op>, real_time: bool, extensions: &[(Nanos, Extension)], switched: Nanos) {
    assert_eq!(outcome(preempt, workload(section, true, real_time)), (extensions.to_vec(), switched), "{preempt}");
}

use Extension::{Aborted, Expired, Granted, Revoked, Yielded};

#[test]
fn the_switch_waits_for_the_end_of_the_critical_section() {
    for preempt in ["full", "lazy"] {
        let extensions = [(WOKEN, Granted), (WOKEN + 2 * USEC, Yielded)];
        check(preempt, vec![run(BEFORE + 2 * USEC)], false, &extensions, WOKEN + 2 * USEC);
    }
}

#[test]
fn an_extension_ends_with_its_time() {
    for preempt in ["full", "lazy"] {
        let extensions = [(WOKEN, Granted), (WOKEN + LIMIT, Expired)];
        check(preempt, vec![run(BEFORE + MSEC)], false, &extensions, WOKEN + LIMIT);
    }
}

#[test]
fn a_further_request_ends_an_extension() {
    let extensions = [(WOKEN, Granted), (WOKEN + LATER, Revoked)];
    check("lazy", vec![run(BEFORE + MSEC)], true, &extensions, WOKEN + LATER);
}

#[test]
fn a_system_call_ends_an_extension_before_it_is_carried_out() {
    let call = Op::System(Amount::Fixed(10 * USEC));
    let extensions = [(WOKEN, Granted), (WOKEN + 3 * USEC, Aborted)];
    check("full", vec![run(BEFORE + 3 * USEC), call, run(MSEC)], false, &extensions, WOKEN + 3 * USEC);
}

#[test]
fn outside_a_critical_section_nothing_is_granted() {
    check("lazy", vec![run(BEFORE / 2)], false, &[], WOKEN);
    assert_eq!(outcome("lazy", workload(vec![run(BEFORE + MSEC)], false, false)), (vec![], WOKEN));
}

#[test]
fn a_full_request_of_preempt_rt_is_not_put_off() {
    check("rt", vec![run(BEFORE + MSEC)], false, &[], WOKEN);
}

/// The lazy request waits for the end of the fault, which returns to user mode as an interrupt does. The full one
/// switches in the fault, and the task has lost what it had asked for when it continues.
#[test]
fn a_page_fault_ends_with_an_extension() {
    let section = || vec![run(BEFORE - FAULT / 2), fault(), run(3 * USEC)];
    let end = WOKEN + FAULT / 2;
    check("lazy", section(), false, &[(end, Granted), (end + 3 * USEC, Yielded)], end + 3 * USEC);
    check("full", section(), false, &[], WOKEN);
}

/// The request is lost with the switch: after it the rest of the critical section has no extension.
#[test]
fn a_holder_that_was_switched_out_gets_no_second_extension() {
    let (extensions, _) = outcome("lazy", workload(vec![run(BEFORE + 20 * MSEC)], true, false));
    assert_eq!(extensions, [(WOKEN, Granted), (WOKEN + LIMIT, Expired)]);
}
