//! The state of a recorded kernel is adopted where its trace shows it, and what was computed is compared. Nothing here
//! is a rule of the scheduler.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::epoch::CpuEpoch;
use super::process_shown::ProcessShown;
use super::{LlcId, SchedCache};
use crate::jiffies::{Jiffies, UPTIME};

impl SchedCache {
    /// Adopts what is shown of a task's process, and counts its charge. Whether the preferences agreed; `None` where
    /// the process was not known, or neither kernel nor row has changed a preference since the task was last shown.
    pub fn follow(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        shown: &ProcessShown,
        ran: Nanos,
        queued: bool,
        now: Nanos,
    ) -> Option<bool> {
        self.follow_ticks(shown.jiffies);
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
        let mut after = preferred;
        if let Some(group) = self.groups.task(task).group {
            let process = self.groups.group_mut(group);
            process.nr_threads = shown.nr_threads;
            process.cpu = shown_cpu;
            self.account_group(cpu, task, group, ran, now);
            after = self.get_pref_llc(group);
        }
        // The task was queued when it was charged, although it may have left by now.
        self.set_preferred_llc(cpu, task, after, queued);
        let before = std::mem::replace(&mut self.groups.task_mut(task).shown, theirs);
        (known && (theirs != before || ours != before)).then_some(ours == theirs)
    }

    /// The tick count of a recorded kernel, which begins with INITIAL_JIFFIES, when the epochs of its CPUs began too.
    fn follow_ticks(&mut self, jiffies: Option<Jiffies>) {
        if !std::mem::replace(&mut self.follows_trace, true) && jiffies.is_some() {
            let initial = (1 << 32) - UPTIME / self.ticks.nsec;
            self.cpus.fill(CpuEpoch::at(initial));
        }
        self.ticks.shown = jiffies;
    }

    /// `task_cache_work` where a trace shows it. The tick that asked for it began an epoch of the process.
    pub fn follow_work(&mut self, cpu: CpuId, task: TaskId, curr: impl Fn(CpuId) -> Option<TaskId>, now: Nanos) {
        self.task_tick_cache(cpu, task);
        self.task_cache_work(cpu, task, curr, now);
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
