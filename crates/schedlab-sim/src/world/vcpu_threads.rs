//! The host's workloads that are guests: the threads of their vCPUs.

use std::sync::Arc;

use schedlab_model::Nanos;
use schedlab_spec::{Guest, RunSpec};
use schedlab_workload::{Program, TaskSpec, Workload};

use crate::programs;

/// The timer slack of QEMU's threads.
const TIMER_SLACK: Nanos = 50_000;

/// The host with one more workload per guest: the threads of its vCPUs.
pub fn with_vcpu_threads(spec: &RunSpec) -> RunSpec {
    let mut workloads = spec.workloads.to_vec();
    let mut index = 0;
    for guest in spec.guests.iter() {
        workloads.push(threads_of(guest, &mut index));
    }
    RunSpec { workloads: Arc::new(workloads), ..spec.clone() }
}

fn threads_of(guest: &Guest, index: &mut i64) -> Workload {
    let program = Program { name: "vcpu".into(), ops: programs::program(), lines: Vec::new() };
    let mut workload = Workload { name: guest.name.clone(), programs: vec![program], ..Workload::default() };
    for (cpu, affinity) in guest.affinity.iter().enumerate() {
        let mut task = TaskSpec {
            name: format!("{}/{cpu}", guest.name),
            affinity: *affinity,
            cgroup: guest.cgroup.clone(),
            nice: guest.nice,
            timer_slack: TIMER_SLACK,
            count: 1,
            jitter: false,
            ..TaskSpec::default()
        };
        task.registers[usize::from(programs::INDEX)] = *index;
        *index += 1;
        workload.tasks.push(task);
    }
    workload
}
