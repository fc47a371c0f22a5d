//! Whether a CPU has enough capacity: `fits_capacity`, `util_fits_cpu` without uclamp, `capacity_greater`.
//!
//! fits: util * 1280 < capacity * 1024, so that a fifth stays free; greater: by more than 5 %.

use schedlab_model::{CpuId, TaskId};

use crate::fair::class::FairClass;

/// `fits_capacity`.
pub(crate) fn fits_capacity(util: u64, capacity: u64) -> bool {
    util * 1280 < capacity * 1024
}

/// `capacity_greater`.
pub(crate) fn capacity_greater(a: u64, b: u64) -> bool {
    a * 1024 > b * 1078
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_stays_free() {
        for (util, capacity, fits) in
            [(0, 1, true), (819, 1024, true), (820, 1024, false), (369, 462, true), (370, 462, false)]
        {
            assert_eq!(fits_capacity(util, capacity), fits, "{util} of {capacity}");
        }
        assert!(capacity_greater(1024, 972) && !capacity_greater(1024, 973));
    }
}
