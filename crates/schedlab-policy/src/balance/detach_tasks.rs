//! Which tasks a balancing pass moves away from a CPU (`detach_tasks`, `can_migrate_task`, `task_hot`, `attach_tasks`,
//! kernel/sched/fair.c 5.2 to 7.2).
//!
//! Tasks are considered from the least recently run one on, at most min(nr_migrate, nr_running) of them. An idle CPU
//! leaves one task behind. A newidle pass moves at most one where the kernel is built with CONFIG_PREEMPTION. A task
//! stays if affinity forbids the move, if it is running, or if it is cache hot, unless the domain has failed more often
//! than cache_nice_tries. Cache hot is a task that started to run less than migration_cost ago, is not SCHED_IDLE and
//! would leave its core (5.10 and later); while the pulling CPU is busy, so is a next or last buddy of its queue. From
//! 7.2 on a task also stays for the sake of the cache that its process prefers ([`crate::sched_cache`]). With NUMA
//! balancing a task stays on the node of its memory, and moves there even if it is cache hot ([`crate::numa`]). A task
//! that stays is considered last by the next pass.

use schedlab_model::{CpuId, TaskId};

use super::sched_cache_lb::Degrades;
use super::{CpuIdle, Env, Migrate};
use crate::core::types::Moves;
use crate::decision::{Action, Decision, Function};
use crate::fair::class::FairClass;
use crate::features::Feature;
use crate::flags::{Dequeue, Enqueue, WakeFlags};
use crate::version::placement::{DetachLimit, GroupsBy};
use crate::{FairPolicy, Resched};

/// Why a task is not moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stays {
    Delayed,
    Ineligible,
    Throttled,
    Pinned,
    Running,
    HotBuddy,
    /// It ran this long ago.
    Hot(i64),
    TooSmall,
    /// The cache that its process prefers.
    OnItsCache(Degrades),
    /// Its memory is on the node of its CPU, or more of it than on the node of the pulling CPU.
    OnItsNode,
    /// It is not too big for its CPU.
    Fits,
    /// This is counted of its size.
    TooBig(u64),
}

impl Stays {
    fn rule(self) -> &'static str {
        match self {
            Stays::Delayed => "its dequeue is delayed",
            Stays::Ineligible => "it is not eligible, and others of its group are queued on the destination",
            Stays::Throttled => "its group is throttled",
            Stays::Pinned => "its affinity leaves out the destination",
            Stays::Running => "it is running",
            Stays::HotBuddy => "it is the next or last buddy of its queue",
            Stays::Hot(_) => "it is cache hot",
            Stays::TooSmall => "its load is below 16",
            Stays::OnItsCache(Degrades::WrongDst) => "it does not prefer the cache of the pulling CPU",
            Stays::OnItsCache(Degrades::Preference) => {
                "the cache that it prefers would be too idle without it or too busy with it"
            }
            Stays::OnItsNode => "its memory is on this node",
            Stays::Fits => "it is not too big for its CPU",
            Stays::TooBig(_) => "it is more than the imbalance",
        }
    }
}

