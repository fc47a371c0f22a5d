//! Two CPUs that use one pipe: how much of a call they do at the same time.

use std::sync::Arc;

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{Nanos, MSEC};
use schedlab_spec::CallSections;
use schedlab_trace::Kind;
use schedlab_workload::{Dist, ObjectSpec, Op};

const SYSCALL: Nanos = 200;
const CALL: Nanos = 1000;

/// Writes and reads of so many CPUs in 10 ms, if the mutex is taken after `entry` of `CALL` instructions.
fn pairs(cpus: u32, entry: Option<u32>) -> usize {
    let sections = |call: &str| CallSections {
        call: call.into(),
        kib: 0,
        length: CALL as u32,
        cond_resched: Vec::new(),
        might_sleep: entry.into_iter().chain([900]).collect(),
        spinlock: Vec::new(),
        irq_off: Vec::new(),
        page_table: Vec::new(),
    };
    let mut machine = flat(2, 0);
    machine.physics.locks = true;
    machine.costs.syscall = Dist::Constant(SYSCALL);
    (machine.costs.pipe_read, machine.costs.pipe_write) = (Dist::Constant(CALL), Dist::Constant(CALL));
    if entry.is_some() {
        machine.sections = Arc::new(vec![sections("pipe-read"), sections("pipe-write")]);
    }
    let program = || {
        let count = Op::Count { metric: 0, count: 1 };
        vec![Op::Write { object: 0, bytes: 1 }, Op::Read { object: 0, bytes: 1 }, count, Op::Jump(0)]
    };
    let list = ["a", "b"].into_iter().zip(0..cpus).map(|(name, cpu)| (name, 0, Some(cpu), program())).collect();
    let mut workload = tasks(list);
    workload.objects = vec![ObjectSpec::Pipe { pages: 16, packet: false }];
    let mut spec = spec(machine, kernel("6.12.0", 2, 250), vec![workload]);
    spec.duration = 10 * MSEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    record.events.iter().filter(|event| matches!(event.kind, Kind::Count { .. })).count()
}

/// Work outside of the mutex is done by both CPUs at once: they are limited by their own speed, or by the mutex.
///
/// ```text
/// rate of two / rate of one = min(2, (SYSCALL + CALL) / (CALL - entry))
/// ```
#[test]
fn the_mutex_of_a_pipe_is_held_from_mutex_lock_on() {
    for entry in [None, Some(1), Some(200), Some(300), Some(500), Some(800)] {
        let (one, two) = (pairs(1, entry), pairs(2, entry));
        let under = CALL - Nanos::from(entry.unwrap_or(0));
        let expected = ((SYSCALL + CALL) as f64 / under as f64).min(2.0);
        let ratio = two as f64 / one as f64;
        assert!((ratio / expected - 1.0).abs() < 0.02, "{entry:?}: {ratio}, expected {expected}");
    }
}
