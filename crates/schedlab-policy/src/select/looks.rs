//! The steps of a placement kept with its decision ([`crate::looked`]), each CPU as it stood.

use schedlab_model::{CpuId, TaskId};

use crate::looked::{Looked, Step};
use crate::Sched;

impl Sched {
    /// From now on placements record what they looked at, or no longer.
    pub fn record_candidates(&mut self, on: bool) {
        self.looks = on.then(Vec::new);
    }

    /// Takes what placements looked at, each with the number of its decision since [`Fair::decisions`] was taken.
    ///
    /// [`Fair::decisions`]: crate::fair::Fair::decisions
    pub fn take_candidates(&mut self) -> Vec<(usize, Vec<Looked>)> {
        self.looks.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// CPUs that the task may use and that run nobody.
    pub fn idle_cpus_for(&self, task: TaskId) -> impl Iterator<Item = CpuId> + '_ {
        let task = &self.tasks[task.index()];
        self.topology.all().iter().filter(|cpu| task.allows(*cpu) && self.idle.is_idle(*cpu))
    }

    /// The steps of the placement that is recorded last. Nothing has moved since they were taken.
    #[cold]
    pub(super) fn keep_looks(&mut self, steps: &[Step]) {
        let looks: Vec<Looked> = steps.iter().map(|step| self.looked(step)).collect();
        let decision = self.decided().saturating_sub(1);
        if let Some(all) = &mut self.looks {
            all.push((decision, looks));
        }
    }

    fn looked(&self, step: &Step) -> Looked {
        let cpus = || step.cpus.iter().copied();
        let idle = cpus().filter(|cpu| self.idle.is_idle(*cpu)).count() as u32;
        Looked {
            function: step.function,
            feature: step.feature.map(|feature| feature.info().name),
            cpus: cpus().map(|cpu| cpu.0).collect(),
            which: step.which,
            idle,
            sched_idle: cpus().filter(|cpu| self.idle.is_usable(*cpu)).count() as u32 - idle,
            nr_running: cpus().map(|cpu| self.rqs[cpu.index()].nr_running).sum(),
            load: cpus().map(|cpu| self.fair.cpu_load(cpu)).sum(),
            cache: cpus().next().map_or(0, |cpu| self.idle.llc_of(cpu).number()),
            answer: step.answer,
            numbers: step.numbers.clone(),
        }
    }
}
