//! Random machines, kernels and programs, half of them with drawn ties, half of them with each mechanism of
//! physics: no checker finds anything, and a run repeats byte
//! for byte.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use proptest::prelude::*;
use schedlab_policy::Version;
use schedlab_sim::Session;
use schedlab_spec::{IdleState, Mechanism, RunSpec};
use schedlab_trace::Event;
use schedlab_workload::Dist;
use support::swarm::scenario;
use support::{record, Record};

/// The events of a run in which no segment is handled ahead of its turn in the queue.
fn stepwise(spec: &RunSpec) -> Vec<Event> {
    let mut log = Record::default();
    let mut session = Session::new(spec, &mut log);
    while session.step(&AtomicBool::new(false)).unwrap().is_none() {}
    drop(session);
    log.events
}

/// The run on a machine with some of the mechanisms, as its seed says.
fn with_physics(spec: RunSpec) -> RunSpec {
    let mut machine = schedlab_spec::Machine::clone(&spec.machine);
    for (bit, mechanism) in Mechanism::ALL.into_iter().enumerate() {
        machine.physics.set(mechanism, spec.seed >> (8 + bit) & 1 != 0);
    }
    if machine.physics.cpuidle {
        machine.idle_states = idle_states();
    }
    let transfer = spec.seed >> 16 & 1023;
    machine.costs.line_transfer = [0, 1, 2, 3, 4].map(|distance| Dist::Constant(distance * transfer));
    RunSpec { machine: Arc::new(machine), ..spec }
}

/// A state that polls and two deeper ones, for a governor to choose from.
fn idle_states() -> Vec<IdleState> {
    let state = |(name, exit, target_residency): (&str, u64, u64)| IdleState {
        name: name.into(),
        exit: Dist::Constant(exit),
        target_residency,
        polling: target_residency == 0,
    };
    [("POLL", 300, 0), ("C1", 2_000, 10_000), ("C6", 100_000, 600_000)].map(state).to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn every_check_holds_and_every_run_repeats(spec in scenario(Version::all().iter().collect())) {
        let spec = with_physics(RunSpec { ties: (spec.seed % 2 == 0).then_some(spec.seed), ..spec });
        let (outcome, first) = record(&spec);
        if let Err(error) = &outcome {
            prop_assert!(false, "{error}");
        }
        let (again, second) = record(&spec);
        prop_assert_eq!(outcome, again);
        prop_assert!(first.events == second.events, "two runs of one specification differ");
        prop_assert!(first.events == stepwise(&spec), "instant by instant the run differs");
        prop_assert!(first.events.windows(2).all(|pair| pair[0].time <= pair[1].time));
    }
}
