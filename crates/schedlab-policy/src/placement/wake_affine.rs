//! Whether a wakee is pulled to the waker's CPU or stays near its own (`wake_affine`, kernel/sched/fair.c, 5.2 to 7.2).
//!
//! By idleness: this idle and sharing cache: prev if idle, else this; sync and the waker alone on its CPU: this; prev
//! idle: prev (5.11 and later). Else by weight: this iff (load(this) [- waker if sync] + w) * 100 < (load(prev) - w) * (100 + (pct-100)/2)
//! [+ 1 if sync], each side times the other CPU's capacity.

use schedlab_model::{CpuId, TaskId};

use crate::features::Feature;
use crate::Sched;

impl Sched {
    /// `wake_affine` in the smallest domain that spans both CPUs.
    pub(super) fn wake_affine(
        &self,
        task: TaskId,
        (this, prev): (CpuId, CpuId),
        sync: bool,
        level: usize,
    ) -> (CpuId, &'static str) {
        if self.fair.config.has(Feature::WaIdle) {
            if let Some(decided) = self.wake_affine_idle(this, prev, sync) {
                return decided;
            }
        }
        let pct = self.domains.at(this, level).imbalance_pct;
        if self.fair.config.has(Feature::WaWeight) && self.wake_affine_weight(task, this, prev, sync, pct) {
            return (this, "wake_affine: lighter");
        }
        (prev, "wake_affine: prev")
    }

    fn wake_affine_idle(&self, this: CpuId, prev: CpuId, sync: bool) -> Option<(CpuId, &'static str)> {
        let share = self.topology.share_llc(this, prev);
        if share && self.available_idle(this) {
            let prev_idle = self.available_idle(prev);
            return Some(if prev_idle { (prev, "wake_affine: both idle") } else { (this, "wake_affine: this idle") });
        }
        if sync && self.nr_undelayed(this) == 1 {
            return Some((this, "wake_affine: sync"));
        }
        let prev_idle = self.rules.affine_prev_idle && self.available_idle(prev);
        prev_idle.then_some((prev, "wake_affine: prev idle"))
    }

    /// `nr_running`, without delayed tasks where the version discounts them.
    fn nr_undelayed(&self, cpu: CpuId) -> u32 {
        let nr = self.rqs[cpu.index()].nr_running;
        if !self.rules.affine_skips_delayed || nr <= 1 {
            return nr;
        }
        nr - self.fair.cfs_tasks(cpu).filter(|task| self.fair.entity(*task).sched_delayed).count() as u32
    }

    fn wake_affine_weight(&self, task: TaskId, this: CpuId, prev: CpuId, sync: bool, imbalance_pct: u32) -> bool {
        let bias = self.fair.config.has(Feature::WaBias);
        let mut this_load = self.fair.cpu_load(this) as i64;
        if sync {
            let waker = self.fair.curr(this).map_or(0, |curr| self.fair.task_h_load(curr) as i64);
            if waker > this_load {
                return true;
            }
            this_load -= waker;
        }
        let load = self.fair.task_h_load(task) as i64;
        let mut prev_load = self.fair.cpu_load(prev) as i64 - load;
        this_load += load;
        if bias {
            this_load *= 100;
            prev_load *= 100 + (i64::from(imbalance_pct) - 100) / 2;
        }
        this_load *= self.capacity_of(prev) as i64;
        prev_load *= self.capacity_of(this) as i64;
        // sync adds 1 to the right side, which only breaks a tie.
        this_load < prev_load || (sync && this_load == prev_load)
    }
}
