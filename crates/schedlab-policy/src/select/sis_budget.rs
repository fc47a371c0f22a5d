//! The number of CPUs that `select_idle_cpu` may test (SIS_UTIL, SIS_PROP).
//!
//! SIS_UTIL: `nr_idle_scan` of the target's cache; 0 = do not search, even if the idle-core hint is set. SIS_PROP (off
//! since 5.15): `W * wake_avg_idle / avg_scan_cost - 1`, at least 3.

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::core::types::Counts;
use crate::core::Core;
use crate::decision::{Action, Decision};
use crate::fair::class::FairClass;
use crate::features::Feature;

/// The least number of CPUs that SIS_PROP lets a search test.
pub const LEAST_OF_SIS_PROP: u32 = 3;

impl Core {
    /// Sets idle times and a search cost for which SIS_PROP lets a search from `this` test `budget` CPUs, for a
    /// selection in a stated situation.
    pub(crate) fn set_sis_prop_budget(&mut self, this: CpuId, budget: u32, now: Nanos) {
        let (nr, jiffies) = (u64::from(budget) + 1, self.jiffies(now));
        let rq = &mut self.rqs[this.index()];
        (rq.avg_idle, rq.wake_avg_idle, rq.wake_stamp) = (nr * 512, nr, jiffies);
        let llc = self.idle.llc_of(this);
        let llc = self.idle.llc_mut(llc);
        llc.avg_scan_cost = llc.cpus.len() as u64 - 1;
    }
}

impl FairClass<'_> {
    /// The number of CPUs that the search may test; `None`: do not search.
    pub(super) fn scan_budget(&mut self, target: CpuId, has_idle_core: bool, this: CpuId, now: Nanos) -> Option<u32> {
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
        self.fair.record(Decision::outside(now, target, Action::Search(task), rule, feature, compared));
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
        let least = u64::from(LEAST_OF_SIS_PROP) + 1;
        let nr = if span > least * cost { span / cost } else { least };
        u32::try_from(nr - 1).unwrap_or(u32::MAX)
    }

    /// The CPU's `wake_avg_idle`, which halves each jiffy.
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

    /// The cost of a search that was not cut short is averaged, and from 5.14 on charged to the idle time.
    pub(super) fn account_scan(&mut self, this: CpuId, tested: Counts) {
        let costs = self.core.scan_cost.iter().zip(tested);
        let time: Nanos = costs.map(|(cost, count)| cost * u64::from(count)).sum();
        let rq = &mut self.core.rqs[this.index()];
        rq.wake_avg_idle = rq.wake_avg_idle.saturating_sub(time);
        let llc = self.core.idle.llc_of(this);
        let llc = self.core.idle.llc_mut(llc);
        llc.avg_scan_cost = (llc.avg_scan_cost as i64 + ((time as i64 - llc.avg_scan_cost as i64) >> 3)).max(0) as u64;
    }
}
