//! Newidle balancing in whole runs.

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{Nanos, MSEC, USEC};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Op};

/// Nice value, run and sleep (us) of periodic tasks on four CPUs, beside two hogs. Without costs, 6.12.107's own
/// kernel/sched makes the same switches.
const SLEEPERS: [(i8, Nanos, Nanos); 12] = [
    (0, 1424, 2540),
    (-1, 968, 2784),
    (4, 1492, 2690),
    (-2, 1451, 364),
    (4, 742, 2567),
    (0, 603, 2237),
    (5, 1924, 2562),
    (4, 1024, 2928),
    (-1, 685, 2911),
    (-1, 1988, 2453),
    (3, 1729, 373),
    (-2, 537, 2732),
];

/// At 6.341 ms CPU 3 pulls a task whose dequeue is delayed. The pick dequeues it, the CPU balances again and pulls one
/// that can run; a single pass would leave it idle.
#[test]
fn a_cpu_that_pulls_a_delayed_task_balances_again() {
    let fixed = |us: Nanos| Amount::Fixed(us * USEC);
    let program = |run: Nanos, sleep: Nanos| vec![Op::Run(fixed(run)), Op::Sleep(fixed(sleep)), Op::Jump(0)];
    let sleepers = SLEEPERS.iter().map(|(nice, run, sleep)| ("sleeper", *nice, None, program(*run, *sleep)));
    let hogs = (0..2).map(|_| ("hog", 0, None, vec![Op::Run(fixed(1_000_000)), Op::Jump(0)]));
    let mut workload = tasks(sleepers.chain(hogs).collect());
    workload.tasks.iter_mut().for_each(|task| task.timer_slack = 1);
    let mut config = kernel("6.12.107", 4, 250);
    config.set_feature("NI_RANDOM", false).unwrap();
    let mut run = spec(flat(4, 0), config, vec![workload]);
    run.duration = 10 * MSEC;
    let (outcome, record) = record(&run);
    outcome.unwrap();
    let switch = |kind: &Kind| match kind {
        Kind::Switch { prev, next, .. } => Some((*prev, *next)),
        _ => None,
    };
    let on_3 = record.events.iter().filter(|event| event.cpu.0 == 3);
    let switches: Vec<_> = on_3.filter_map(|event| Some((event.time, switch(&event.kind)?))).collect();
    let at = switches.iter().find(|(time, _)| time / USEC == 6341);
    assert!(at.is_some_and(|(_, (_, next))| *next != 0), "{switches:?}");
}
