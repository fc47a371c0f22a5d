//! Ties that the kernel leaves to chance: drawn on request, in fixed order otherwise.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{CpuId, Nanos, MSEC};
use schedlab_sim::Ended;
use schedlab_spec::RunSpec;
use schedlab_trace::{Event, Kind};
use schedlab_workload::{Amount, Op};

const CPUS: u32 = 4;

/// A pinned task per CPU; all of them sleep and wake up at the same times.
fn lockstep(ties: Option<u64>) -> RunSpec {
    let turn = vec![Op::Sleep(Amount::Fixed(MSEC)), Op::Run(Amount::Fixed(100_000)), Op::Jump(0)];
    let pinned = (0..CPUS).map(|cpu| ("turn", 0, Some(cpu), turn.clone())).collect();
    let mut workload = tasks(pinned);
    workload.tasks.iter_mut().for_each(|task| task.timer_slack = 0);
    RunSpec { ties, duration: 50 * MSEC, ..spec(flat(CPUS, 0), kernel("6.12.107", CPUS as usize, 250), vec![workload]) }
}

fn events(ties: Option<u64>) -> Vec<Event> {
    let (outcome, log) = record(&lockstep(ties));
    assert_eq!(outcome.unwrap().ended, Ended::Duration);
    log.events
}

/// In which order the CPUs wake their tasks up, by instant.
fn orders(events: &[Event]) -> BTreeMap<Nanos, Vec<CpuId>> {
    let mut orders: BTreeMap<Nanos, Vec<CpuId>> = BTreeMap::new();
    for event in events.iter().filter(|event| matches!(event.kind, Kind::Waking { .. })) {
        orders.entry(event.time).or_default().push(event.cpu);
    }
    orders.retain(|_, cpus| cpus.len() == CPUS as usize);
    orders
}

#[test]
fn simultaneous_events_of_different_cpus_come_in_any_order() {
    let fixed = orders(&events(None));
    assert!(fixed.len() > 30, "{} instants at which every CPU wakes a task up", fixed.len());
    assert_eq!(fixed.values().collect::<BTreeSet<_>>().len(), 1, "one order as long as none is drawn");
    let drawn: BTreeSet<Vec<CpuId>> = (0..4).flat_map(|draw| orders(&events(Some(draw))).into_values()).collect();
    assert!(drawn.len() > 20, "{} of 24 orders", drawn.len());
}

#[test]
fn a_draw_changes_the_order_and_nothing_else() {
    let of_cpu = |events: &[Event], cpu| -> Vec<(Nanos, Kind)> {
        events.iter().filter(|event| event.cpu == CpuId(cpu)).map(|event| (event.time, event.kind)).collect()
    };
    let (fixed, drawn) = (events(None), events(Some(1)));
    assert_ne!(fixed, drawn);
    assert_eq!(drawn, events(Some(1)), "a draw repeats");
    assert_ne!(drawn, events(Some(2)), "another draw is another order");
    for cpu in 0..CPUS {
        assert_eq!(of_cpu(&fixed, cpu), of_cpu(&drawn, cpu), "tasks that never meet are not affected");
    }
}

#[test]
fn the_order_depends_on_the_seed_of_the_run_too() {
    let with_seed = |seed| record(&RunSpec { seed, ..lockstep(Some(1)) }).1.events;
    assert_ne!(orders(&with_seed(1)), orders(&with_seed(2)));
}
