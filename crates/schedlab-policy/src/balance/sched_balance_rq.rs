//! One balancing pass over one domain (`sched_balance_rq`; `load_balance` up to 6.9).
//!
//! kernel/sched/fair.c 5.2 to 7.2, including the retries when affinity pins what should move. Left out: the lock
//! break every 32 tasks.

use schedlab_model::CpuId;

use super::active_balance::Push;
use super::detach_tasks::Pinned;
use super::{CpuIdle, Env};
use crate::fair::class::FairClass;
use crate::sched::types::Moves;

/// `MAX_PINNED_INTERVAL`, in ms.
const MAX_PINNED_INTERVAL: u64 = 512;

/// The outcome of a pass.
enum End {
    /// Tasks moved from `src`, or should have moved and could not.
    Unbalanced { moved: u32, src: CpuId },
    /// Nothing to do.
    Balanced { pinned: bool },
}

impl FairClass<'_> {
    /// `sched_balance_rq` of `this` in its domain at `level`; returns the number of tasks moved and whether the walk continues upwards.
    pub(super) fn sched_balance_rq(
        &mut self,
        this: CpuId,
        level: usize,
        idle: CpuIdle,
        now: u64,
        moves: &mut Moves,
    ) -> (u32, bool) {
        if !self.should_we_balance(this, level, idle) {
            self.note_balanced(this, level, idle, false);
            return (0, false);
        }
        moves.passes += 1;
        if idle == CpuIdle::Newly && self.nothing_to_pull(this, level) {
            moves.looked_at += self.core.domains.at(this, level).weight;
            return (0, true);
        }
        let mut env = Env::new(this, level, idle, now);
        match self.run_pass(&mut env, moves) {
            End::Unbalanced { moved, src } => {
                self.note_unbalanced(&env, moved, src, moves);
                (moved, true)
            }
            End::Balanced { pinned } => {
                self.note_balanced(this, level, idle, pinned);
                (0, true)
            }
        }
    }

    /// Whether a newidle pass would change nothing: no CPU of the domain has a second task, and there is no failure count,
    /// outdated capacity or imbalance mark that it would reset. It replaces the full walk and is charged the same time.
    fn nothing_to_pull(&mut self, this: CpuId, level: usize) -> bool {
        if self.core.is_mixed()
            || self.core.asym.is_some()
            || self.core.domains.at(this, level).overloaded > 0
            || self.core.domains.state(this, level).nr_balance_failed > 0
        {
            return false;
        }
        if self.core.domains.parent_imbalance(this, level).is_some_and(|mark| *mark) {
            return false;
        }
        if level + 1 == self.core.domains.depth(this) {
            self.core.domains.set_overload(false);
        }
        true
    }

    /// The pass alone, without what is counted and decided after it.
    pub(crate) fn pull(&mut self, env: &mut Env, moves: &mut Moves) {
        self.run_pass(env, moves);
    }

    /// Finds a source and moves tasks, and searches again while all tasks found there are pinned.
    fn run_pass(&mut self, env: &mut Env, moves: &mut Moves) -> End {
        loop {
            let Some(group) = self.sched_balance_find_src_group(env, moves) else {
                return End::Balanced { pinned: false };
            };
            let Some(src) = self.sched_balance_find_src_rq(env, group) else { return End::Balanced { pinned: false } };
            env.src = Some(src);
            if src == env.dst || self.core.rqs[src.index()].nr_running <= 1 {
                return End::Unbalanced { moved: 0, src };
            }
            let mut pinned = Pinned { all: true, ..Pinned::default() };
            let moved = self.pull_from(env, src, &mut pinned, moves);
            if pinned.some && env.imbalance > 0 {
                if let Some(mark) = self.core.domains.parent_imbalance(env.this, env.level) {
                    *mark = true;
                }
            }
            if !pinned.all {
                return End::Unbalanced { moved, src };
            }
            env.exclude(src);
            if !self.others_left(env) {
                return End::Balanced { pinned: true };
            }
        }
    }

    /// Moves tasks from one CPU to `env.dst`, and those that may not run there to the other CPUs of its group.
    fn pull_from(&mut self, env: &mut Env, src: CpuId, pinned: &mut Pinned, moves: &mut Moves) -> u32 {
        let loop_max = (self.fair.config.knobs.nr_migrate as usize).min(self.core.rqs[src.index()].nr_running as usize);
        let mut moved = self.move_tasks(env, src, loop_max, pinned, moves);
        while env.imbalance > 0 {
            let Some(other) = pinned.elsewhere.take() else { break };
            env.exclude(env.dst);
            env.dst = other;
            moved += self.move_tasks(env, src, loop_max, pinned, moves);
        }
        moved
    }

    /// Whether a CPU outside the destination's group is still considered.
    fn others_left(&self, env: &Env) -> bool {
        let Some(excluded) = &env.excluded else { return true };
        let domain = self.core.domains.at(env.this, env.level);
        let local = &domain.groups[self.core.domains.local_group(env.this, env.level)].mask;
        !domain.span.without(excluded).without(local).is_empty()
    }

    /// After a pass that found an imbalance: a failure is counted, except in newidle passes, which are frequent, and the
    /// interval is reset to its minimum.
    fn note_unbalanced(&mut self, env: &Env, moved: u32, src: CpuId, moves: &mut Moves) {
        let weight = u64::from(self.core.domains.at(env.this, env.level).weight);
        let state = self.core.domains.state_mut(env.this, env.level);
        if moved > 0 {
            state.nr_balance_failed = 0;
        } else {
            let counts = env.idle != CpuIdle::Newly && !self.core.rules.misfit_is_no_failure(env.migrate);
            state.nr_balance_failed = state.nr_balance_failed.saturating_add(u32::from(counts));
            let push = self.ask_for_active_balance(env, src, moves);
            match push {
                Push::Forbidden if self.core.rules.misfit_is_no_failure(env.migrate) => return,
                Push::Forbidden => return self.lengthen_interval(env.this, env.level, env.idle, false),
                Push::Pending | Push::Asked if self.core.rules.pushes_for_anything => {
                    let tries = self.core.domains.at(env.this, env.level).cache_nice_tries;
                    self.core.domains.state_mut(env.this, env.level).nr_balance_failed = tries + 1;
                }
                Push::NotNeeded | Push::Pending | Push::Asked => {}
            }
            if push == Push::Asked && self.core.rules.pushes_for_anything {
                let state = self.core.domains.state_mut(env.this, env.level);
                if state.balance_interval < 2 * weight {
                    state.balance_interval *= 2;
                }
                return;
            }
        }
        self.core.domains.state_mut(env.this, env.level).balance_interval = weight;
    }

    /// After a pass that found no imbalance, or only pinned tasks.
    fn note_balanced(&mut self, this: CpuId, level: usize, idle: CpuIdle, pinned: bool) {
        if !pinned {
            if let Some(mark) = self.core.domains.parent_imbalance(this, level) {
                *mark = false;
            }
        }
        self.core.domains.state_mut(this, level).nr_balance_failed = 0;
        self.lengthen_interval(this, level, idle, pinned);
    }

    /// Doubles the interval up to its maximum, except after newidle passes, which do not depend on it.
    fn lengthen_interval(&mut self, this: CpuId, level: usize, idle: CpuIdle, pinned: bool) {
        let longest = 2 * u64::from(self.core.domains.at(this, level).weight);
        let state = self.core.domains.state_mut(this, level);
        let may_grow = state.balance_interval < longest || (pinned && state.balance_interval < MAX_PINNED_INTERVAL);
        if idle != CpuIdle::Newly && may_grow {
            state.balance_interval *= 2;
        }
    }

    /// `should_we_balance`: periodic balancing is done by the first idle CPU of the group, or else by its first CPU.
    fn should_we_balance(&self, this: CpuId, level: usize, idle: CpuIdle) -> bool {
        if idle == CpuIdle::Newly {
            let rq = &self.core.rqs[this.index()];
            return !self.core.rules.newidle_by_cost || (rq.nr_running == 0 && !rq.ttwu_pending);
        }
        let domain = self.core.domains.at(this, level);
        let group = &domain.groups[self.core.domains.local_group(this, level)].cpus;
        let mut with_busy_sibling = None;
        for &cpu in group.iter().filter(|cpu| self.core.is_idle(**cpu)) {
            if !self.core.rules.prefer_idle_core || domain.is_smt() || self.core.idle.is_core_idle(cpu) {
                return cpu == this;
            }
            with_busy_sibling = with_busy_sibling.or(Some(cpu));
        }
        with_busy_sibling.unwrap_or(group[0]) == this
    }
}
