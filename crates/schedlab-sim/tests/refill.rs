//! What a preemption within a request of the `hhvm` workload costs.

use crate::support::{kernel, machine, record, spec};
use schedlab_model::{Topology, MSEC, SEC};
use schedlab_trace::Kind;
use schedlab_workload::catalogue::{self, OptionValue, Where};

/// CPU time that the requests took, the time that their programs asked for, and how often they were preempted.
fn of(threads: i64, refill: &str) -> (u64, u64, u64) {
    let text = |value: &str| OptionValue::Text(value.to_owned());
    let options = [
        ("threads".to_owned(), OptionValue::Int(threads), Where::default()),
        ("request".to_owned(), text("12ms"), Where::default()),
        ("refill".to_owned(), text(refill), Where::default()),
        ("fault-permille".to_owned(), OptionValue::Int(0), Where::default()),
    ];
    let workload = catalogue::build("hhvm", &options, "web", false, 1).unwrap();
    let place = |name: &str| workload.metrics.iter().position(|metric| metric.name == name).unwrap() as u16;
    let (rate, cpu_rate) = (place("requests_per_second"), place("requests_per_cpu_second"));
    let machine = machine(Topology::regular(1, 1, 1, 1, true).unwrap(), 0);
    let mut spec = spec(machine, kernel("6.12.107", 1, 250), vec![workload.clone()]);
    spec.duration = 10 * SEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let (mut spent, mut requests) = (0, 0);
    for event in &record.events {
        match event.kind {
            Kind::Sample { metric, value, .. } if metric == cpu_rate => spent += value,
            Kind::Count { metric, count, .. } if metric == rate => requests += count,
            _ => {}
        }
    }
    let preempted = |event: &&schedlab_trace::Event| matches!(event.kind, Kind::Switch { prev, prev_state: schedlab_trace::TaskState::Running, .. } if prev != 0);
    (spent, requests * 12 * MSEC, record.events.iter().filter(preempted).count() as u64)
}

#[test]
fn each_preemption_adds_its_refill_to_the_cpu_time() {
    let (spent, asked, preemptions) = of(2, "100us");
    let extra = (spent - asked) / 100_000;
    // Requests under way at the end, and preemptions of a refill that ends a request, are not counted.
    assert!(preemptions > 1_000 && extra.abs_diff(preemptions) * 50 < preemptions, "{extra} of {preemptions}");
}

#[test]
fn no_preemption_and_no_refill_cost_nothing() {
    for (threads, refill) in [(1, "100us"), (2, "0s")] {
        let (spent, asked, _) = of(threads, refill);
        assert!(spent.abs_diff(asked) * 1000 < asked, "{threads} threads, {refill}: {spent} of {asked}");
    }
}

#[test]
fn a_refill_takes_no_longer_than_the_thread_was_away() {
    let (spent, asked, preemptions) = of(2, "10ms");
    // Two threads alternate, so each is away as long as the other runs: at most one refill for each time away.
    assert!(preemptions > 100 && spent > asked && spent <= 2 * asked, "{spent} of {asked}");
}
