//! Run time by process, and how many queued tasks prefer which cache (`account_mm_sched`, `account_llc_enqueue`,
//! `account_llc_dequeue`, `get_pref_llc`, `invalid_llc_nr`).

use schedlab_model::{CpuId, Nanos, TaskId};

use super::group::CacheTask;
use super::{LlcId, SchedCache};
use crate::core::fits_capacity::fits_capacity;

impl SchedCache {
    /// `account_mm_sched`: the task ran on the CPU for `delta`. `queued`: `task_running_on_cpu`.
    pub fn account_mm_sched(&mut self, cpu: CpuId, task: TaskId, delta: Nanos, queued: bool, now: Nanos) {
        let Some(group) = self.groups.task(task).group.filter(|_| self.active) else { return };
        self.account_group(cpu, task, group, delta, now);
        let preferred = self.get_pref_llc(group);
        if queued && self.groups.task(task).preferred_llc != preferred {
            self.set_preferred_llc(cpu, task, preferred, true);
        }
    }

    /// The part that concerns the process.
    pub(super) fn account_group(&mut self, cpu: CpuId, task: TaskId, group: u32, delta: Nanos, now: Nanos) {
        let (jiffies, period) = (self.jiffies(now), self.tuning.epoch_period);
        let rq = &mut self.cpus[cpu.index()];
        rq.update(jiffies, period);
        let time = self.groups.group_mut(group).time_on(cpu, rq);
        time.follow(rq);
        // A damaged trace may charge without end.
        time.runtime = time.runtime.saturating_add(delta);
        rq.runtime = rq.runtime.saturating_add(delta);
        let epochs = (rq.epoch as i64).wrapping_sub(self.groups.group(group).epoch as i64);
        let stale = epochs > self.tuning.epoch_affinity_timeout as i64;
        if stale || self.invalid_llc_nr(self.groups.task(task), cpu) {
            self.groups.group_mut(group).cpu = None;
        }
    }

    /// The task prefers this cache from now on. `queued`: it counts on the CPU.
    pub(super) fn set_preferred_llc(&mut self, cpu: CpuId, task: TaskId, llc: Option<LlcId>, queued: bool) {
        if queued {
            self.account_llc_dequeue(cpu, task);
        }
        self.groups.task_mut(task).preferred_llc = llc;
        if queued {
            self.account_llc_enqueue(cpu, task);
        }
    }

    /// `account_llc_enqueue`.
    #[inline]
    pub fn account_llc_enqueue(&mut self, cpu: CpuId, task: TaskId) {
        if let Some(llc) = self.groups.task(task).preferred_llc {
            let at = self.count_at(cpu, llc);
            self.llc_counts[at] += 1;
            self.preferring += 1;
        }
    }

    /// `account_llc_dequeue`. After domains were built anew a count may be too small.
    #[inline]
    pub fn account_llc_dequeue(&mut self, cpu: CpuId, task: TaskId) {
        if let Some(llc) = self.groups.task(task).preferred_llc {
            let at = self.count_at(cpu, llc);
            if self.llc_counts[at] > 0 {
                self.llc_counts[at] -= 1;
                self.preferring -= 1;
            }
        }
    }

    /// `sd->llc_counts` of a CPU: its queued tasks that prefer a cache.
    #[inline]
    pub fn llc_count(&self, cpu: CpuId, llc: LlcId) -> u32 {
        self.llc_counts[self.count_at(cpu, llc)]
    }

    /// `sd->llc_counts` of a CPU, by cache.
    pub fn llc_counts(&self, cpu: CpuId) -> &[u32] {
        &self.llc_counts[self.count_at(cpu, 0)..self.count_at(cpu, 0) + self.llcs.len()]
    }

    fn count_at(&self, cpu: CpuId, llc: LlcId) -> usize {
        cpu.index() * self.llcs.len() + llc as usize
    }

    /// `get_pref_llc`: the cache of the CPU that the process prefers.
    pub(super) fn get_pref_llc(&self, group: u32) -> Option<LlcId> {
        self.groups.group(group).cpu.map(|cpu| self.llc_of[cpu.index()])
    }

    /// `invalid_llc_nr`: the process has no other thread, or more that run than fit the CPU's cache.
    pub(super) fn invalid_llc_nr(&self, task: CacheTask, cpu: CpuId) -> bool {
        if self.groups.get_nr_threads(task) <= 1 {
            return true;
        }
        let running = task.group.map_or(0, |group| self.groups.group(group).nr_running_avg);
        match self.tuning.aggr_tolerance {
            100.. => false,
            // get_sched_cache_scale(1).
            tolerance => !fits_capacity(running * self.threads_per_core, tolerance * self.llc_size(cpu)),
        }
    }
}
