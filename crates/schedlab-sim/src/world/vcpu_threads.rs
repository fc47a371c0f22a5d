//! The workloads of a host that are guests: the threads of their vCPUs.

use std::sync::Arc;

use schedlab_model::{KernelId, Nanos};
use schedlab_spec::{Guest, RunSpec};
use schedlab_workload::{Program, TaskSpec, Workload};

use crate::programs;

/// The timer slack of QEMU's threads.
const TIMER_SLACK: Nanos = 50_000;

/// What this kernel runs, with one more workload for each guest that it hosts: the threads of its vCPUs. `first` is the
/// number of each guest's vCPU 0 among all vCPUs.
pub fn with_vcpu_threads(spec: &RunSpec, host: KernelId, guests: &[Guest], first: &[usize]) -> RunSpec {
    let hosted = guests.iter().zip(first).filter(|(guest, _)| guest.host == host);
    let threads = hosted.map(|(guest, first)| threads_of(guest, *first));
    RunSpec { workloads: Arc::new(spec.workloads.iter().cloned().chain(threads).collect()), ..spec.clone() }
}

fn threads_of(guest: &Guest, first: usize) -> Workload {
    let program = Program { name: "vcpu".into(), ops: programs::program(), ..Program::default() };
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
        task.registers[usize::from(programs::INDEX)] = (first + cpu) as i64;
        workload.tasks.push(task);
    }
    workload
}
