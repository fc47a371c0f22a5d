//! The candidates of a placement ([`crate::candidate`]) with the state of each CPU, recorded with its decision.

use crate::candidate::{Candidate, CandidateView};
use crate::fair::class::FairClass;

impl FairClass<'_> {
    /// To be called before anything changes.
    #[cold]
    pub(super) fn candidate_views(&self, candidates: &[Candidate]) -> Vec<CandidateView> {
        candidates.iter().map(|candidate| self.candidate_view(candidate)).collect()
    }

    fn candidate_view(&self, candidate: &Candidate) -> CandidateView {
        let cpus = || candidate.cpus.iter().copied();
        let idle = cpus().filter(|cpu| self.core.idle.is_idle(*cpu)).count() as u32;
        CandidateView {
            function: candidate.function,
            feature: candidate.feature.map(|feature| feature.info().name),
            cpus: cpus().map(|cpu| cpu.0).collect(),
            which: candidate.which(),
            idle,
            sched_idle: cpus().filter(|cpu| self.core.idle.is_usable(*cpu)).count() as u32 - idle,
            nr_running: cpus().map(|cpu| self.core.rqs[cpu.index()].nr_running).sum(),
            load: cpus().map(|cpu| self.fair.cpu_load(cpu)).sum(),
            cache: cpus().next().map_or(0, |cpu| self.core.idle.llc_of(cpu).number()),
            answer: candidate.answer,
            numbers: candidate.numbers.clone(),
        }
    }
}