impl FairClass<'_> {
    /// Moves tasks from `src` to `env.dst` until the imbalance is removed; returns their number.
    pub(super) fn move_tasks(&mut self, env: &mut Env, src: CpuId, loop_max: usize, moves: &mut Moves) -> u32 {
        let first = moves.moved.len();
        let asked_before = self.fair.need_resched(src);
        self.detach_tasks(env, src, loop_max, moves);
        let moved = moves.moved.len() - first;
        if moved > 0 {
            // Charging the running task may have ended its slice.
            let asked = self.fair.need_resched(src);
            moves.ask(src, if asked > asked_before { asked } else { Resched::No });
            self.attach_tasks(env, first, moves);
        }
        moved as u32
    }

    /// `detach_tasks`.
    fn detach_tasks(&mut self, env: &mut Env, src: CpuId, loop_max: usize, moves: &mut Moves) {
        if self.core.rqs[src.index()].nr_running <= 1 {
            env.pinned.all = false;
            return;
        }
        let mut candidates = std::mem::take(&mut self.core.candidates);
        candidates.clear();
        candidates.extend(self.fair.cfs_tasks(src).take(loop_max));
        for &task in &candidates {
            let keep_one = env.idle != CpuIdle::Not && self.core.rqs[src.index()].nr_running <= 1;
            if env.imbalance == 0 || keep_one {
                break;
            }
            let taken = self.can_migrate_task(env, src, task).and_then(|()| self.take_from_imbalance(env, src, task));
            if let Err(stays) = taken {
                self.explain_skip(env, src, task, stays);
                self.fair.list_move(src, task);
                continue;
            }
            self.detach_task(env, src, task, moves);
            if env.idle == CpuIdle::Newly && self.is_built_preemptible() {
                break;
            }
        }
        self.core.candidates = candidates;
    }

    /// CONFIG_PREEMPTION.
    fn is_built_preemptible(&self) -> bool {
        self.core.rules.preempt_dynamic || self.fair.config.preempt.is_preemptible()
    }

    /// `detach_task`.
    pub(super) fn detach_task(&mut self, env: &Env, src: CpuId, task: TaskId, moves: &mut Moves) {
        let clock_task = self.core.clock_task(src, env.now);
        self.dequeue_task(src, task, Dequeue { migrating: true, ..Dequeue::default() }, clock_task);
        self.set_task_cpu(task, env.dst, clock_task);
        self.fair.run_times().detached();
        moves.moved.push((task, src));
        if self.fair.is_recording() {
            self.explain_pull(env, src, task);
        }
    }

    #[cold]
    fn explain_pull(&mut self, env: &Env, src: CpuId, task: TaskId) {
        let rule = match (env.idle, env.migrate) {
            (_, Migrate::LlcTask) => "it prefers the cache of the pulling CPU",
            (_, Migrate::Misfit) => "it is too big for its CPU, and this one is bigger",
            (CpuIdle::Newly, _) => "newidle balance",
            (CpuIdle::Idle, Migrate::Task) => "an idle CPU balances: fewer tasks here",
            (CpuIdle::Idle, _) => "an idle CPU balances: less load here",
            (CpuIdle::Not, _) => "a busy CPU balances: less load here",
        };
        let left = i64::from(self.core.rqs[src.index()].nr_running);
        let compared = [("tasks left there", left), ("imbalance", i64::try_from(env.imbalance).unwrap_or(i64::MAX))];
        self.fair.record(Decision::outside(env.now, env.dst, Action::Pull(task, src), rule, None, compared));
    }

    /// Records why a task stays where it is.
    #[inline]
    fn explain_skip(&mut self, env: &Env, src: CpuId, task: TaskId, stays: Stays) {
        if self.fair.is_recording() {
            let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            let migration_cost = number(self.fair.config.knobs.migration_cost);
            let (compared, feature) = match stays {
                Stays::Hot(ago) => ([("last picked before", ago), ("migration cost", migration_cost)], None),
                Stays::TooBig(size) => ([("size counted", number(size)), ("imbalance", number(env.imbalance))], None),
                Stays::TooSmall => ([("", 0); 2], Some(Feature::LbMin)),
                Stays::HotBuddy => ([("", 0); 2], Some(Feature::CacheHotBuddy)),
                _ => ([("", 0); 2], None),
            };
            let skip = Decision::outside(env.now, env.dst, Action::Skip(task, src), stays.rule(), feature, compared);
            let by_size = matches!(stays, Stays::TooSmall | Stays::Fits | Stays::TooBig(_));
            let decided_by = if by_size { Function::DetachTasks } else { Function::Usual };
            self.fair.record(Decision { decided_by, ..skip });
        }
    }

    /// Subtracts the task from the imbalance, unless it is too small to move or too big for the remaining imbalance.
    fn take_from_imbalance(&mut self, env: &mut Env, src: CpuId, task: TaskId) -> Result<(), Stays> {
        if env.migrate == Migrate::Misfit {
            if self.task_fits_cpu(task, src) {
                return Err(Stays::Fits);
            }
            env.imbalance = 0;
            return Ok(());
        }
        let failed = self.core.domains.state(env.this, env.level).nr_balance_failed;
        let amount = match env.migrate {
            Migrate::Task | Migrate::Misfit | Migrate::LlcTask => 1,
            Migrate::Load => {
                let (jiffies, least) = (self.core.jiffies_shown, self.core.rules.groups_by == GroupsBy::Type);
                self.fair.task_h_load(task, jiffies).max(u64::from(least))
            }
            Migrate::Util => self.fair.task_util_est(task),
        };
        if env.migrate == Migrate::Load && amount < 16 && failed == 0 && self.fair.config.has(Feature::LbMin) {
            return Err(Stays::TooSmall);
        }
        let by_number = matches!(env.migrate, Migrate::Task | Migrate::LlcTask);
        let counted = if by_number { 0 } else { self.counted_size(env, amount, failed) };
        if counted > env.imbalance {
            return Err(Stays::TooBig(counted));
        }
        env.imbalance = env.imbalance.saturating_sub(amount);
        Ok(())
    }

    /// The size that is compared with the imbalance. It is less than the task's own, so that big tasks can move too.
    fn counted_size(&self, env: &Env, amount: u64, failed: u32) -> u64 {
        let tries = self.core.domains.at(env.this, env.level).cache_nice_tries;
        match self.core.rules.detach_limit {
            DetachLimit::Double => amount / 2,
            DetachLimit::DoubleUntilFailed | DetachLimit::LoadGrows if env.migrate == Migrate::Util => amount,
            DetachLimit::DoubleUntilFailed if failed > tries => 0,
            DetachLimit::DoubleUntilFailed => amount / 2,
            DetachLimit::LoadGrows | DetachLimit::Grows => amount >> failed.min(63),
        }
    }

    /// `can_migrate_task`.
    fn can_migrate_task(&mut self, env: &mut Env, src: CpuId, task: TaskId) -> Result<(), Stays> {
        if self.core.rules.refuses_delayed && env.migrate != Migrate::Load && self.fair.entity(task).sched_delayed {
            return Err(Stays::Delayed);
        }
        let failed = self.core.domains.state(env.this, env.level).nr_balance_failed;
        if self.core.rules.prefers_eligible && failed == 0 && self.fair.task_is_ineligible_on_dst_cpu(task, env.dst) {
            return Err(Stays::Ineligible);
        }
        let state = &self.core.tasks[task.index()];
        if self.fair.throttled_lb_pair(task, env.dst) {
            return Err(Stays::Throttled);
        }
        if self.core.rules.kthreads_are_no_obstacle && self.core.is_per_cpu_kthread(task) {
            return Err(Stays::Pinned);
        }
        if !state.allows(env.dst) {
            env.pinned.some = true;
            if env.idle != CpuIdle::Newly && env.pinned.elsewhere.is_none() {
                let group = self.core.domains.local_group(env.this, env.level);
                let cpus = &self.core.domains.at(env.this, env.level).groups[group].cpus;
                env.pinned.elsewhere = cpus.iter().copied().find(|cpu| env.considers(*cpu) && state.allows(*cpu));
            }
            return Err(Stays::Pinned);
        }
        env.pinned.all = false;
        if self.fair.curr(src) == Some(task) {
            return Err(Stays::Running);
        }
        let domain = self.core.domains.at(env.this, env.level);
        if failed > domain.cache_nice_tries {
            return Ok(());
        }
        let smt = domain.is_smt();
        let degrades = match domain.is_numa() {
            true => self.migrate_degrades_locality(task, src, env.dst, env.idle),
            false => None,
        };
        if let Some(degrades) = degrades {
            return if degrades { Err(Stays::OnItsNode) } else { Ok(()) };
        }
        match self.migrate_degrades_llc(env, src, task) {
            None => self.task_hot(env, smt, task).map_or(Ok(()), Err),
            Some(degrades) => {
                env.pinned.llc |= env.migrate != Migrate::LlcTask;
                Err(Stays::OnItsCache(degrades))
            }
        }
    }

    /// `task_hot`: why the task is hot, if it is.
    fn task_hot(&self, env: &Env, smt: bool, task: TaskId) -> Option<Stays> {
        let entity = self.fair.entity(task);
        if entity.policy == FairPolicy::Idle || (smt && !self.core.rules.hot_between_threads) {
            return None;
        }
        let busy_puller = self.core.rqs[env.dst.index()].nr_running > 0;
        if busy_puller && self.fair.config.has(Feature::CacheHotBuddy) && self.fair.is_hot_buddy(task) {
            return Some(Stays::HotBuddy);
        }
        let cost = self.fair.config.knobs.migration_cost as i64;
        let clock_task = self.core.clock_task(self.core.cpu_of(task), env.now);
        let ago = (clock_task as i64).wrapping_sub(entity.exec_start as i64);
        (ago < cost).then_some(Stays::Hot(ago))
    }

    /// `attach_tasks`: the task that was detached last is enqueued first.
    pub(super) fn attach_tasks(&mut self, env: &Env, first: usize, moves: &mut Moves) {
        for at in (first..moves.moved.len()).rev() {
            let (task, _) = moves.moved[at];
            self.attach_task(task, env.dst, env.idle, self.core.clock_task(env.dst, env.now), moves);
        }
    }

    /// `attach_task`.
    fn attach_task(&mut self, task: TaskId, cpu: CpuId, idle: CpuIdle, now: u64, moves: &mut Moves) {
        self.fair.enqueue_task(cpu, task, Enqueue { migrated: true, ..Enqueue::default() }, now);
        self.sync(cpu);
        // A CPU in newidle balancing is inside schedule() and picks next in any case.
        if idle != CpuIdle::Newly {
            let asked = self.wakeup_preempt(cpu, task, WakeFlags::default(), now);
            moves.ask(cpu, asked);
        }
    }
}

impl Moves {
    /// Records that a CPU is asked to reschedule.
    pub(crate) fn ask(&mut self, cpu: CpuId, resched: Resched) {
        if resched == Resched::No {
            return;
        }
        match self.resched.iter_mut().find(|(known, _)| *known == cpu) {
            Some((_, strongest)) => *strongest = resched.max(*strongest),
            None => self.resched.push((cpu, resched)),
        }
    }
}
