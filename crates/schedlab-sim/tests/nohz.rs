//! Balancing on behalf of CPUs whose tick is stopped: what a CPU is sent comes when the walk has reached that CPU.

use crate::support::{kernel, machine, record, spec, tasks};
use schedlab_model::{CpuId, CpuMask, Nanos, Topology, MSEC, SEC, USEC};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Dist, Op};

const CPUS: usize = 64;

#[test]
fn a_pulled_task_does_not_wait_for_the_rest_of_the_walk() {
    for version in ["6.3", "6.12.107"] {
        // Two tasks share CPU 0 until one of them may leave it.
        let stay = vec![Op::Run(Amount::Fixed(SEC)), Op::Exit];
        let leave = vec![
            Op::SetAffinity(0),
            Op::Run(Amount::Fixed(20 * MSEC)),
            Op::SetAffinity(1),
            Op::Run(Amount::Fixed(200 * MSEC)),
            Op::Exit,
        ];
        let mut workload = tasks(vec![("stay", 0, Some(0), stay), ("leave", 0, None, leave)]);
        workload.masks = vec![CpuMask::from_iter([CpuId(0)]), CpuMask::first(CPUS)];
        let mut machine = machine(Topology::regular(1, 1, CPUS as u32, 1, true).unwrap(), 0);
        // A walk over 62 idle CPUs, each of which looks at 64, takes 4 ms.
        machine.costs.balance_cpu = Dist::Constant(USEC);
        let (outcome, record) = record(&spec(machine, kernel(version, CPUS, 250), vec![workload]));
        outcome.unwrap();
        let pid = record.names.iter().find(|(_, name)| name == "leave").unwrap().0;
        let moved: Vec<(CpuId, Nanos)> = record
            .events
            .iter()
            .filter_map(|event| match event.kind {
                Kind::Migrate { pid: task, orig_cpu: CpuId(0), dest_cpu, .. } if task == pid => {
                    Some((dest_cpu, event.time))
                }
                _ => None,
            })
            .collect();
        let (dest, at) = *moved.last().unwrap();
        let runs = |event: &&schedlab_trace::Event| {
            event.cpu == dest && event.time >= at && matches!(event.kind, Kind::Switch { next, .. } if next == pid)
        };
        let waited = record.events.iter().find(runs).unwrap().time - at;
        assert!(waited < 500 * USEC, "{version}: {waited} ns from the pull to CPU {} until it runs there", dest.0);
    }
}
