//! Runs that cannot continue say why: deadlock, livelock, a program that the kernel refuses, an interrupt.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::AtomicBool;

use schedlab_model::MSEC;
use schedlab_trace::Discard;
use schedlab_workload::{Amount, ObjectSpec, Op, Workload};
use support::{flat, kernel, record, spec, tasks};

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
    ];
    for (ops, want) in cases {
        let mut workload = tasks(vec![("p", 0, None, ops)]);
        workload.objects = vec![ObjectSpec::Mutex { pi: false }];
        let message = failure(workload);
        assert!(message.contains(want), "{message}");
    }
}

#[test]
fn a_run_stops_when_asked() {
    let hog = vec![Op::Run(Amount::Fixed(1000)), Op::Jump(0)];
    let spec = spec(flat(1, 0), kernel("6.1", 1, 250), vec![tasks(vec![("hog", 0, None, hog)])]);
    let error = schedlab_sim::run(&spec, &mut Discard, &AtomicBool::new(true)).unwrap_err();
    assert!(error.to_string().starts_with("interrupted"), "{error}");
}
