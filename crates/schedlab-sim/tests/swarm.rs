//! Random machines, kernels and programs, half of them with drawn ties, half of them with each mechanism of physics,
//! some with cpusets that change and with CPUs of different capacity: no checker finds anything, and a run repeats byte
//! for byte.

use std::sync::atomic::AtomicBool;

use crate::support::swarm::{scenario, with_capacities, with_cpusets, with_physics};
use crate::support::{record, Record};
use proptest::prelude::*;
use schedlab_policy::Version;
use schedlab_sim::Session;
use schedlab_spec::RunSpec;
use schedlab_trace::Event;

/// The events of a run in which no segment is handled ahead of its turn in the queue.
fn stepwise(spec: &RunSpec) -> Vec<Event> {
    let mut log = Record::default();
    let mut session = Session::new(spec, &mut log);
    while session.step(&AtomicBool::new(false)).unwrap().is_none() {}
    drop(session);
    log.events
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn every_check_holds_and_every_run_repeats(spec in scenario(Version::all().iter().collect())) {
        let spec = with_physics(RunSpec { ties: (spec.seed % 2 == 0).then_some(spec.seed), ..spec });
        let spec = with_capacities(with_cpusets(spec));
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
