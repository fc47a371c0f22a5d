//! Balancing between caches for the sake of preferences (`llc_balance`, `record_sg_llc_stats`, `migrate_degrades_llc`,
//! `alb_break_llc`).
//!
//! A group is a source if tasks in it prefer the cache of the pulling CPU (`group_llc_balance`); then one of these
//! moves (`migrate_llc_task`), the running one if no other can. Any other move away from a task's preferred cache is
//! avoided. Both hold until cache_nice_tries + 1 passes of the domain have failed.

use schedlab_model::{CpuId, TaskId};

use crate::balance::sg_lb_stats::{GroupStats, GroupType};
use crate::balance::{CpuIdle, Env, Migrate};
use crate::core::domains::Group;
use crate::fair::class::FairClass;
use crate::sched_cache::can_migrate::LlcMig;

/// Why the preferences of a process keep a task where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Degrades {
    /// The pass looks for tasks that prefer the destination, and it does not (`migrate_llc_task_wrong_dst`).
    WrongDst,
    /// Its preferred cache would be left too idle, or made too busy.
    Preference,
}

impl FairClass<'_> {
    /// Completes the statistics of a group by what its tasks prefer (the parts of `update_sg_lb_stats` and
    /// `group_classify` that belong to CONFIG_SCHED_CACHE), and records its use.
    #[inline]
    pub(crate) fn update_sg_llc_stats(&mut self, env: &Env, group: usize, stats: &mut GroupStats) {
        if self.fair.sched_cache().is_some() {
            self.count_preferences(env, group, stats);
        }
    }

    #[inline(never)]
    fn count_preferences(&mut self, env: &Env, index: usize, stats: &mut GroupStats) {
        let domain = self.core.domains.at(env.this, env.level);
        let failed = self.core.domains.state(env.this, env.level).nr_balance_failed;
        let (local, group) = (index == self.core.domains.local_group(env.this, env.level), &domain.groups[index]);
        let above_cache =
            env.level.checked_sub(1).is_some_and(|below| self.core.domains.at(env.this, below).shares_llc());
        let Some(cache) = self.fair.sched_cache_mut().filter(|cache| cache.active) else { return };
        if domain.shares_llc() {
            return;
        }
        stats.nr_pref_dst_llc =
            cache.nr_pref_dst_llc(group.cpus.iter().copied().filter(|cpu| env.considers(*cpu)), env.dst);
        let misfits = domain.asym && stats.misfit_load > 0;
        let tags = !local && !misfits && failed <= domain.cache_nice_tries && stats.nr_pref_dst_llc > 0;
        if tags
            && stats.kind < GroupType::LlcBalance
            && cache.can_migrate_llc(first(group), env.dst, 0, true) == LlcMig::Llc
        {
            stats.kind = GroupType::LlcBalance;
        }
        if above_cache && env.idle != CpuIdle::Newly {
            cache.set_llc_stats(first(group), stats.util, stats.capacity);
        }
    }

    /// `migrate_degrades_llc`.
    #[inline]
    pub(crate) fn migrate_degrades_llc(&mut self, env: &Env, src: CpuId, task: TaskId) -> Option<Degrades> {
        self.fair.sched_cache().filter(|cache| cache.active)?;
        let failed = self.core.domains.state(env.this, env.level).nr_balance_failed;
        let domain = self.core.domains.at(env.this, env.level);
        if failed > domain.cache_nice_tries {
            return None;
        }
        // task_misfits_asym_cpu.
        let misfits = domain.asym && !self.task_fits_cpu(task, env.dst) && self.task_fits_cpu(task, src);
        let util = u64::from(self.fair.entity(task).avg.util_avg);
        let cache = self.fair.sched_cache_mut()?;
        if env.migrate == Migrate::LlcTask && !cache.prefers_llc_of(task, env.dst) {
            return Some(Degrades::WrongDst);
        }
        let forbidden = misfits || cache.can_migrate_llc_task(src, env.dst, task, util) == LlcMig::Forbid;
        forbidden.then_some(Degrades::Preference)
    }

    /// `alb_break_llc`: every runnable task of the source prefers to stay there, so that none is pushed away, unless
    /// there are several and the use of the caches permits it.
    pub(crate) fn alb_break_llc(&self, env: &Env, src: CpuId) -> bool {
        let Some(cache) = self.fair.sched_cache().filter(|cache| cache.active) else { return false };
        if cache.share_cache(src, env.dst) || env.migrate == Migrate::Misfit {
            return false;
        }
        let mut runnable = self.fair.cfs_tasks(src).filter(|task| !self.fair.entity(*task).sched_delayed).peekable();
        if runnable.peek().is_none() || !runnable.all(|task| cache.prefers_llc_of(task, src)) {
            return false;
        }
        if self.core.rqs[src.index()].nr_running <= 1 {
            return true;
        }
        let curr = self.fair.curr(src);
        let util = curr.map_or(0, |curr| u64::from(self.fair.entity(curr).avg.util_avg));
        let asym = self.core.domains.at(env.this, env.level).asym;
        let misfits =
            curr.is_some_and(|curr| asym && !self.task_fits_cpu(curr, env.dst) && self.task_fits_cpu(curr, src));
        misfits || cache.can_migrate_llc(src, env.dst, util, false) == LlcMig::Forbid
    }
}

fn first(group: &Group) -> CpuId {
    group.cpus[0]
}
