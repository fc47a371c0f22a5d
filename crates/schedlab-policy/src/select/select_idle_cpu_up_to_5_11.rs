//! The search of a cache in three passes (`select_idle_core`, `select_idle_cpu`, `select_idle_smt`, kernel/sched/fair.c
//! 5.2 and 5.7).
//!
//! The first pass searches from the target on, without a budget, for an idle core if the cache's hint says that there
//! is one; the second takes the first idle CPU within the budget of SIS_PROP; the third takes a thread of the target's
//! core. SIS_AVG_CPU skips the second pass if a search takes longer than the recent idle time of the waker's CPU.
//!
//! SIS_ITERATOR_MASK (proposal of 8 July 2019 on 5.2, "Optimize the idle CPU search", not merged): the core scan clears
//! every CPU that it finds busy from a mask of the cache's allowed CPUs, and the CPU scan walks the rest, so that its
//! budget is spent only on CPUs that have not been found busy. The mask is valid for one wakeup.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::select_idle_cpu::searched;
use super::select_rule::{SelectRule, Selected};
use crate::candidate::{Candidate, Role};
use crate::core::types::Tested;
use crate::fair::class::FairClass;
use crate::features::Feature;

/// The CPUs of the cache that `select_idle_cpu` walks.
#[derive(Clone, Copy)]
struct CpuPass {
    /// Those that the core scan has not cleared from the mask as busy.
    masked: bool,
    /// From 5.3 on: CPUs that are not allowed do not use up budget.
    stops_early: bool,
}

