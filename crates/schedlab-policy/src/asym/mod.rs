//! CPUs of different capacity (`sched_asym_cpucap_active`): whether a task fits a CPU, where it wakes, which task is
//! too big for the CPU that it runs on, and the energy that a placement costs.
//!
//! kernel/sched/fair.c of 6.1.192, 6.12.117 and 7.2.13, without uclamp (CONFIG_UCLAMP_TASK off), thermal pressure and
//! asymmetric SMT. Every CPU runs at its highest frequency: the energy model decides where tasks are placed, as with
//! the schedutil governor, but the lower frequencies that it assumes do not slow execution. On machines with equal CPUs
//! each check costs one branch.

mod effective_cpu_util;
mod energy;
mod find_energy_efficient_cpu;
mod fits;
mod misfit;
mod select_idle_capacity;

pub(crate) use fits::{capacity_greater, fits_capacity};

use schedlab_model::{CpuId, Topology};

use energy::PerfTable;

/// What core code keeps where capacities differ.
#[derive(Clone, Debug)]
pub(crate) struct Asym {
    /// The load of the running task of each CPU that is too small for it (`misfit_task_load`); 0: it fits.
    misfit_load: Vec<u64>,
    /// The energy model of each performance domain (`rd->pd`).
    perf_tables: Vec<PerfTable>,
    /// Some CPU is overutilized, so energy does not decide the placement (`rd->overutilized`).
    overutilized: bool,
    /// The number of CPUs that `select_idle_capacity` may test (7.2 and later).
    pub nr_idle_scan: u32,
}

impl Asym {
    /// The state of a machine whose CPUs are idle; `None` if all have the same capacity.
    pub fn new(topology: &Topology) -> Option<Box<Asym>> {
        let capacities = topology.capacities()?;
        Some(Box::new(Asym {
            misfit_load: vec![0; topology.nr_cpus()],
            perf_tables: capacities.perf_domains().iter().map(PerfTable::new).collect(),
            overutilized: false,
            nr_idle_scan: topology.nr_cpus() as u32,
        }))
    }

    /// `rq->misfit_task_load`.
    pub fn misfit_load(&self, cpu: CpuId) -> u64 {
        self.misfit_load[cpu.index()]
    }

    /// `sched_energy_enabled`: every CPU has an energy model.
    pub fn sched_energy_enabled(&self) -> bool {
        !self.perf_tables.is_empty()
    }

    /// `is_rd_overutilized`: load is balanced as usual.
    pub fn is_rd_overutilized(&self) -> bool {
        !self.sched_energy_enabled() || self.overutilized
    }

    /// `set_rd_overutilized`.
    pub fn set_rd_overutilized(&mut self, overutilized: bool) {
        self.overutilized = overutilized;
    }
}
