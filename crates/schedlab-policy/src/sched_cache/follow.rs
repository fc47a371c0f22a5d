//! The state of a recorded kernel is adopted where its trace shows it, and what was computed is compared. Nothing here is a rule of
//! the scheduler.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{LlcId, SchedCache};
use crate::fair::ProcessShown;

impl SchedCache {
    /// Adopts what is shown of a task's process, and counts its charge. Whether the preferences agreed; `None` where the process
    /// was not known or nothing is preferred.
    pub fn follow(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        shown: &ProcessShown,
        (ran, queued): (Nanos, bool),
        now: Nanos,
    ) -> Option<bool> {
        (self.follows_trace, self.ticks.shown) = (true, shown.jiffies);
        let known = self.is_in(task, shown.mm);
        let preferred = shown.preferred_llc.filter(|llc| (*llc as usize) < self.llcs.len());
        let shown_cpu = shown.cpu.filter(|cpu| cpu.index() < self.llc_of.len());
        let theirs = (shown_cpu.map(|cpu| self.llc_id(cpu)), preferred);
        let ours = (self.process_prefers(task), self.groups.task(task).preferred_llc);
        if shown.mm == 0 {
            self.sched_cache_exit_mm(task);
        } else if !known {
            self.set_mm(task, shown.mm, false, now);
        }
        if queued {
            self.account_llc_dequeue(cpu, task);
        }
        self.groups.task_mut(task).preferred_llc = preferred;
        if queued {
            self.account_llc_enqueue(cpu, task);
        }
        if let Some(group) = self.groups.task(task).group {
            let process = self.groups.group_mut(group);
            process.nr_threads = shown.nr_threads;
            process.cpu = shown_cpu;
        }
        self.account_mm_sched(cpu, task, ran, queued, now);
        let prefers = theirs != (None, None) || ours != (None, None);
        (known && prefers).then_some(ours == theirs)
    }

    /// The cache that the task's process prefers.
    fn process_prefers(&self, task: TaskId) -> Option<LlcId> {
        let group = self.groups.task(task).group?;
        self.groups.group(group).cpu.map(|cpu| self.llc_id(cpu))
    }

    /// The use of each cache.
    pub fn llc_stats(&self) -> Vec<(u64, u64)> {
        self.llcs.iter().map(|llc| (llc.util_avg, llc.capacity)).collect()
    }

    pub fn set_all_llc_stats(&mut self, stats: &[(u64, u64)]) {
        for (llc, stats) in self.llcs.iter_mut().zip(stats) {
            (llc.util_avg, llc.capacity) = *stats;
        }
    }
}
