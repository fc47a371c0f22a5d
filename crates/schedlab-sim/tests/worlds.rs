//! Several kernels in one world, and CPUs whose speed changes while they run.

use std::sync::atomic::AtomicBool;

use crate::support::swarm::scenario;
use crate::support::{flat, kernel, record, spec, tasks, Record};
use proptest::prelude::*;
use schedlab_model::{CpuId, KernelId, Nanos, MSEC, SEC, USEC};
use schedlab_policy::Version;
use schedlab_sim::{kernel_seed, Ended, SimError, Systems, World};
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Kind};
use schedlab_workload::{Amount, Op};

const FULL_SPEED: u32 = 1024;

fn end<K: Systems>(world: &mut World<Record, K>) -> Result<Ended, SimError> {
    let cancel = AtomicBool::new(false);
    loop {
        if let Some(ended) = world.step(&cancel)? {
            return Ok(ended);
        }
    }
}

/// The events of each kernel of a world, as if it were the first.
fn together(specs: &[RunSpec]) -> Result<Vec<Vec<Event>>, SimError> {
    let mut log = Record::default();
    let mut world = World::of(specs, &mut log);
    let ended = end(&mut world)?;
    world.finish(ended)?;
    let ids = (0..specs.len() as u16).map(KernelId);
    let of = |id| log.events.iter().filter(move |event| event.kernel == id);
    Ok(ids.map(|id| of(id).map(|event| Event { kernel: KernelId::FIRST, ..*event }).collect()).collect())
}

/// The events of a kernel alone, with the seed it has as kernel `number` of a world.
fn alone(spec: &RunSpec, number: u16) -> Vec<Event> {
    let spec = RunSpec { seed: kernel_seed(spec.seed, KernelId(number)), ..spec.clone() };
    let (outcome, log) = record(&spec);
    outcome.unwrap();
    log.events
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 500, ..ProptestConfig::default() })]

    #[test]
    fn kernels_on_machines_of_their_own_do_not_disturb_each_other(
        specs in prop::collection::vec(scenario(Version::all().iter().collect()), 1..4),
    ) {
        let specs: Vec<RunSpec> =
            specs.into_iter().map(|spec| RunSpec { ties: (spec.seed % 2 == 0).then_some(spec.seed), ..spec }).collect();
        let events = together(&specs).map_err(|error| TestCaseError::fail(error.to_string()))?;
        for (number, spec) in specs.iter().enumerate() {
            prop_assert!(events[number] == alone(spec, number as u16), "kernel {number} differs from its run alone");
        }
    }
}

/// A world of different versions whose events interleave, so that the property above is about something.
#[test]
fn a_world_has_events_of_all_its_kernels() {
    let hog = || {
        tasks(vec![("hog", 0, None, vec![Op::Run(Amount::Fixed(MSEC)), Op::Sleep(Amount::Fixed(MSEC)), Op::Jump(0)])])
    };
    let specs: Vec<RunSpec> =
        ["6.1", "6.12.0"].map(|version| spec(flat(2, 500), kernel(version, 2, 250), vec![hog()])).into();
    let mut log = Record::default();
    let mut world = World::of(&specs, &mut log);
    assert_eq!(end(&mut world), Ok(Ended::Duration));
    drop(world);
    let changes = log.events.windows(2).filter(|pair| pair[0].kernel != pair[1].kernel).count();
    assert!(changes > 400, "{changes} changes of kernel in {} events", log.events.len());
}

/// When the only task exits, on one CPU that is stopped from `from` to `to`.
fn exit_of(version: &str, cost: Nanos, ops: &[Op], from: Nanos, to: Nanos) -> Nanos {
    let mut workload = tasks(vec![("work", 0, None, ops.to_vec())]);
    workload.tasks[0].timer_slack = 0;
    let spec = spec(flat(1, cost), kernel(version, 1, 250), vec![workload]);
    let mut log = Record::default();
    let mut world = World::new(&spec, &mut log);
    let cancel = AtomicBool::new(false);
    for (time, speed) in [(from, 0), (to, FULL_SPEED)] {
        assert_eq!(world.run_until(time, &cancel), Ok(None));
        world.set_speed(KernelId::FIRST, CpuId(0), speed);
    }
    let ended = end(&mut world).unwrap();
    let outcome = world.finish(ended).unwrap().remove(0);
    let time = outcome.cpus[0];
    assert_eq!(time.busy + time.cost + time.idle + time.stolen, outcome.now);
    log.events.iter().find(|event| matches!(event.kind, Kind::Exit { .. })).unwrap().time
}

#[test]
fn work_of_a_stopped_cpu_ends_that_much_later() {
    let run = |ms| Op::Run(Amount::Fixed(ms * MSEC));
    let cases: [(&[Op], Nanos, Nanos, Nanos); 7] = [
        (&[run(50)], 10, 30, 20),
        (&[Op::System(Amount::Fixed(10 * MSEC))], 2, 8, 6),
        // The wall clock does not stop: time lost counts as done.
        (&[Op::RunWall(Amount::Fixed(50 * MSEC))], 10, 30, 0),
        (&[Op::RunWall(Amount::Fixed(50 * MSEC))], 40, 70, 20),
        // A timer that expires meanwhile is handled when the CPU is back.
        (&[Op::Sleep(Amount::Fixed(5 * MSEC)), run(1)], 1, 4, 0),
        (&[Op::Sleep(Amount::Fixed(5 * MSEC)), run(1)], 3, 20, 15),
        (&[Op::Sleep(Amount::Fixed(5 * MSEC)), run(9)], 8, 20, 12),
    ];
    for (version, (ops, from, to, later)) in
        Version::all().iter().flat_map(|version| cases.iter().map(move |case| (version.name, *case)))
    {
        for cost in [0, 500] {
            let undisturbed = exit_of(version, cost, ops, SEC / 2, SEC / 2);
            let stopped = exit_of(version, cost, ops, from * MSEC, to * MSEC);
            // Ticks during the stop are missed or handled at once; all else is the same work.
            let tolerance = if cost == 0 { 0 } else { 20 * USEC };
            let error = stopped.abs_diff(undisturbed + later * MSEC);
            assert!(error <= tolerance, "{version}, {ops:?}, {from} to {to} ms: off by {error} ns");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 1000, ..ProptestConfig::default() })]

    #[test]
    fn every_check_holds_whatever_the_speeds(
        spec in scenario(Version::all().iter().collect()),
        changes in prop::collection::vec((0..10 * MSEC, any::<u32>(), prop::sample::select(vec![0, 300, FULL_SPEED])), 1..60),
    ) {
        let mut log = Record::default();
        let mut world = World::new(&spec, &mut log);
        let cancel = AtomicBool::new(false);
        let failed = |error: SimError| TestCaseError::fail(error.to_string());
        let mut ended = None;
        for (after, cpu, speed) in changes {
            ended = world.run_until(world.now() + after, &cancel).map_err(failed)?;
            if ended.is_some() {
                break;
            }
            let cpu = CpuId(cpu % spec.machine.topology.nr_cpus() as u32);
            world.set_speed(KernelId::FIRST, cpu, speed);
        }
        let ended = ended.map_or_else(|| end(&mut world), Ok).map_err(failed)?;
        world.finish(ended).map_err(failed)?;
    }
}
