//! The state that a kernel keeps for the guests that it hosts.

use schedlab_model::KernelId;
use schedlab_spec::{Guest, RunSpec};

/// A kernel as a host.
#[derive(Debug)]
pub struct HostSide {
    /// The number of its workloads that are not guests, which come first.
    own_workloads: usize,
    /// How many guests it hosts.
    guests: usize,
    /// The vCPU on each of its CPUs.
    pub loaded: Vec<Option<usize>>,
}

impl HostSide {
    /// This kernel, which runs `spec`, as the host of those guests that name it.
    pub fn new(kernel: KernelId, spec: &RunSpec, guests: &[Guest]) -> Self {
        HostSide {
            own_workloads: spec.workloads.len(),
            guests: guests.iter().filter(|guest| guest.host == kernel).count(),
            loaded: vec![None; spec.machine.topology.nr_cpus()],
        }
    }

    /// Whether it hosts any.
    pub fn hosts(&self) -> bool {
        self.guests > 0
    }

    /// Whether the tasks of this workload are vCPUs. The kernel's own threads come after the guests.
    pub fn is_guest(&self, workload: u16) -> bool {
        (self.own_workloads..self.own_workloads + self.guests).contains(&usize::from(workload))
    }
}

/// The order in which kernels handle what is due in one instant: those that host others first, outer ones before inner
/// ones, and then all that host none.
pub fn stages(guests: &[Guest]) -> Vec<u16> {
    let mut depths = vec![0u16];
    for guest in guests {
        let depth = depths.get(guest.host.index()).copied().unwrap_or(0) + 1;
        depths.push(depth);
    }
    let hosts = |kernel: usize| kernel == 0 || guests.iter().any(|guest| guest.host.index() == kernel);
    let last = (0..depths.len()).filter(|kernel| hosts(*kernel)).map(|kernel| depths[kernel]).max().unwrap_or(0) + 1;
    (0..depths.len()).map(|kernel| if hosts(kernel) { depths[kernel] } else { last }).collect()
}
