//! Cache-aware balancing in a run: the threads of a process come together under one cache, other tasks do not.

use std::collections::BTreeMap;

use crate::support::{kernel, machine, record, spec, tasks};
use schedlab_model::{Topology, MSEC};
use schedlab_trace::Kind;
use schedlab_workload::{Amount, Op};

/// How many of three hogs are under each of two caches of eight CPUs in the end.
fn by_cache(row: &str, processes: [u32; 3]) -> Vec<usize> {
    let mut workload = tasks(vec![("hog", 0, None, vec![Op::Run(Amount::Fixed(400 * MSEC))]); 3]);
    for (task, process) in workload.tasks.iter_mut().zip(processes) {
        task.process = process;
    }
    let topology = Topology::regular(1, 2, 8, 1, true).unwrap();
    let mut spec = spec(machine(topology, 0), kernel(row, 16, 250), vec![workload]);
    spec.duration = 300 * MSEC;
    let (outcome, record) = record(&spec);
    outcome.unwrap();
    let mut last = BTreeMap::new();
    for event in &record.events {
        if let Kind::Switch { next, .. } = event.kind {
            last.insert(next, event.cpu);
        }
    }
    let hogs: Vec<usize> =
        last.iter().filter(|(pid, _)| record.name(**pid) == "hog").map(|(_, cpu)| cpu.index() / 8).collect();
    (0..2).map(|llc| hogs.iter().filter(|at| **at == llc).count()).collect()
}

#[test]
fn threads_of_a_process_come_together() {
    for (row, processes, together) in
        [("7.2", [0, 0, 0], true), ("7.3", [0, 0, 0], true), ("7.2", [0, 1, 2], false), ("7.1", [0, 0, 0], false)]
    {
        let found = by_cache(row, processes);
        assert_eq!((found.iter().sum::<usize>(), found.contains(&3)), (3, together), "{row} {processes:?}: {found:?}");
    }
}
