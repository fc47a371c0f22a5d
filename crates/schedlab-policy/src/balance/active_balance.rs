//! Active balancing: a running task is pushed to another CPU after pulling has failed repeatedly
//! (`need_active_balance`, `active_load_balance_cpu_stop`, kernel/sched/fair.c 5.2 to 7.2).
//!
//! If a periodic or newidle pass counts its imbalance in tasks (up to 5.11: in any unit), has moved none, and its
//! domain has failed more than cache_nice_tries + 2 times, the stopper of the busiest CPU has to push one task to the
//! pulling CPU. The stopper is not a task in this model: the pass requests a reschedule of that CPU, and the push
//! happens before its pick. A pass also requests the push immediately if it looked for a task that prefers the cache of
//! its CPU (7.2 and later; only such a task is pushed then), if a single task runs on a CPU whose capacity the
//! real-time class uses, or if it found a task too big for its CPU. From 7.2 on nothing is pushed away from a cache
//! that every task there prefers ([`crate::sched_cache`]). Not modelled: active balancing for asymmetric packing.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{CpuIdle, Env, Migrate};
use crate::core::types::Moves;
use crate::fair::class::FairClass;
use crate::Resched;

/// What a pass that moved nothing does about the busiest CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Push {
    /// Active balancing is not needed yet.
    NotNeeded,
    /// Another pass has already requested a push.
    Pending,
    /// The CPU is asked to push its running task.
    Asked,
    /// Affinity keeps its running task from moving, so the pass counts as balanced.
    Forbidden,
}

impl FairClass<'_> {
    /// `active_load_balance_cpu_stop`: pushes one task to the CPU that requested it. The running task has been put.
    pub fn active_load_balance_cpu_stop(&mut self, src: CpuId, dst: CpuId, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        let for_llc = std::mem::take(&mut self.core.rqs[src.index()].push_llc);
        let Some(level) = self.core.domains.common_level(dst, src) else { return moves };
        let Some(task) = self.fair.cfs_tasks(src).find(|task| self.may_push(*task, dst, for_llc)) else { return moves };
        let idle = CpuIdle::Idle;
        let env = Env { migrate: Migrate::Task, imbalance: 1, ..Env::new(dst, level, idle, now) };
        self.detach_task(&env, src, task, &mut moves);
        self.attach_tasks(&env, 0, &mut moves);
        self.core.domains.state_mut(dst, level).nr_balance_failed = 0;
        moves
    }

    /// The part of `can_migrate_task` that is left of it in active balancing. `for_llc`: LBF_ACTIVE_LB_LLC.
    fn may_push(&self, task: TaskId, dst: CpuId, for_llc: bool) -> bool {
        let wrong_dst = for_llc && !self.fair.sched_cache().is_some_and(|cache| cache.prefers_llc_of(task, dst));
        self.core.tasks[task.index()].allows(dst) && !wrong_dst
    }

    /// After a pass that moved nothing: requests a push from `src` if active balancing is needed.
    pub(super) fn ask_for_active_balance(&mut self, env: &Env, src: CpuId, moves: &mut Moves) -> Push {
        if !self.need_active_balance(env, src) {
            return Push::NotNeeded;
        }
        let curr = self.core.curr(src).or(self.fair.curr(src));
        if curr.is_none_or(|curr| !self.core.tasks[curr.index()].allows(env.this)) {
            return Push::Forbidden;
        }
        let rq = &mut self.core.rqs[src.index()];
        if rq.push_cpu.is_some() {
            return Push::Pending;
        }
        (rq.push_cpu, rq.push_llc) = (Some(env.this), env.migrate == Migrate::LlcTask);
        moves.ask(src, Resched::Full);
        Push::Asked
    }

    /// The pulling CPU is idle, and the single task runs on a CPU that has lost noticeably more of its capacity.
    fn runs_pressed(&self, env: &Env, src: CpuId, pct: u32) -> bool {
        env.idle != CpuIdle::Not
            && self.check_cpu_capacity(src, pct)
            && self.h_nr_runnable(src) == 1
            && self.capacity_of(src) * u64::from(pct) < self.capacity_of(env.dst) * 100
    }

    /// `need_active_balance`.
    fn need_active_balance(&self, env: &Env, src: CpuId) -> bool {
        if self.alb_break_llc(env, src) {
            return false;
        }
        let failed = self.core.domains.state(env.this, env.level).nr_balance_failed;
        let counts = self.core.rules.pushes_for_anything || env.migrate == Migrate::Task;
        let domain = self.core.domains.at(env.this, env.level);
        counts && failed > domain.cache_nice_tries + 2
            || self.runs_pressed(env, src, domain.imbalance_pct)
            || matches!(env.migrate, Migrate::Misfit | Migrate::LlcTask)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schedlab_model::{CpuMask, Topology, MSEC};

    use super::*;
    use crate::rt::RtPolicy;
    use crate::{KernelConfig, Sched, TaskAttr, Version, WakeKind};

    /// `busiest->curr` may be a task of any class.
    #[test]
    fn a_pinned_task_of_any_class_forbids_a_push() {
        for (rt, cpus, expected) in [
            (true, "0", Push::Forbidden),
            (true, "0-1", Push::Asked),
            (false, "0", Push::Forbidden),
            (false, "0-1", Push::Asked),
        ] {
            let config = KernelConfig::new(Version::find("7.2").unwrap(), 2, 250);
            let mut sched = Sched::new(config, Arc::new(Topology::regular(1, 1, 2, 1, true).unwrap()));
            let (src, dst) = (CpuId(0), CpuId(1));
            let policy = rt.then_some(RtPolicy { priority: 10, round_robin: false });
            for (rt, affinity) in [(policy, cpus), (None, "0-1")] {
                let affinity = CpuMask::from_list(affinity);
                let task = sched.add_task(&TaskAttr { cpu: src, rt, affinity, ..TaskAttr::default() });
                sched.activate(task, src, WakeKind::Fork, MSEC);
                if sched.curr(src).is_none() {
                    sched.pick_next_task(src, MSEC);
                }
            }
            let env = Env { migrate: Migrate::Misfit, ..Env::new(dst, 0, CpuIdle::Idle, 2 * MSEC) };
            let (core, fair) = (&mut sched.core, &mut sched.classes.fair);
            let push = fair.with(core).ask_for_active_balance(&env, src, &mut Moves::default());
            assert_eq!(push, expected, "{rt} {cpus}");
        }
    }
}
