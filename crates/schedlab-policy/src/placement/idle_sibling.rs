//! An idle CPU that shares the target's cache (`select_idle_sibling`, kernel/sched/fair.c 6.1.192 and 6.12.0).
//!
//! Order: target; prev if it shares the cache; the CPU used before prev; then with SMT and no idle-core hint a sibling of
//! prev; then the search of the cache ([`super::scan`]). Left out: per-CPU kthreads that wake on prev (stacking after
//! IO), asymmetric capacities, CPU clusters (6.7+), and so 6.12's remembering of prev across clusters.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::scan;
use crate::decision::{Decision, Verdict};
use crate::features::Feature;
use crate::sched::types::Tested;
use crate::Sched;

impl Sched {
    /// `select_idle_sibling`; `None` = no idle CPU was found, the target is kept.
    pub(super) fn select_idle_sibling(
        &mut self,
        task: TaskId,
        prev: CpuId,
        target: CpuId,
        tested: &mut Tested,
        now: Nanos,
    ) -> Option<(CpuId, &'static str)> {
        if self.test_usable(target, tested) {
            return Some((target, "target idle"));
        }
        if prev != target && self.topology.share_llc(prev, target) && self.test_usable(prev, tested) {
            return Some((prev, "prev idle"));
        }
        let recent = std::mem::replace(&mut self.tasks[task.index()].recent_used_cpu, prev);
        if recent != prev
            && recent != target
            && self.topology.share_llc(recent, target)
            && self.tasks[task.index()].allows(recent)
            && self.test_usable(recent, tested)
        {
            return Some((recent, "recently used idle"));
        }
        self.search_llc(task, prev, target, tested, now)
    }

    fn test_usable(&self, cpu: CpuId, tested: &mut Tested) -> bool {
        tested.add(&self.topology, cpu);
        self.idle.is_usable(cpu)
    }

    /// The SMT sibling and `select_idle_cpu` part.
    fn search_llc(
        &mut self,
        task: TaskId,
        prev: CpuId,
        target: CpuId,
        tested: &mut Tested,
        now: Nanos,
    ) -> Option<(CpuId, &'static str)> {
        let llc = self.idle.llc_of(target);
        if self.idle.llc(llc).cpus.len() == 1 {
            return None;
        }
        let has_idle_core = self.idle.smt_active() && self.idle.llc(llc).has_idle_cores;
        if self.idle.smt_active() && !has_idle_core && self.topology.share_llc(prev, target) {
            if let Some(cpu) = scan::idle_smt((&self.idle, &self.topology), &self.tasks[task.index()], prev, tested) {
                return Some((cpu, "sibling of prev idle"));
            }
        }
        let budget = self.scan_budget(target, has_idle_core, tested.from, now);
        if self.fair.decisions.is_some() {
            self.explain_budget(task, target, budget, now);
        }
        let budget = budget?;
        if has_idle_core {
            let task = &self.tasks[task.index()];
            let found = scan::idle_core((&mut self.idle, &self.topology), &mut self.struck, task, target, tested);
            return found.map(|cpu| (cpu, "idle core search"));
        }
        let before = tested.total();
        let (found, finished) =
            scan::idle_cpu((&self.idle, &self.topology), &self.tasks[task.index()], target, budget, tested);
        if finished {
            self.account_scan(tested.from, tested.total() - before);
        }
        found.map(|cpu| (cpu, "idle CPU search"))
    }

    /// How many CPUs the search may test; `None` = do not search at all.
    fn scan_budget(&mut self, target: CpuId, has_idle_core: bool, this: CpuId, now: Nanos) -> Option<u32> {
        let mut budget = u32::MAX;
        if self.fair.config.has(Feature::SisProp) && !has_idle_core {
            budget = self.sis_prop_budget(target, this, now);
        }
        if self.fair.config.has(Feature::SisUtil) {
            budget = self.idle.llc(self.idle.llc_of(target)).nr_idle_scan;
            if budget == 0 {
                return None;
            }
        }
        Some(budget)
    }

    #[cold]
    fn explain_budget(&mut self, task: TaskId, target: CpuId, budget: Option<u32>, now: Nanos) {
        let features = [Feature::SisUtil, Feature::SisProp];
        let feature = features.into_iter().find(|feature| self.fair.config.has(*feature));
        let width = self.idle.llc(self.idle.llc_of(target)).cpus.len() as i64;
        let may = i64::from(budget.unwrap_or(0)).min(width);
        let rule = if budget.is_none() { "too busy to search" } else { "CPUs the search may test" };
        let compared = [("may test", may), ("CPUs of the cache", width)];
        self.fair.record(Decision::outside(now, target, Verdict::Search(task), rule, feature, compared));
    }

    /// SIS_PROP of 5.14 to 6.6: in proportion to the waker's recent idle time and the cost of its past searches.
    fn sis_prop_budget(&mut self, target: CpuId, this: CpuId, now: Nanos) -> u32 {
        let jiffies = self.jiffies(now);
        let rq = &mut self.rqs[this.index()];
        let age = jiffies.saturating_sub(rq.wake_stamp);
        if age > 0 {
            rq.wake_avg_idle = rq.wake_avg_idle.checked_shr(age.min(64) as u32).unwrap_or(0);
            rq.wake_stamp = jiffies;
        }
        let width = self.idle.llc(self.idle.llc_of(target)).cpus.len() as u64;
        let cost = self.idle.llc(self.idle.llc_of(this)).avg_scan_cost + 1;
        let span = width * rq.wake_avg_idle;
        let nr = if span > 4 * cost { span / cost } else { 4 };
        u32::try_from(nr - 1).unwrap_or(u32::MAX)
    }

    /// SIS_PROP: a search that was not cut short is charged to the idle time and remembered by its cost.
    fn account_scan(&mut self, this: CpuId, tested: u32) {
        if !self.fair.config.has(Feature::SisProp) {
            return;
        }
        let time = self.balance_cost.per_cpu * u64::from(tested);
        let rq = &mut self.rqs[this.index()];
        rq.wake_avg_idle = rq.wake_avg_idle.saturating_sub(time);
        let llc = self.idle.llc_of(this);
        let llc = self.idle.llc_mut(llc);
        llc.avg_scan_cost = (llc.avg_scan_cost as i64 + ((time as i64 - llc.avg_scan_cost as i64) >> 3)).max(0) as u64;
    }
}
