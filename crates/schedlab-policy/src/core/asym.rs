//! What is kept where CPUs differ in capacity (`sched_asym_cpucap_active`).

use schedlab_model::{CpuId, Topology};

use super::perf_table::PerfTable;

/// What core code keeps where capacities differ.
#[derive(Clone, Debug)]
pub(crate) struct Asym {
    /// The load of the running task of each CPU that is too small for it (`misfit_task_load`); 0: it fits.
    pub(crate) misfit_load: Vec<u64>,
    /// The energy model of each performance domain (`rd->pd`).
    pub(crate) perf_tables: Vec<PerfTable>,
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
