//! The steps of a placement that are recorded with its decision ([`crate::looked`]), with the state of each CPU.

use crate::fair::class::FairClass;
use crate::looked::{Looked, Step};

impl FairClass<'_> {
    /// The steps of a placement, recorded before anything changes.
    #[cold]
    pub(super) fn looks(&self, steps: &[Step]) -> Vec<Looked> {
        steps.iter().map(|step| self.looked(step)).collect()
    }

    fn looked(&self, step: &Step) -> Looked {
        let cpus = || step.cpus.iter().copied();
        let idle = cpus().filter(|cpu| self.core.idle.is_idle(*cpu)).count() as u32;
        Looked {
            function: step.function,
            feature: step.feature.map(|feature| feature.info().name),
            cpus: cpus().map(|cpu| cpu.0).collect(),
            which: step.which(),
            idle,
            sched_idle: cpus().filter(|cpu| self.core.idle.is_usable(*cpu)).count() as u32 - idle,
            nr_running: cpus().map(|cpu| self.core.rqs[cpu.index()].nr_running).sum(),
            load: cpus().map(|cpu| self.fair.cpu_load(cpu)).sum(),
            cache: cpus().next().map_or(0, |cpu| self.core.idle.llc_of(cpu).number()),
            answer: step.answer,
            numbers: step.numbers.clone(),
        }
    }
}
