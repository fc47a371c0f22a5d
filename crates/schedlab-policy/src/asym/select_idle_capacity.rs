//! Selects an idle CPU that the task fits, or else the idle one with the most capacity (`select_idle_capacity`).
//!
//! All CPUs of the smallest domain with every capacity are tested from the target on. From 7.2 on at most
//! `nr_idle_scan` of them are (SIS_UTIL), counted over this domain instead of the cache.

use schedlab_model::{CpuId, TaskId};

use crate::candidate::{Candidate, Role};
use crate::core::types::Tested;
use crate::fair::class::FairClass;
use crate::features::Feature;
use crate::select::select_rule::{SelectRule, Selected};

impl FairClass<'_> {
    /// `select_idle_capacity`; the level is that of the target's domain.
    pub(crate) fn select_idle_capacity(
        &mut self,
        task: TaskId,
        target: CpuId,
        level: usize,
        tested: &mut Tested,
    ) -> Option<Selected> {
        let before = tested.counts;
        let found = self.search_capacity(task, target, level, tested);
        tested.scans.cpu = tested.since(before);
        found
    }

    fn search_capacity(&self, task: TaskId, target: CpuId, level: usize, tested: &mut Tested) -> Option<Selected> {
        let limited = self.core.rules.capacity_scan_limit && self.fair.config.has(Feature::SisUtil);
        let mut left = match (limited, &self.core.asym) {
            (true, Some(asym)) => asym.nr_idle_scan,
            _ => u32::MAX,
        };
        let span = self.core.domains.at(target, level).span;
        let mut biggest = None::<(u64, CpuId)>;
        for cpu in span.iter_from(target).filter(|cpu| self.core.allows(task, *cpu)) {
            if left == 0 {
                break;
            }
            left -= 1;
            tested.add(&self.core.topology, cpu);
            if !self.choose_idle_cpu(task, cpu) {
                continue;
            }
            if self.task_fits_cpu(task, cpu) {
                self.explain_capacity(task, cpu, "idle and big enough: chosen", tested);
                return Some((cpu, SelectRule::IdleThatFits));
            }
            if biggest.is_none_or(|(most, _)| self.capacity_of(cpu) > most) {
                biggest = Some((self.capacity_of(cpu), cpu));
            }
        }
        let (_, cpu) = biggest?;
        self.explain_capacity(task, cpu, "the biggest idle one, as none is big enough: chosen", tested);
        Some((cpu, SelectRule::BiggestIdle))
    }

    fn explain_capacity(&self, task: TaskId, cpu: CpuId, answer: &'static str, tested: &mut Tested) {
        let numbers = [
            ("expected utilisation", self.fair.task_util_est(task) as i64),
            ("capacity", self.capacity_of(cpu) as i64),
        ];
        tested.consider(|| Candidate::of("select_idle_capacity", cpu, Role::Capacity, answer).with(numbers));
    }
}
