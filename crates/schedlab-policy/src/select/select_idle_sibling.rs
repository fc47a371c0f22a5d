//! An idle CPU that shares the target's cache (`select_idle_sibling`, kernel/sched/fair.c 5.2 to 7.2).
//!
//! Order: target; prev if it shares the cache; the CPU used before; then, with SMT and no idle-core hint, a sibling of
//! prev; then the search of the cache ([`super::select_idle_cpu`]; up to 5.11 [`super::select_idle_cpu_up_to_5_11`]). Left out: per-CPU kthreads that wake
//! on prev (stacking after IO), asymmetric capacities, CPU clusters (6.7+), and so 6.12's remembering of prev across
//! clusters.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::select_idle_cpu::{self, Search};
use crate::decision::{Decision, Verdict};
use crate::fair::class::FairClass;
use crate::features::Feature;
use crate::looked::Step;
use crate::sched::types::Tested;
use crate::version::placement::{IdleSearch, RecentCpu, SchedIdleCpu};
use crate::FairPolicy;

impl FairClass<'_> {
    /// `select_idle_sibling`; `None` = no idle CPU was found, the target is kept.
    pub(super) fn select_idle_sibling(
        &mut self,
        task: TaskId,
        prev: CpuId,
        target: CpuId,
        tested: &mut Tested,
        now: Nanos,
    ) -> Option<(CpuId, &'static str)> {
        let which = if target == prev { "previous" } else { "target" };
        if self.asked(task, (target, which), target, tested) {
            return Some((target, "target idle"));
        }
        if prev != target && self.asked(task, (prev, "previous"), target, tested) {
            return Some((prev, "prev idle"));
        }
        if let Some(recent) = self.recently_used(task, prev, target, tested) {
            return Some((recent, "recently used idle"));
        }
        match self.core.rules.idle_search {
            IdleSearch::OnePass => self.search_llc(task, prev, target, tested, now),
            IdleSearch::ThreePasses { stops_early } => self.search_in_passes(task, target, stops_early, tested, now),
        }
    }

    /// `recent_used_cpu`, if it is idle. Prev takes its place, up to 5.14 only if so.
    fn recently_used(&mut self, task: TaskId, prev: CpuId, target: CpuId, tested: &mut Tested) -> Option<CpuId> {
        let recent = self.core.tasks[task.index()].recent_used_cpu;
        let found = recent != prev && recent != target && self.asked(task, (recent, "recently used"), target, tested);
        if found || self.core.rules.recent_cpu == RecentCpu::BeforePrev {
            self.core.tasks[task.index()].recent_used_cpu = prev;
        }
        found.then_some(recent)
    }

    /// Whether a CPU is in the target's cache, allowed and usable. The task was on the first two before.
    fn asked(&self, task: TaskId, (cpu, which): (CpuId, &'static str), target: CpuId, tested: &mut Tested) -> bool {
        let reachable = cpu == target || self.core.topology.share_llc(cpu, target);
        let allowed = reachable && (which != "recently used" || self.core.tasks[task.index()].allows(cpu));
        if allowed {
            tested.add(&self.core.topology, cpu);
        }
        let taken = allowed && self.choose_idle_cpu(task, cpu);
        tested.step(|| {
            let answer = match () {
                () if taken => "idle: taken",
                () if !reachable => "not in the target's cache",
                () if !allowed => "not allowed there",
                () => "not idle",
            };
            Step::of("select_idle_sibling", cpu, which, answer)
        });
        taken
    }

    /// `choose_idle_cpu`: idle, or, depending on the version and the wakee, running SCHED_IDLE tasks only.
    pub(super) fn choose_idle_cpu(&self, task: TaskId, cpu: CpuId) -> bool {
        if self.wants_idle_only(task) {
            self.core.idle.is_idle(cpu)
        } else {
            self.core.idle.is_usable(cpu)
        }
    }

    pub(super) fn wants_idle_only(&self, task: TaskId) -> bool {
        self.core.rules.sched_idle_cpu == SchedIdleCpu::CountsForOthers
            && self.fair.entity(task).policy == FairPolicy::Idle
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
        let llc = self.core.idle.llc_of(target);
        if self.core.idle.llc(llc).cpus.len() == 1 {
            return None;
        }
        let idle_only = self.wants_idle_only(task);
        let from_target = self.core.rules.search_from_target;
        let has_idle_core = self.core.idle.smt_active() && self.core.idle.llc(llc).has_idle_cores;
        if self.core.idle.smt_active() && !has_idle_core && self.core.topology.share_llc(prev, target) {
            let search = Search { task: &self.core.tasks[task.index()], target, from_target, idle_only };
            let found = select_idle_cpu::select_idle_smt((&self.core.idle, &self.core.topology), &search, prev, tested);
            let siblings = self.core.idle.threads(prev);
            tested.step(|| searched("select_idle_smt", "siblings", found, siblings));
            if let Some(cpu) = found {
                return Some((cpu, "sibling of prev idle"));
            }
        }
        let budget = self.scan_budget(target, has_idle_core, tested.from, now);
        if self.fair.is_recording() {
            self.explain_budget(task, target, budget, now);
        }
        let Some(budget) = budget else {
            let numbers = [("nr_idle_scan", 0)];
            let answer = "the cache is too busy: no search";
            tested.step(|| Step::of("select_idle_cpu", target, "the cache", answer).by(Feature::SisUtil).with(numbers));
            return None;
        };
        let search = Search { task: &self.core.tasks[task.index()], target, from_target, idle_only };
        if has_idle_core {
            let found = select_idle_cpu::scan_cores(
                (&mut self.core.idle, &self.core.topology),
                &mut self.core.visited_cores,
                &search,
                tested,
            );
            let cpus = &self.core.idle.llc(llc).cpus;
            tested.step(|| searched("select_idle_core", "the cache", found, cpus));
            return found.map(|cpu| (cpu, "idle core search"));
        }
        let before = tested.total();
        let (found, finished) =
            select_idle_cpu::scan_cpus((&self.core.idle, &self.core.topology), &search, budget, tested);
        let (cpus, looked_at) = (&self.core.idle.llc(llc).cpus, tested.total() - before);
        tested.step(|| {
            let numbers = [("tested", looked_at.into()), ("limit", i64::from(budget).min(cpus.len() as i64))];
            searched("select_idle_cpu", "the cache", found, cpus).with(numbers)
        });
        if finished && self.fair.config.has(Feature::SisProp) {
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
            budget = self.core.idle.llc(self.core.idle.llc_of(target)).nr_idle_scan;
            if budget == 0 {
                return None;
            }
        }
        Some(budget)
    }

    #[cold]
    pub(super) fn explain_budget(&mut self, task: TaskId, target: CpuId, budget: Option<u32>, now: Nanos) {
        let features = [Feature::SisUtil, Feature::SisProp];
        let feature = features.into_iter().find(|feature| self.fair.config.has(*feature));
        let width = self.core.idle.llc(self.core.idle.llc_of(target)).cpus.len() as i64;
        let may = i64::from(budget.unwrap_or(0)).min(width);
        let rule = if budget.is_none() { "too busy to search" } else { "CPUs the search may test" };
        let compared = [("may test", may), ("CPUs of the cache", width)];
        self.fair.record(Decision::outside(now, target, Verdict::Search(task), rule, feature, compared));
    }

    /// SIS_PROP: in proportion to the waker's recent idle time and the cost of its past searches.
    pub(super) fn sis_prop_budget(&mut self, target: CpuId, this: CpuId, now: Nanos) -> u32 {
        let idle = if self.core.rules.prop_by_avg_idle {
            self.core.rqs[this.index()].avg_idle / 512
        } else {
            self.aged_idle(this, now)
        };
        let width = self.core.idle.llc(self.core.idle.llc_of(target)).cpus.len() as u64;
        let cost = self.core.idle.llc(self.core.idle.llc_of(this)).avg_scan_cost + 1;
        let span = width * idle;
        let nr = if span > 4 * cost { span / cost } else { 4 };
        u32::try_from(nr - 1).unwrap_or(u32::MAX)
    }

    /// `wake_avg_idle`, which halves each jiffy.
    fn aged_idle(&mut self, this: CpuId, now: Nanos) -> Nanos {
        let jiffies = self.core.jiffies(now);
        let rq = &mut self.core.rqs[this.index()];
        let age = jiffies.saturating_sub(rq.wake_stamp);
        if age > 0 {
            rq.wake_avg_idle = rq.wake_avg_idle.checked_shr(age.min(64) as u32).unwrap_or(0);
            rq.wake_stamp = jiffies;
        }
        rq.wake_avg_idle
    }

    /// A search that was not cut short is remembered by its cost, and from 5.14 on charged to the idle time.
    pub(super) fn account_scan(&mut self, this: CpuId, tested: u32) {
        let time = self.core.balance_cost.per_cpu * u64::from(tested);
        let rq = &mut self.core.rqs[this.index()];
        rq.wake_avg_idle = rq.wake_avg_idle.saturating_sub(time);
        let llc = self.core.idle.llc_of(this);
        let llc = self.core.idle.llc_mut(llc);
        llc.avg_scan_cost = (llc.avg_scan_cost as i64 + ((time as i64 - llc.avg_scan_cost as i64) >> 3)).max(0) as u64;
    }
}

/// The step of a search among CPUs.
#[cold]
pub(super) fn searched(function: &'static str, which: &'static str, found: Option<CpuId>, cpus: &[CpuId]) -> Step {
    match found {
        Some(cpu) => Step::of(function, cpu, which, "idle: taken"),
        None => Step::of(function, CpuId(0), which, "none idle").about(cpus),
    }
}
