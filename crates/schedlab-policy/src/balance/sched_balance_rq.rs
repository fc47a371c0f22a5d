//! One balancing pass over one domain (`sched_balance_rq`; `load_balance` up to 6.9).
//!
//! kernel/sched/fair.c 5.2 to 7.2, including the retries when affinity pins what should move. Left out: the lock
//! break every 32 tasks.

use schedlab_model::CpuId;

use super::active_balance::Push;
use super::{CpuIdle, Env, Migrate};
use crate::core::types::Moves;
use crate::fair::class::FairClass;

/// `MAX_PINNED_INTERVAL`, in ms.
const MAX_PINNED_INTERVAL: u64 = 512;

/// The outcome of a pass.
enum End {
    /// Tasks moved from `src`, or should have moved and could not.
    Unbalanced { moved: u32, src: CpuId },
    /// No imbalance, or none among the CPUs that are left after those with pinned tasks only (`out_balanced`).
    Balanced,
    /// Only pinned tasks, and no CPU is left to pull from (`out_all_pinned`).
    AllPinned,
    /// Among the CPUs that are left it is not this CPU that balances (`out_balanced`, and the walk ends).
    NotOurs,
}

impl FairClass<'_> {
    /// `sched_balance_rq` of `this` in its domain at `level`; returns the number of tasks moved and whether the walk
    /// continues upwards.
    pub(super) fn sched_balance_rq(
        &mut self,
        this: CpuId,
        level: usize,
        idle: CpuIdle,
        now: u64,
        moves: &mut Moves,
    ) -> (u32, bool) {
        let mut env = Env::new(this, level, idle, now);
        if !self.should_we_balance(&env) {
            self.note_balanced(&env);
            return (0, false);
        }
        moves.passes += 1;
        if idle == CpuIdle::Newly && self.nothing_to_pull(this, level) {
            moves.looked_at += self.core.domains.at(this, level).weight;
            return (0, true);
        }
        let end = self.run_pass(&mut env, moves);
        match end {
            End::Unbalanced { moved, src } => {
                self.note_unbalanced(&mut env, moved, src, moves);
                return (moved, true);
            }
            End::Balanced | End::NotOurs => self.note_balanced(&env),
            End::AllPinned => self.note_all_pinned(&env),
        }
        (0, !matches!(end, End::NotOurs))
    }

    /// Whether a newidle pass would change nothing: no CPU of the domain has a second task, and there is no failure
    /// count, outdated capacity or imbalance mark that it would reset. It replaces the full walk and is charged the
    /// same time.
    fn nothing_to_pull(&mut self, this: CpuId, level: usize) -> bool {
        if self.core.is_mixed()
            || self.core.asym.is_some()
            || self.fair.sched_cache().is_some_and(|cache| cache.has_preferences())
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

    /// Finds a source and moves tasks, and searches again (`redo`) while all tasks found there are pinned. The flags of
    /// the pass stay set between the searches, so a later search that finds no imbalance still has the flags of the
    /// earlier ones.
    fn run_pass(&mut self, env: &mut Env, moves: &mut Moves) -> End {
        loop {
            let Some(group) = self.sched_balance_find_src_group(env, moves) else { return End::Balanced };
            let Some(src) = self.sched_balance_find_src_rq(env, group) else { return End::Balanced };
            env.src = Some(src);
            env.pinned.all = true;
            if src == env.dst || self.core.rqs[src.index()].nr_running <= 1 {
                return End::Unbalanced { moved: 0, src };
            }
            let moved = self.pull_from(env, src, moves);
            if env.pinned.some && env.imbalance > 0 {
                if let Some(mark) = self.core.domains.parent_imbalance(env.this, env.level) {
                    *mark = true;
                }
            }
            if !env.pinned.all {
                return End::Unbalanced { moved, src };
            }
            env.exclude(src);
            if !self.others_left(env) {
                return End::AllPinned;
            }
            if !self.should_we_balance(env) {
                return End::NotOurs;
            }
        }
    }

    /// Moves tasks from one CPU to `env.dst`, and those that may not run there to the other CPUs of its group.
    fn pull_from(&mut self, env: &mut Env, src: CpuId, moves: &mut Moves) -> u32 {
        let loop_max = (self.fair.config.knobs.nr_migrate as usize).min(self.core.rqs[src.index()].nr_running as usize);
        let mut moved = self.move_tasks(env, src, loop_max, moves);
        while env.imbalance > 0 {
            let Some(other) = env.pinned.elsewhere.take() else { break };
            env.exclude(env.dst);
            env.dst = other;
            moved += self.move_tasks(env, src, loop_max, moves);
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

    /// After a pass that found an imbalance: a failure is counted, except in newidle passes, which are frequent, and
    /// the interval is reset to its minimum.
    fn note_unbalanced(&mut self, env: &mut Env, moved: u32, src: CpuId, moves: &mut Moves) {
        let weight = u64::from(self.core.domains.at(env.this, env.level).weight);
        let counts = env.idle != CpuIdle::Newly && !env.pinned.llc && !self.misfit_is_no_failure(env);
        let state = self.core.domains.state_mut(env.this, env.level);
        if moved > 0 {
            state.nr_balance_failed = 0;
        } else {
            state.nr_balance_failed = state.nr_balance_failed.saturating_add(u32::from(counts));
            let push = self.ask_for_active_balance(env, src, moves);
            match push {
                Push::Forbidden => {
                    env.pinned.all |= self.core.rules.forbidden_push_is_pinned;
                    return self.lengthen_interval(env);
                }
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

    /// After a pass that found no imbalance (`out_balanced`). The mark for the parent domain stays if tasks were pinned
    /// on a CPU that the pass looked at before.
    fn note_balanced(&mut self, env: &Env) {
        if !env.pinned.all {
            if let Some(mark) = self.core.domains.parent_imbalance(env.this, env.level) {
                *mark = false;
            }
        }
        self.note_all_pinned(env);
    }

    /// After a pass that could not move anything because of affinity (`out_all_pinned`).
    fn note_all_pinned(&mut self, env: &Env) {
        self.core.domains.state_mut(env.this, env.level).nr_balance_failed = 0;
        self.lengthen_interval(env);
    }

    /// Doubles the interval (`out_one_pinned`) up to its maximum, which is longer for pinned tasks. Newidle passes do
    /// not depend on it, and a task that is too big for its CPU does not show that the machine is busy (6.10 and
    /// later).
    fn lengthen_interval(&mut self, env: &Env) {
        if env.idle == CpuIdle::Newly || self.misfit_is_no_failure(env) {
            return;
        }
        let longest = 2 * u64::from(self.core.domains.at(env.this, env.level).weight);
        let state = self.core.domains.state_mut(env.this, env.level);
        if state.balance_interval < longest || (env.pinned.all && state.balance_interval < MAX_PINNED_INTERVAL) {
            state.balance_interval *= 2;
        }
    }

    /// A pass that searches for a task that is too big for its CPU does not count as failed.
    fn misfit_is_no_failure(&self, env: &Env) -> bool {
        self.core.rules.misfit_keeps_interval && env.migrate == Migrate::Misfit
    }

    /// `should_we_balance`: periodic balancing is done by the first idle CPU of the group, or else by its first CPU.
    /// CPUs that the pass no longer considers are not among the idle ones.
    fn should_we_balance(&self, env: &Env) -> bool {
        if !env.considers(env.dst) {
            return false;
        }
        if env.idle == CpuIdle::Newly {
            let rq = &self.core.rqs[env.dst.index()];
            return !self.core.rules.newidle_by_cost || (rq.nr_running == 0 && !rq.ttwu_pending);
        }
        let domain = self.core.domains.at(env.this, env.level);
        let group = &domain.groups[self.core.domains.local_group(env.this, env.level)].cpus;
        let mut with_busy_sibling = None;
        for &cpu in group.iter().filter(|cpu| env.considers(**cpu) && self.core.is_idle(**cpu)) {
            if !self.core.rules.prefer_idle_core || domain.is_smt() || self.core.idle.is_core_idle(cpu) {
                return cpu == env.dst;
            }
            with_busy_sibling = with_busy_sibling.or(Some(cpu));
        }
        with_busy_sibling.unwrap_or(group[0]) == env.dst
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schedlab_model::{CpuMask, TaskId, Topology, MSEC};

    use super::*;
    use crate::{KernelConfig, Sched, TaskAttr, Version, WakeKind};

    /// A machine of (nodes, cores, threads) with these tasks queued: CPU, affinity; the first of a CPU runs. Tasks that
    /// may use no other CPU are threads of the kernel, or not.
    fn with_tasks(row: &str, shape: [u32; 3], tasks: &[(u32, &str)], kthread: bool) -> Sched {
        let topology = Topology::regular(shape[0], 1, shape[1], shape[2], true).expect("a possible shape");
        let config = KernelConfig::new(Version::find(row).expect("a row"), topology.nr_cpus(), 250);
        let mut sched = Sched::new(config, Arc::new(topology));
        for (cpu, affinity) in tasks {
            let cpu = CpuId(*cpu);
            let affinity = CpuMask::from_list(affinity);
            let task = sched.add_task(&TaskAttr { cpu, affinity, kthread, ..TaskAttr::default() });
            sched.activate(task, cpu, WakeKind::Fork, 10 * MSEC);
            if sched.curr(cpu).is_none() {
                sched.pick_next_task(cpu, 10 * MSEC);
            }
        }
        sched
    }

    #[test]
    fn pinned_tasks_are_remembered_while_the_pass_searches_again() {
        // CPU 2 pulls in its node of CPUs 0 to 2, whose longest interval is 6 ms. The flag LBF_ALL_PINNED of the search
        // that found pinned tasks only stays set in the next one, which finds no imbalance.
        let (pinned, free, lone): (&[_], &[_], _) = (&[(0, "0"); 3], &[(0, "0-5"); 3], (1, "0-5"));
        let also_on_1: &[_] = &[(1, "1"); 3];
        for (name, tasks, idle, mark_before, moved, mark, interval) in [
            ("pinned, then no imbalance", [pinned, &[lone]].concat(), CpuIdle::Idle, false, 0, true, 12),
            ("the same, newly idle", [pinned, &[lone]].concat(), CpuIdle::Newly, false, 0, true, 6),
            ("pinned everywhere", [pinned, also_on_1].concat(), CpuIdle::Idle, false, 0, true, 12),
            ("pinned, then others", [pinned, &[(1, "0-5"); 3]].concat(), CpuIdle::Idle, false, 1, true, 3),
            ("free", [free, &[lone]].concat(), CpuIdle::Idle, false, 1, false, 3),
            ("no imbalance", vec![(0, "0"), lone], CpuIdle::Idle, true, 0, false, 6),
        ] {
            for row in ["5.10.262", "6.1.192", "6.12.107", "7.2.13"] {
                let mut sched = with_tasks(row, [2, 3, 1], &tasks, false);
                let (this, mut moves) = (CpuId(2), Moves::default());
                *sched.core.domains.parent_imbalance(this, 0).expect("a parent domain") = mark_before;
                let mut fair = sched.fair.clone();
                let (got, _) = fair.with(&mut sched.core).sched_balance_rq(this, 0, idle, 20 * MSEC, &mut moves);
                let marked = sched.core.domains.parent_imbalance(this, 0).map(|mark| *mark);
                let state = sched.core.domains.state(this, 0);
                assert_eq!((got, marked, state.balance_interval), (moved, Some(mark), interval), "{name}, {row}");
            }
        }
    }

    #[test]
    fn a_running_task_that_may_not_be_pushed_lengthens_the_interval() {
        // One hog on each thread of core 0: there is nothing to pull, and affinity forbids the push. Longest interval 8
        // ms.
        for (row, others_wait, interval) in
            [("5.10.262", false, 16), ("5.10.262", true, 16), ("6.1.192", false, 16), ("6.1.192", true, 8)]
        {
            let mut sched = with_tasks(row, [1, 2, 2], &[(0, "0"), (1, "1")], false);
            let (this, mut moves) = (CpuId(2), Moves::default());
            sched.core.domains.state_mut(this, 1).nr_balance_failed = 9;
            let mut fair = sched.fair.clone();
            let mut env = Env { migrate: Migrate::Task, ..Env::new(this, 1, CpuIdle::Idle, 20 * MSEC) };
            env.pinned.all = !others_wait;
            fair.with(&mut sched.core).note_unbalanced(&mut env, 0, CpuId(0), &mut moves);
            let state = sched.core.domains.state(this, 1);
            assert_eq!(
                (state.balance_interval, moves.resched.len()),
                (interval, 0),
                "{row}, others wait: {others_wait}"
            );
        }
    }

    #[test]
    fn per_cpu_kthreads_do_not_mark_the_parent_domain() {
        for (row, kthread, mark) in
            [("5.2.1", true, true), ("5.10.262", true, false), ("6.1.192", true, false), ("6.1.192", false, true)]
        {
            let mut sched = with_tasks(row, [2, 3, 1], &[(0, "0"); 3], kthread);
            let mut fair = sched.fair.clone();
            fair.with(&mut sched.core).sched_balance_rq(CpuId(2), 0, CpuIdle::Idle, 20 * MSEC, &mut Moves::default());
            let marked = sched.core.domains.parent_imbalance(CpuId(2), 0).map(|mark| *mark);
            assert_eq!(marked, Some(mark), "{row}, kernel threads: {kthread}");
        }
    }

    #[test]
    fn a_task_that_a_pass_leaves_is_considered_last_by_the_next() {
        let mut sched = with_tasks("6.12.107", [1, 2, 1], &[(0, "0-1"), (0, "0"), (0, "0-1"), (0, "0-1")], false);
        let before: Vec<TaskId> = sched.fair.cfs_tasks(CpuId(0)).collect();
        let mut fair = sched.fair.clone();
        let mut moves = Moves::default();
        fair.with(&mut sched.core).sched_balance_rq(CpuId(1), 0, CpuIdle::Newly, 20 * MSEC, &mut moves);
        let after: Vec<TaskId> = fair.cfs_tasks(CpuId(0)).collect();
        // The first runs, the second may use CPU 0 only, the third moves.
        assert_eq!(moves.moved.iter().map(|(task, _)| *task).collect::<Vec<_>>(), [before[2]]);
        assert_eq!(after, [before[3], before[0], before[1]]);
    }
}
