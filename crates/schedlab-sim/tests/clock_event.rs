//! When a guest leaves for a timer: at each interrupt of its clock event device, and each time that is programmed.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use crate::support::{flat, guest, kernel, spec, tasks, Record};
use schedlab_model::{Nanos, MSEC, SEC, USEC};
use schedlab_sim::run_virtual;
use schedlab_spec::{Platform, RunSpec};
use schedlab_workload::{Amount, Op, Workload};

/// Exits for timers of a guest with so many CPUs in a second at 250 Hz, without costs and timer slack.
fn timer_exits(version: &str, cpus: u32, mut workload: Workload) -> u64 {
    workload.tasks.iter_mut().for_each(|task| task.timer_slack = 0);
    let inner = spec(flat(cpus, 0), kernel(version, cpus as usize, 250), vec![workload]);
    let guest = guest("vm", Platform::X86Kvm, &inner);
    let host = spec(flat(cpus, 0), kernel("6.12.107", cpus as usize, 250), vec![]);
    let host = RunSpec { guests: Arc::new(vec![guest]), ..host };
    let (_, reports) = run_virtual(&host, &mut Record::default(), &AtomicBool::new(false)).unwrap();
    reports[0].exits.iter().find(|(name, _)| *name == "timer").unwrap().1
}

/// A task that computes without end.
fn hog() -> Vec<Op> {
    vec![Op::Run(Amount::Fixed(SEC)), Op::Jump(0)]
}

/// A task that computes for 50 us and sleeps for so long, without end.
fn sleeper(sleep: Nanos) -> Vec<Op> {
    vec![Op::Run(Amount::Fixed(50 * USEC)), Op::Sleep(Amount::Fixed(sleep)), Op::Jump(0)]
}

/// A busy CPU has 249 ticks in this second. Each causes two exits: the interrupt, and programming the device at its
/// end. One more programs the first tick.
#[test]
fn the_device_is_programmed_for_the_first_timer_only() {
    const TICKS: u64 = 2 * 249 + 1;
    for (name, programs, exits) in [
        ("a busy CPU", vec![hog()], TICKS),
        // 98 interrupts. Each sleep lasts beyond the next tick, so none is programmed when it begins.
        ("sleeps beyond the tick", vec![hog(), sleeper(10 * MSEC)], TICKS + 2 * 98),
        ("more of them", vec![hog(), sleeper(10 * MSEC), sleeper(20 * MSEC), sleeper(30 * MSEC)], TICKS + 2 * 178),
        // 952 interrupts; 693 of the sleeps end before the next tick and are programmed when they begin.
        ("sleeps until before the tick", vec![hog(), sleeper(MSEC)], TICKS + 2 * 952 + 693),
        // 100 times: the tick stops, the interrupt, its end, and the tick starts again.
        ("a CPU that becomes idle", vec![sleeper(10 * MSEC)], 4 * 100),
    ] {
        let list = programs.into_iter().map(|ops| ("t", 0, Some(0), ops)).collect();
        assert_eq!(timer_exits("6.12.107", 1, tasks(list)), exits, "{name}");
    }
}

/// HRTICK, which 7.2 has on, is started by wakeups in the handler of the interrupt, too, whose end programs the device
/// for it (`in_hrtirq`). If the start did so as well, there would be 987 exits.
#[test]
fn a_timer_that_is_started_in_the_interrupt_is_programmed_at_its_end() {
    let programs = [hog(), sleeper(10 * MSEC)];
    let list = programs.into_iter().map(|ops| ("t", 0, Some(0), ops)).collect();
    assert_eq!(timer_exits("7.2.13", 1, tasks(list)), 910);
}
