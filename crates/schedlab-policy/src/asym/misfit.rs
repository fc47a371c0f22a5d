//! Misfit tasks, and whether the machine is too busy for placement by energy
//! (`update_misfit_status`, `check_update_overutilized_status`).

use schedlab_model::{CpuId, TaskId};

use crate::fair::class::FairClass;

impl FairClass<'_> {
    /// `update_misfit_status` at a pick, a tick, and when nothing is left to run.
    #[inline(always)]
    pub(crate) fn update_misfit_status(&mut self, cpu: CpuId, task: Option<TaskId>) {
        if self.core.asym.is_some() {
            self.set_misfit_status(cpu, task);
        }
    }

    #[inline(never)]
    fn set_misfit_status(&mut self, cpu: CpuId, task: Option<TaskId>) {
        let misfits = |task: &TaskId| {
            let alone = self.core.is_pinned(*task);
            !alone && !self.has_largest_allowed(*task, cpu) && !self.task_fits_cpu(*task, cpu)
        };
        let jiffies = self.core.jiffies_shown;
        let load = task.filter(misfits).map_or(0, |task| self.fair.task_h_load(task, jiffies).max(1));
        if let Some(asym) = &mut self.core.asym {
            asym.misfit_load[cpu.index()] = load;
        }
    }

    /// No CPU that the task may use has more capacity (`max_allowed_capacity`, 6.10 and later).
    fn has_largest_allowed(&self, task: TaskId, cpu: CpuId) -> bool {
        let topology = &self.core.topology;
        let larger = |other: CpuId| self.core.allows(task, other) && topology.capacity(other) > topology.capacity(cpu);
        self.core.rules.misfit_minds_affinity && !topology.all().iter().any(larger)
    }

    /// `check_update_overutilized_status` at a wakeup and at a tick.
    #[inline(always)]
    pub(crate) fn check_update_overutilized_status(&mut self, cpu: CpuId) {
        let watched = self.core.asym.as_ref().is_some_and(|asym| !asym.is_rd_overutilized());
        if watched && self.cpu_overutilized(cpu) {
            if let Some(asym) = &mut self.core.asym {
                asym.set_rd_overutilized(true);
            }
        }
    }
}
