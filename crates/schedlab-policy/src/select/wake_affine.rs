//! Whether a wakee is pulled to the waker's CPU or stays near its own (`wake_affine`, kernel/sched/fair.c, 5.2 to 7.2).
//!
//! By idleness: this idle and sharing cache: prev if idle, else this; sync and the waker alone on its CPU: this; prev
//! idle: prev (5.11 and later). Else by weight: this iff `(load(this) [- waker if sync] + w) * 100 < (load(prev) - w) *
//! (100 + (pct-100)/2) [+ 1 if sync]`, each side times the other CPU's capacity.

use schedlab_model::{CpuId, TaskId};

use super::select_rule::{SelectRule, Selected};
use crate::candidate::{Candidate, Role};
use crate::core::types::Tested;
use crate::fair::class::FairClass;
use crate::features::Feature;
use crate::pelt::series::CAPACITY_SCALE;

impl FairClass<'_> {
    /// `wake_affine` in the smallest domain that spans both CPUs.
    pub(super) fn wake_affine(
        &mut self,
        task: TaskId,
        this: CpuId,
        prev: CpuId,
        sync: bool,
        level: usize,
        tested: &mut Tested,
    ) -> Selected {
        if self.fair.config.has(Feature::WaIdle) {
            if let Some((cpu, rule, answer)) = self.wake_affine_idle(this, prev, sync, tested) {
                let role = if cpu == prev { Role::Previous } else { Role::Waker };
                tested.consider(|| Candidate::of("wake_affine_idle", cpu, role, answer).by(Feature::WaIdle));
                return (cpu, rule);
            }
        }
        let pct = self.core.domains.at(this, level).imbalance_pct;
        if self.fair.config.has(Feature::WaWeight) {
            let loads @ [here, there] = self.effective_loads(task, this, prev, sync, pct);
            // sync adds 1 to the right side, which only breaks a tie.
            let lighter = here < there || (sync && here == there);
            let bias = if self.fair.config.has(Feature::WaBias) { 100 } else { 1 };
            let scale = bias * CAPACITY_SCALE as i64;
            tested.consider(|| weighed(this, prev, lighter, loads, scale));
            if lighter {
                return (this, SelectRule::Lighter);
            }
        }
        (prev, SelectRule::NotLighter)
    }

    /// The target, the rule, and the answer in words.
    fn wake_affine_idle(
        &self,
        this: CpuId,
        prev: CpuId,
        sync: bool,
        tested: &mut Tested,
    ) -> Option<(CpuId, SelectRule, &'static str)> {
        let share = self.core.topology.share_llc(this, prev);
        if share && self.core.available_idle_cpu(this) {
            tested.available_idle_cpu(prev);
            return Some(match self.core.available_idle_cpu(prev) {
                true => (prev, SelectRule::BothIdle, "idle as the waker's: target"),
                false => (this, SelectRule::ThisIdle, "idle: target"),
            });
        }
        if sync && self.nr_undelayed(this) == 1 {
            return Some((this, SelectRule::Sync, "its only task is about to sleep: target"));
        }
        if self.core.rules.affine_prev_idle {
            tested.available_idle_cpu(prev);
        }
        let prev_idle = self.core.rules.affine_prev_idle && self.core.available_idle_cpu(prev);
        prev_idle.then_some((prev, SelectRule::PrevIdleAffine, "idle: target"))
    }

    /// Tasks on the CPU, without delayed ones where the version discounts them.
    fn nr_undelayed(&self, cpu: CpuId) -> u32 {
        let nr = self.core.rqs[cpu.index()].nr_running;
        if !self.core.rules.affine_skips_delayed || nr <= 1 {
            return nr;
        }
        nr - self.fair.cfs_tasks(cpu).filter(|task| self.fair.entity(*task).sched_delayed).count() as u32
    }

    /// `this_eff_load` and `prev_eff_load` of `wake_affine_weight`; the first is below every other if the waker's own
    /// load is all there is. Loads that exceed 64 bits (see `attach_entity_load_avg`) wrap, as in the kernel.
    fn effective_loads(&mut self, task: TaskId, this: CpuId, prev: CpuId, sync: bool, imbalance_pct: u32) -> [i64; 2] {
        let jiffies = self.core.jiffies_shown;
        let bias = self.fair.config.has(Feature::WaBias);
        let mut this_load = self.fair.cpu_load(this) as i64;
        if sync {
            let waker = self.fair.curr(this).map_or(0, |curr| self.fair.task_h_load(curr, jiffies) as i64);
            if waker > this_load {
                return [i64::MIN, 0];
            }
            this_load = this_load.wrapping_sub(waker);
        }
        let load = self.fair.task_h_load(task, jiffies) as i64;
        let mut prev_load = (self.fair.cpu_load(prev) as i64).wrapping_sub(load);
        this_load = this_load.wrapping_add(load);
        if bias {
            this_load = this_load.wrapping_mul(100);
            prev_load = prev_load.wrapping_mul(100 + (i64::from(imbalance_pct) - 100) / 2);
        }
        this_load = this_load.wrapping_mul(self.capacity_of(prev) as i64);
        prev_load = prev_load.wrapping_mul(self.capacity_of(this) as i64);
        [this_load, prev_load]
    }
}

/// The step of `wake_affine_weight`; loads are divided by `scale`, by which WA_BIAS and capacities multiplied them.
#[cold]
fn weighed(this: CpuId, prev: CpuId, lighter: bool, [here, there]: [i64; 2], scale: i64) -> Candidate {
    let (function, feature) = ("wake_affine_weight", Feature::WaWeight);
    match lighter {
        true if here == i64::MIN => {
            Candidate::of(function, this, Role::Waker, "all its load is the waker's, about to sleep: target")
                .by(feature)
        }
        _ => {
            let (cpu, role) = if lighter { (this, Role::Waker) } else { (prev, Role::Previous) };
            let answer = if lighter { "lighter: target" } else { "not heavier: target" };
            Candidate::of(function, cpu, role, answer)
                .by(feature)
                .with([("waker's", here / scale), ("previous", there / scale)])
        }
    }
}
