//! Which idle states the governor of a machine reaches, what leaving them costs, and what the tick does meanwhile.

use crate::support::{kernel, machine, record, spec, tasks, Record};
use schedlab_model::{Nanos, Topology, MSEC, SEC, USEC};
use schedlab_spec::{IdleState, Machine, Mechanism};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Dist, Op};

/// A state that polls, one for short stays, one for long ones.
const EXITS: [Nanos; 3] = [0, 2 * USEC, 150 * USEC];

fn server(threads: u32, core_idle: bool) -> Machine {
    let mut machine = machine(Topology::regular(1, 1, 2, threads, true).unwrap(), 0);
    machine.physics.set(Mechanism::Cpuidle, true);
    machine.physics.set(Mechanism::CoreIdle, core_idle);
    let states = [("POLL", EXITS[0], 0), ("C1", EXITS[1], 4 * USEC), ("C6", EXITS[2], 600 * USEC)];
    let state = |(name, exit, target_residency): (&str, Nanos, Nanos)| IdleState {
        name: name.into(),
        exit: Dist::Constant(exit),
        latency: None,
        target_residency,
        polling: target_residency == 0,
    };
    machine.idle_states = states.map(state).to_vec();
    machine
}

fn sleeper(period: Nanos) -> Vec<Op> {
    vec![Op::Sleep(Amount::Fixed(period)), Op::Run(Amount::Fixed(USEC)), Op::Jump(0)]
}

/// A second of tasks whose timers have no slack.
fn run(machine: Machine, list: Vec<(&str, i8, Option<u32>, Vec<Op>)>) -> Record {
    let cpus = machine.topology.nr_cpus();
    let mut workload = tasks(list);
    workload.tasks.iter_mut().for_each(|task| task.timer_slack = 0);
    let (outcome, record) = record(&spec(machine, kernel("6.12.107", cpus, 250), vec![workload]));
    outcome.unwrap();
    record
}

/// The gaps between the beginnings of a task's runs, sorted.
fn gaps(record: &Record, name: &str) -> Vec<Nanos> {
    let pid = record.names.iter().find(|(_, known)| known == name).unwrap().0;
    let run = |event: &&schedlab_trace::Event| matches!(event.kind, Kind::Switch { next, .. } if next == pid);
    let at: Vec<Nanos> = record.events.iter().filter(run).map(|event| event.time).collect();
    let mut gaps: Vec<Nanos> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    gaps
}

#[test]
fn the_state_follows_the_length_of_the_sleep() {
    // (sleep, exit latency of the state that its CPU reaches)
    for (sleep, exit) in [(USEC, EXITS[0]), (100 * USEC, EXITS[1]), (3 * MSEC, EXITS[2]), (30 * MSEC, EXITS[2])] {
        let record = run(server(1, false), vec![("s", 0, Some(0), sleeper(sleep))]);
        let gaps = gaps(&record, "s");
        // Beyond the sleep and the run: the exit of the state; the first periods are those of a long idle CPU.
        let typical = gaps[gaps.len() / 2] - sleep - USEC;
        assert_eq!(typical, exit, "sleeps of {sleep} ns");
    }
}

#[test]
fn a_thread_beside_a_busy_one_leaves_a_shallow_state() {
    let hog = || vec![Op::Run(Amount::Fixed(SEC))];
    for (core_idle, exit) in [(false, EXITS[2]), (true, EXITS[1])] {
        let list = vec![("s", 0, Some(0), sleeper(30 * MSEC)), ("hog", 0, Some(1), hog())];
        let record = run(server(2, core_idle), list);
        let gaps = gaps(&record, "s");
        let typical = gaps[gaps.len() / 2] - 30 * MSEC;
        // The run of 1 us takes longer beside the hog.
        assert!((exit..exit + 2 * USEC).contains(&typical), "{core_idle}: {typical}");
    }
    // Beside a thread of another core it does not matter.
    let list = vec![("s", 0, Some(0), sleeper(30 * MSEC)), ("hog", 0, Some(2), hog())];
    let record = run(server(2, true), list);
    let gaps = gaps(&record, "s");
    assert_eq!(gaps[gaps.len() / 2] - 30 * MSEC - USEC, EXITS[2]);
}

#[test]
fn a_tick_that_goes_on_in_idle_ends_a_wrong_prediction() {
    // Short sleeps, then a long one: ticks end it in the shallow state until the governor no longer expects a short
    // stay.
    let mut ops = vec![Op::Set(7, 300)];
    ops.extend([Op::Sleep(Amount::Fixed(100 * USEC)), Op::Run(Amount::Fixed(USEC)), Op::DecJump { reg: 7, to: 1 }]);
    ops.extend([Op::Sleep(Amount::Fixed(100 * MSEC)), Op::Run(Amount::Fixed(USEC)), Op::Exit]);
    let record = run(server(1, false), vec![("s", 0, Some(0), ops)]);
    let gaps = gaps(&record, "s");
    assert_eq!(gaps[gaps.len() / 2], 100 * USEC + USEC + EXITS[1]);
    assert_eq!(gaps[gaps.len() - 1], 100 * MSEC + USEC + EXITS[2], "the CPU is in its deepest state by then");
}

#[test]
fn a_governor_sees_the_latency_that_the_table_states_and_teo_learns_the_sleep_too() {
    for row in ["6.1", "6.12.107"] {
        // (sleep, exit latency of the state that its CPU reaches)
        for (sleep, exit) in [(100 * USEC, EXITS[1]), (3 * MSEC, EXITS[2]), (30 * MSEC, EXITS[2])] {
            let mut machine = server(1, false);
            machine.physics.set(Mechanism::Teo, true);
            machine.idle_states[2].latency = Some(200 * USEC);
            let mut workload = tasks(vec![("s", 0, Some(0), sleeper(sleep))]);
            workload.tasks[0].timer_slack = 0;
            let (outcome, record) = record(&spec(machine, kernel(row, 2, 250), vec![workload]));
            outcome.unwrap();
            let gaps = gaps(&record, "s");
            assert_eq!(gaps[gaps.len() / 2] - sleep - USEC, exit, "{row}: sleeps of {sleep} ns");
        }
    }
}
