//! Cache-aware balancing, called by the class: which tasks share memory, and the work of a task before it returns to
//! user mode ([`crate::sched_cache`]). Every call does nothing where it is not active.

use schedlab_model::{CpuId, Nanos, TaskId, Topology};

use super::fair_sched_class::Fair;
use crate::sched_cache::{ProcessShown, SchedCache};

impl Fair {
    /// The state on this machine, from now on.
    pub(crate) fn init_sched_cache(&mut self, topology: &Topology) {
        self.queues.sched_cache = SchedCache::new(&self.config, topology);
    }

    /// The state, where there is one.
    #[inline]
    pub(crate) fn sched_cache(&self) -> Option<&SchedCache> {
        self.queues.sched_cache.as_deref()
    }

    /// The same.
    #[inline]
    pub(crate) fn sched_cache_mut(&mut self) -> Option<&mut SchedCache> {
        self.queues.sched_cache.as_deref_mut()
    }

    /// Queued tasks of the CPU that prefer the cache of `dst`.
    pub(crate) fn llc_count(&self, cpu: CpuId, dst: CpuId) -> u32 {
        self.sched_cache().map_or(0, |cache| cache.llc_count(cpu, cache.llc_id(dst)))
    }

    /// Whether it is active, or may be again when CPUs come back.
    #[inline]
    #[must_use]
    pub fn has_sched_cache(&self) -> bool {
        self.sched_cache().is_some()
    }

    /// The task has the address space of this number from now on (`copy_mm`, `exec_mmap`). Tasks with equal numbers are
    /// threads of one process, except children of vfork.
    pub fn set_mm(&mut self, task: TaskId, mm: u64, vforked: bool, now: Nanos) {
        if let Some(cache) = self.sched_cache_mut() {
            cache.set_mm(task, mm, vforked, now);
        }
    }

    /// A new task, which has no address space yet.
    pub(super) fn init_sched_mm(&mut self, task: TaskId) {
        if let Some(cache) = self.sched_cache_mut() {
            cache.init_sched_mm(task);
        }
    }

    /// `exit_mm`.
    pub fn exit_mm(&mut self, task: TaskId) {
        if let Some(cache) = self.sched_cache_mut() {
            cache.sched_cache_exit_mm(task);
        }
    }

    /// Adopts what a trace shows of the task's process, and then counts the charge of `ran`, which the charge itself no
    /// longer does from then on. Whether process and task preferred the caches that they should; `None` if that could
    /// not be known, or did not change since the task was last shown.
    pub(crate) fn follow_process(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        shown: &ProcessShown,
        ran: Nanos,
    ) -> Option<bool> {
        let (queued, now) = (self.entity(task).on_rq, self.updated_to(cpu));
        self.sched_cache_mut()?.follow(cpu, task, shown, ran, queued, now)
    }

    /// `task_cache_work` where a trace shows it.
    pub(crate) fn follow_cache_work(&mut self, cpu: CpuId, task: TaskId) {
        let (nr_cpus, now) = (self.config.nr_cpus as u32, self.updated_to(cpu));
        let curr: Vec<Option<TaskId>> = (0..nr_cpus).map(|cpu| self.curr(CpuId(cpu))).collect();
        if let Some(cache) = self.sched_cache_mut() {
            cache.follow_work(cpu, task, |cpu| curr.get(cpu.index()).copied().flatten(), now);
        }
    }

    /// Utilisation and capacity of each cache as the last pass compared them (`sched_domain_shared`).
    pub(crate) fn llc_stats(&self) -> Vec<(u64, u64)> {
        self.sched_cache().map_or(Vec::new(), SchedCache::llc_stats)
    }

    /// Adopts those of a pass.
    pub(crate) fn set_llc_stats(&mut self, stats: &[(u64, u64)]) {
        if let Some(cache) = self.sched_cache_mut() {
            cache.set_all_llc_stats(stats);
        }
    }

    /// Queued tasks of the CPU by the cache that they prefer (`sd->llc_counts`).
    #[must_use]
    pub fn llc_counts(&self, cpu: CpuId) -> Vec<u32> {
        self.sched_cache().map_or(Vec::new(), |cache| cache.llc_counts(cpu).to_vec())
    }

    /// The same, counted anew.
    #[must_use]
    pub fn recomputed_llc_counts(&self, cpu: CpuId) -> Vec<u32> {
        let Some(cache) = self.sched_cache() else { return Vec::new() };
        let mut counts = vec![0; cache.llc_counts(cpu).len()];
        for preferred in self.cfs_tasks(cpu).filter_map(|task| cache.preferred_llc(task)) {
            counts[cache.llc_id(preferred) as usize] += 1;
        }
        counts
    }

    /// Whether the task has to call [`Sched::task_cache_work`](crate::Sched::task_cache_work) before it runs in user
    /// mode again.
    #[inline]
    #[must_use]
    pub fn has_cache_work(&self, task: TaskId) -> bool {
        self.sched_cache().is_some_and(|cache| cache.has_work(task))
    }

    /// `task_cache_work` by the current task of the CPU, about to return to user mode. `curr`: the current task of each
    /// CPU, unless it exits.
    pub(crate) fn task_cache_work(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        curr: impl Fn(CpuId) -> Option<TaskId>,
        now: Nanos,
    ) {
        if let Some(cache) = self.sched_cache_mut() {
            cache.task_cache_work(cpu, task, curr, now);
        }
    }

    /// The cache that the task prefers, by one of its CPUs (`preferred_llc`).
    #[must_use]
    pub fn preferred_llc(&self, task: TaskId) -> Option<CpuId> {
        self.sched_cache()?.preferred_llc(task)
    }
}
