//! Runs that cannot continue say why: deadlock, livelock, a program that the kernel refuses, an interrupt.

use std::sync::atomic::AtomicBool;

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::MSEC;
use schedlab_trace::Discard;
use schedlab_workload::{Amount, ObjectSpec, Op, TaskKind, Workload};

fn failure(workload: Workload) -> String {
    let spec = spec(flat(2, 100), kernel("6.12.0", 2, 250), vec![workload]);
    record(&spec).0.unwrap_err().to_string()
}

#[test]
fn a_deadlock_names_tasks_and_what_they_wait_on() {
    let mut workload = tasks(vec![
        ("a", 0, None, vec![Op::Lock(0), Op::Sleep(Amount::Fixed(MSEC)), Op::Lock(1)]),
        ("b", 0, None, vec![Op::Lock(1), Op::Sleep(Amount::Fixed(MSEC)), Op::Lock(0)]),
    ]);
    workload.objects = vec![ObjectSpec::Mutex { pi: false }, ObjectSpec::Mutex { pi: false }];
    workload.object_names = vec![String::new(), "outer".into()];
    let message = failure(workload);
    assert!(message.starts_with("deadlock at 0.001"), "{message}");
    assert!(message.contains("w/a (task 1) waits on mutex \"outer\", held by task 2"), "{message}");
    assert!(message.contains("w/b (task 2) waits on mutex 0, held by task 1"), "{message}");
}

#[test]
fn a_loop_without_time_is_a_livelock() {
    let mut workload = tasks(vec![("spin", 0, None, vec![Op::Set(0, 1), Op::Jump(0)])]);
    workload.programs[0].lines = vec![4, 5];
    let message = failure(workload);
    assert!(message.contains("livelock") && message.contains("\"spin\"") && message.contains("(line "), "{message}");
}

#[test]
fn programs_the_kernel_refuses_are_named() {
    let cases = [
        (vec![Op::Reap], "no child"),
        (vec![Op::Unlock(0)], "does not hold"),
        (vec![Op::CpuUnlock(0)], "holds no per-CPU lock"),
        (vec![Op::FutexUnlockPi(1)], "does not hold this PI futex"),
        (vec![Op::FutexLockPi(1), Op::FutexLockPi(1)], "holds this PI futex already"),
    ];
    for (ops, want) in cases {
        let mut workload = tasks(vec![("p", 0, None, ops)]);
        workload.objects = vec![ObjectSpec::Mutex { pi: false }, ObjectSpec::PiFutex];
        let message = failure(workload);
        assert!(message.contains(want), "{message}");
    }
}

#[test]
fn an_endless_fork_ends_with_its_place() {
    let hog = ("hog", 0, None, vec![Op::Run(Amount::Fixed(MSEC)), Op::Jump(0)]);
    let fork = Op::Fork { program: 0, kind: TaskKind::Process, into: 0 };
    let mut workload = tasks(vec![hog, ("bomb", 0, None, vec![fork, Op::Jump(0)])]);
    workload.programs[1].lines = vec![7, 8];
    // The same seconds of simulated time as on a kernel, with forks that cost nothing.
    let spec = spec(flat(2, 0), kernel("6.12.0", 2, 250), vec![workload]);
    let error = schedlab_sim::run(&spec, &mut Discard, &AtomicBool::new(false)).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("too many tasks at ") && message.contains("\"bomb\""), "{message}");
    assert!(message.contains("(line 7)") && message.contains("262144 tasks"), "{message}");
    assert!(error.hint().contains("bound the loop that forks"), "{}", error.hint());
}

#[test]
fn more_tasks_at_the_start_than_a_run_can_hold_are_refused() {
    let mut workload = tasks(vec![("a", 0, None, vec![Op::Exit]), ("b", 0, None, vec![Op::Exit])]);
    workload.tasks[0].count = 200_000;
    workload.tasks[1].count = 100_000;
    assert_eq!(failure(workload), "300000 tasks at the start, and a run holds at most 262144");
}

#[test]
fn a_run_stops_when_asked() {
    let hog = vec![Op::Run(Amount::Fixed(1000)), Op::Jump(0)];
    let spec = spec(flat(1, 0), kernel("6.1", 1, 250), vec![tasks(vec![("hog", 0, None, hog)])]);
    let error = schedlab_sim::run(&spec, &mut Discard, &AtomicBool::new(true)).unwrap_err();
    assert!(error.to_string().starts_with("interrupted"), "{error}");
}
