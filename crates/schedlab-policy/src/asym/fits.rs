//! Whether a CPU has enough capacity for a task, and whether it is overutilized: `util_fits_cpu` without uclamp.

use schedlab_model::{CpuId, TaskId};

use crate::core::fits_capacity::fits_capacity;
use crate::fair::class::FairClass;

impl FairClass<'_> {
    /// `task_fits_cpu`: the expected utilisation of the task leaves a fifth of the capacity for the fair class free.
    pub(crate) fn task_fits_cpu(&self, task: TaskId, cpu: CpuId) -> bool {
        fits_capacity(self.fair.task_util_est(task), self.capacity_of(cpu))
    }

    /// `asym_fits_cpu`: true on machines with equal CPUs.
    #[inline]
    pub(crate) fn asym_fits_cpu(&self, task: TaskId, cpu: CpuId) -> bool {
        self.core.asym.is_none() || self.task_fits_cpu(task, cpu)
    }

    /// `cpu_overutilized`: the CPU's tasks use more than four fifths of it.
    pub(crate) fn cpu_overutilized(&self, cpu: CpuId) -> bool {
        !fits_capacity(self.fair.cpu_util_cfs(cpu), self.capacity_of(cpu))
    }

    /// The least and the largest capacity of some CPUs (`sgc->min_capacity`, `sgc->max_capacity`).
    pub(crate) fn capacity_range(&self, cpus: &[CpuId]) -> (u64, u64) {
        let capacities = || cpus.iter().map(|cpu| self.capacity_of(*cpu));
        (capacities().min().unwrap_or(0), capacities().max().unwrap_or(0))
    }
}
