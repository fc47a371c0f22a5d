//! Which cache a task prefers, and whether it may leave it (`can_migrate_llc_task`).

use schedlab_model::{CpuId, TaskId};

use super::can_migrate::LlcMig;
use super::SchedCache;

impl SchedCache {
    /// Whether any queued task prefers a cache.
    pub fn has_preferences(&self) -> bool {
        self.active && self.preferring > 0
    }

    /// Whether the task prefers the CPU's cache.
    pub fn prefers_llc_of(&self, task: TaskId, cpu: CpuId) -> bool {
        self.groups.task(task).preferred_llc == Some(self.llc_of[cpu.index()])
    }

    /// Whether two CPUs share a last-level cache.
    pub fn share_cache(&self, a: CpuId, b: CpuId) -> bool {
        self.llc_of[a.index()] == self.llc_of[b.index()]
    }

    /// `nr_pref_dst_llc`: queued tasks on other caches' CPUs that prefer the cache of `dst`.
    pub fn nr_pref_dst_llc(&self, cpus: impl Iterator<Item = CpuId>, dst: CpuId) -> u32 {
        let llc = self.llc_of[dst.index()];
        cpus.filter(|cpu| !self.share_cache(*cpu, dst)).map(|cpu| self.llc_count(cpu, llc)).sum()
    }

    /// `can_migrate_llc_task`.
    pub fn can_migrate_llc_task(&mut self, src: CpuId, dst: CpuId, task: TaskId, util: u64) -> LlcMig {
        let state = self.groups.task(task);
        let preferred = state.group.and_then(|group| self.groups.group(group).cpu);
        let (Some(group), Some(cpu)) = (state.group, preferred) else { return LlcMig::Unrestricted };
        if self.share_cache(src, dst) {
            return LlcMig::Unrestricted;
        }
        if self.invalid_llc_nr(state, dst) {
            self.groups.group_mut(group).cpu = None;
            return LlcMig::Unrestricted;
        }
        let to_pref = self.share_cache(dst, cpu);
        if !to_pref && !self.share_cache(src, cpu) {
            return LlcMig::Unrestricted;
        }
        self.can_migrate_llc(src, dst, util, to_pref)
    }
}
