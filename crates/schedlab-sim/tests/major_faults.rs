//! Major page faults: a task waits for a disk that serves several requests at once, the others in the order in which
//! they came.

use crate::support::{flat, kernel, record, spec, tasks};
use schedlab_model::{Nanos, USEC};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Dist, ObjectSpec, Op};

const SERVICE: Nanos = 100 * USEC;
const FAULT: Nanos = 3 * USEC;

/// When each of four tasks, on CPUs of their own, has its page: the fault, the wait, and the fault begun anew.
fn done(depth: u32) -> Vec<Nanos> {
    let program = |start: Nanos| {
        let fault = Op::MajorFault { object: 0, service: Amount::Fixed(SERVICE) };
        vec![Op::Run(Amount::Fixed(start)), fault]
    };
    let names = ["a", "b", "c", "d"];
    let list = names.iter().zip(0..).map(|(name, cpu)| (*name, 0, Some(cpu), program(1 + u64::from(cpu))));
    let mut workload = tasks(list.collect());
    workload.objects = vec![ObjectSpec::Disk { depth }];
    let mut machine = flat(4, 0);
    machine.costs.fault = Dist::Constant(FAULT);
    let (outcome, record) = record(&spec(machine, kernel("6.12.0", 4, 250), vec![workload]));
    outcome.unwrap();
    let faults = record.events.iter().filter(|e| matches!(e.kind, Kind::Fault { kib: 4, major: true, .. })).count();
    assert_eq!(faults, 4);
    let exit = |e: &schedlab_trace::Event| matches!(e.kind, Kind::Exit { .. }).then_some(e.time);
    record.events.iter().filter_map(exit).collect()
}

#[test]
fn a_request_waits_until_the_disk_has_room() {
    let sent = |task: Nanos| task + FAULT;
    let end = |served: Nanos| served + FAULT;
    let cases: [(u32, [Nanos; 4]); 3] = [
        (4, [1, 2, 3, 4].map(|task| end(sent(task) + SERVICE))),
        (2, [sent(1) + SERVICE, sent(2) + SERVICE, sent(1) + 2 * SERVICE, sent(2) + 2 * SERVICE].map(end)),
        (1, [1, 2, 3, 4].map(|served| end(sent(1) + served * SERVICE))),
    ];
    for (depth, expected) in cases {
        assert_eq!(done(depth), expected, "depth {depth}");
    }
}