impl FairClass<'_> {
    /// The rest of `select_idle_sibling`, after the test of the recently used CPU.
    pub(super) fn search_in_passes(
        &mut self,
        task: TaskId,
        target: CpuId,
        stops_early: bool,
        tested: &mut Tested,
        now: Nanos,
    ) -> Option<Selected> {
        if self.core.idle.llc(self.core.idle.llc_of(target)).cpus.len() == 1 {
            return None;
        }
        let llc = self.core.idle.llc_of(target);
        let hinted = self.core.idle.smt_active() && self.core.idle.llc(llc).has_idle_cores;
        let start = tested.counts;
        let found = self.select_idle_core_up_to_5_11(task, target, stops_early, tested);
        tested.scans.core = tested.since(start);
        let masked = hinted && self.fair.config.has(Feature::SisIteratorMask);
        if hinted {
            let cpus = &self.core.idle.llc(llc).cpus;
            tested.consider(|| searched("select_idle_core", Role::Cache, found, cpus));
        }
        if let Some(cpu) = found {
            return Some((cpu, SelectRule::IdleCore));
        }
        let budget = self.pass_budget(target, tested.from, now);
        if self.fair.is_recording() {
            self.explain_budget(task, target, budget, now);
        }
        let before = tested.counts;
        let pass = CpuPass { masked, stops_early };
        let found = budget.and_then(|budget| self.select_idle_cpu_up_to_5_11(task, target, pass, budget, tested));
        tested.scans.cpu = tested.since(before);
        let (cpus, count) = (&self.core.idle.llc(llc).cpus, tested.total() - before.iter().sum::<u32>());
        tested.consider(|| match budget {
            None => {
                let answer = "was idle for too short a time: no search";
                Candidate::of("select_idle_cpu", target, Role::Cache, answer).by(Feature::SisAvgCpu)
            }
            Some(budget) => {
                let numbers = [("tested", count.into()), ("limit", i64::from(budget).min(cpus.len() as i64))];
                let candidate = searched("select_idle_cpu", Role::Cache, found, cpus).with(numbers);
                if masked {
                    candidate.by(Feature::SisIteratorMask)
                } else {
                    candidate
                }
            }
        });
        if let Some(cpu) = found {
            return Some((cpu, SelectRule::IdleCpu));
        }
        let before = tested.counts;
        let found = self.select_idle_smt_up_to_5_11(task, target, tested);
        tested.scans.smt = tested.since(before);
        if self.core.idle.smt_active() {
            let siblings = self.core.idle.threads(target);
            tested.consider(|| searched("select_idle_smt", Role::Siblings, found, siblings));
        }
        found.map(|cpu| (cpu, SelectRule::SiblingOfTarget))
    }

    /// Up to 5.11 `select_idle_core`.
    fn select_idle_core_up_to_5_11(
        &mut self,
        task: TaskId,
        target: CpuId,
        stops_early: bool,
        tested: &mut Tested,
    ) -> Option<CpuId> {
        let llc = self.core.idle.llc_of(target);
        if !self.core.idle.smt_active() || !self.core.idle.llc(llc).has_idle_cores {
            return None;
        }
        let (start, cores) = (self.core.idle.rank(target), self.core.idle.nr_cores());
        self.core.visited_cores.start(cores);
        let cpus = &self.core.idle.llc(llc).cpus;
        for &cpu in cpus[start..].iter().chain(&cpus[..start]) {
            if !self.core.tasks[task.index()].allows(cpu) || self.core.visited_cores.has(self.core.idle.core_of(cpu)) {
                continue;
            }
            let mut idle = true;
            for &thread in self.core.idle.threads(cpu) {
                tested.add(&self.core.topology, thread);
                idle &= self.core.idle.is_idle(thread);
                if !idle && stops_early {
                    break;
                }
            }
            if idle {
                return Some(cpu);
            }
            self.core.visited_cores.insert(self.core.idle.core_of(cpu));
        }
        self.core.idle.llc_mut(llc).has_idle_cores = false;
        None
    }

    /// The number of CPUs that `select_idle_cpu` may test; `None`: it does not search.
    fn pass_budget(&mut self, target: CpuId, this: CpuId, now: Nanos) -> Option<u32> {
        let cost = self.core.idle.llc(self.core.idle.llc_of(this)).avg_scan_cost + 1;
        if self.fair.config.has(Feature::SisAvgCpu) && self.core.rqs[this.index()].avg_idle / 512 < cost {
            return None;
        }
        let limited = self.fair.config.has(Feature::SisProp);
        Some(if limited { self.sis_prop_budget(target, this, now) } else { u32::MAX })
    }

    /// Up to 5.11 `select_idle_cpu`. The cost of a search that exhausts its budget is not recorded.
    fn select_idle_cpu_up_to_5_11(
        &mut self,
        task: TaskId,
        target: CpuId,
        pass: CpuPass,
        mut budget: u32,
        tested: &mut Tested,
    ) -> Option<CpuId> {
        let before = tested.counts;
        let start = self.core.idle.rank(target);
        let cpus = &self.core.idle.llc(self.core.idle.llc_of(target)).cpus;
        let mut found = None;
        for &cpu in cpus[start..].iter().chain(&cpus[..start]) {
            let allowed = self.core.tasks[task.index()].allows(cpu);
            // 5.2 walks the cache's whole span, later versions and the proposal a mask of allowed CPUs.
            if !allowed && (pass.stops_early || self.fair.config.has(Feature::SisIteratorMask)) {
                continue;
            }
            // The failed core scan has tested every thread of every core that the task may use, and no time has passed
            // since: the CPUs that it cleared from the mask are those that are not idle.
            if pass.masked && !self.core.idle.is_idle(cpu) {
                continue;
            }
            if budget == 0 {
                return None;
            }
            budget -= 1;
            if !allowed {
                continue;
            }
            tested.add(&self.core.topology, cpu);
            if self.core.idle.is_usable(cpu) {
                found = Some(cpu);
                break;
            }
        }
        self.account_scan(tested.from, tested.since(before).unwrap_or_default());
        found
    }

    /// Up to 5.11 `select_idle_smt`.
    fn select_idle_smt_up_to_5_11(&self, task: TaskId, target: CpuId, tested: &mut Tested) -> Option<CpuId> {
        if !self.core.idle.smt_active() {
            return None;
        }
        let allowed = |cpu: &&CpuId| self.core.tasks[task.index()].allows(**cpu);
        self.core.idle.threads(target).iter().filter(allowed).copied().find(|cpu| {
            tested.add(&self.core.topology, *cpu);
            self.core.idle.is_usable(*cpu)
        })
    }
}
