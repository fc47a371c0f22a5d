//! The fair class in terms of CPUs and tasks (`fair_sched_class`): the interface on top of the queues.

use std::sync::Arc;

use super::cfs_rq::CfsRq;
use super::decision_log::DecisionLog;
use super::entity::{Entity, EntityId};
use super::group_load_log::GroupLoadLog;
use super::queues::Queues;
use super::restore::Restore;
use super::task_group::TaskGroup;
use super::view::View;
use crate::class::ClassId;
use crate::config::KernelConfig;
use crate::decision::Decision;
use crate::features::Feature;
use crate::flags::{Dequeue, Enqueue};
use crate::group_id::GroupId;
use crate::pelt::clock::PeltClock;
use crate::pelt::series::CAPACITY_SCALE;
use crate::run_times::RunTimes;
use crate::{Resched, TaskAttr};
use schedlab_model::{CpuId, Nanos, TaskId, Ties};

/// The fair class of one kernel: every task and one queue per CPU.
///
/// Resched requests are level-triggered: a queue holds the requests of all functions since its last pick
/// ([`Fair::need_resched`]), and functions that return [`Resched`] return that state.
#[derive(Clone, Debug)]
pub struct Fair {
    /// The kernel it belongs to.
    pub config: Arc<KernelConfig>,
    /// Its place among the classes of its scheduler.
    pub(super) class: ClassId,
    pub(super) queues: Queues,
}

/// The state as a whole.
impl Fair {
    /// Empty queues for every CPU of the kernel.
    #[must_use]
    pub fn new(config: KernelConfig) -> Self {
        let config = Arc::new(config);
        Fair { class: ClassId::default(), queues: Queues::new(config.clone()), config }
    }

    /// The state to be read.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        self.queues.view()
    }

    /// The state to be overwritten with a recorded one.
    pub fn restore(&mut self) -> Restore<'_> {
        Restore { arena: &mut self.queues.arena, config: &self.config }
    }

    /// The decisions recorded so far.
    #[must_use]
    pub fn log(&self) -> &DecisionLog {
        &self.queues.log
    }

    /// The same, to be switched on or drained.
    pub fn log_mut(&mut self) -> &mut DecisionLog {
        &mut self.queues.log
    }

    /// The accesses to the sums of task groups, to be switched on or drained.
    #[inline]
    pub fn group_loads(&mut self) -> &mut GroupLoadLog {
        &mut self.queues.arena.group_loads
    }

    /// The run times that `update_curr` has accounted.
    pub(crate) fn run_times(&mut self) -> &mut RunTimes {
        &mut self.queues.run_times
    }

    /// Whether decisions are recorded.
    #[inline]
    pub(crate) fn is_recording(&self) -> bool {
        self.queues.is_recording()
    }

    /// Appends a decision, and the CPU's queue as it stands if that is asked for too.
    #[cold]
    pub(crate) fn record(&mut self, decision: Decision) {
        self.queues.record(decision);
    }

    /// A task's entity.
    #[inline]
    #[must_use]
    pub fn entity(&self, task: TaskId) -> &Entity {
        &self.queues.arena.entities[EntityId::of(task)]
    }

    /// A CPU's queue.
    #[inline]
    #[must_use]
    pub fn rq(&self, cpu: CpuId) -> &CfsRq {
        &self.queues.arena.rqs[cpu.index()]
    }

    /// The running task of a CPU; after it blocked, until the next pick, still that task.
    #[inline]
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.queues.arena.leaf(cpu.index()).task()
    }

    /// The request to reschedule the CPU since its last pick.
    #[inline]
    #[must_use]
    pub fn need_resched(&self, cpu: CpuId) -> Resched {
        self.rq(cpu).resched
    }

    /// Clears that request (`clear_tsk_need_resched`); [`Fair::pick_next_task`] does so itself.
    #[inline]
    pub fn clear_resched(&mut self, cpu: CpuId) {
        self.queues.arena.rqs[cpu.index()].resched = Resched::No;
    }
}

/// Creation, exit and migration of tasks.
impl Fair {
    /// A task that exists and is not queued (`__sched_fork`): no lag, vruntime 0 relative to its CPU's queue.
    pub fn add_task(&mut self, attr: &TaskAttr) -> TaskId {
        let task = self.queues.arena.entities.next_id();
        self.add_task_as(task, attr);
        task
    }

    /// The same with an id that the caller chooses: one in use before, or the next.
    pub(crate) fn add_task_as(&mut self, task: TaskId, attr: &TaskAttr) {
        self.queues.arena.add_task(task, attr, &self.config);
        self.init_sched_mm(task);
    }

    /// The task is freed (`free_task`): it must be neither queued nor current. Its id is given to a later task.
    pub fn release_task(&mut self, task: TaskId) {
        if !self.entity(task).on_rq {
            self.queues.arena.entities.release(task);
        }
    }

    /// Number of task ids given out so far: the most tasks that existed at once.
    #[must_use]
    pub fn nr_tasks(&self) -> usize {
        self.queues.arena.entities.nr_tasks()
    }

    /// `task_dead_fair`: the exiting task's load leaves with it.
    pub fn task_dead(&mut self, task: TaskId) {
        self.queues.arena.remove_entity_load_avg(&self.config.rules.pelt, EntityId::of(task));
    }

    /// `migrate_task_rq_fair` and the change of CPU: the task, not queued, belongs to `to` from now on. The vruntime of
    /// a CFS sleeper becomes relative; that of a task dequeued to be moved, or never run, already is. Lag moves along.
    pub fn migrate_task_rq(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        let (id, arena) = (EntityId::of(task), &mut self.queues.arena);
        arena.migrate_load_avg(&self.config.rules.pelt, id, None);
        if !self.config.is_eevdf() && arena.entities[id].asleep {
            let rq = arena.group_queue(arena.group_of(task), from);
            arena.rqs[rq].make_relative(&mut arena.entities[id]);
        }
        arena.entities[id].asleep = false;
        arena.__set_task_cpu(id, to);
    }

    /// The part of `migrate_task_rq_fair` that concerns load where the queue's clock is known. Comes before
    /// [`Fair::migrate_task_rq`], which otherwise does it without decay.
    pub fn migrate_load_avg(&mut self, task: TaskId, now: Nanos) {
        self.queues.arena.migrate_load_avg(&self.config.rules.pelt, EntityId::of(task), Some(now));
    }
}

/// Queued and running tasks.
impl Fair {
    /// `enqueue_task_fair`: the task becomes runnable on the CPU. If that is not the CPU it was on last,
    /// [`Fair::migrate_task_rq`] comes before. With `delayed` it must still be queued there.
    #[inline(always)]
    pub fn enqueue_task(&mut self, cpu: CpuId, task: TaskId, flags: Enqueue, now: Nanos) {
        debug_assert_eq!(self.entity(task).cpu, cpu, "a task is enqueued where it belongs");
        self.queues.enqueue_task_fair(cpu, EntityId::of(task), flags, now);
    }

    /// `dequeue_task_fair`. False: the task sleeps but stays queued, because it owes service (DELAY_DEQUEUE).
    #[inline]
    pub fn dequeue_task(&mut self, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool {
        debug_assert_eq!(self.entity(task).cpu, cpu, "a task is dequeued where it is");
        self.queues.dequeue_task_fair(cpu, EntityId::of(task), flags, now)
    }

    /// Ends the delay of a task about to leave the class: it leaves the queue.
    pub fn end_delay(&mut self, task: TaskId, now: Nanos) {
        if self.entity(task).sched_delayed {
            self.queues.finish_delayed_dequeue(EntityId::of(task), now);
        }
    }

    /// `pick_next_task_fair`: picks and switches to the next task of the CPU. `None`: the queue is empty and no task is
    /// current any more.
    #[inline(always)]
    pub fn pick_next_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        if self.queues.arena.leave_empty(cpu.index()) {
            return None;
        }
        self.pick_queued_task(cpu, now)
    }

    /// The same where something is queued, or there are groups.
    #[inline(never)]
    fn pick_queued_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let picked = self.queues.pick_task_fair(cpu.index(), now);
        self.queues.switch_to_picked(cpu.index(), picked, now);
        picked.task()
    }

    /// `pick_task_fair`: the pick alone. Accounts, dequeues delayed entities on the way, switches nothing.
    pub fn pick_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        self.queues.pick_task_fair(cpu.index(), now).task()
    }

    /// `put_prev_task_fair`: the current task leaves the CPU, back into the queue if it is still runnable.
    pub fn put_prev_task(&mut self, cpu: CpuId, now: Nanos) {
        self.queues.put_prev_task(cpu, now);
    }

    /// `set_next_task_fair`: the task gets the CPU, which must have no current task; `first`: it was picked. A running
    /// task that comes from another class was not, and its protection is not renewed.
    pub fn set_next_task(&mut self, cpu: CpuId, task: TaskId, first: bool, now: Nanos) {
        let id = EntityId::of(task);
        self.queues.set_next_task_fair(id, first, now);
        self.queues.move_to_list_front(cpu, id);
    }

    /// `update_curr`: accounts the running task of a CPU up to `now`, at every level.
    pub fn update_curr(&mut self, cpu: CpuId, now: Nanos) {
        self.queues.update_curr_levels(cpu.index(), now);
    }

    /// Accounts exactly `ran` more nanoseconds to the running task, whatever its clock is; `leaf_only`: on the task's
    /// own queue alone, since the kernel charges the groups above when it next updates their queues.
    pub fn update_curr_by(&mut self, cpu: CpuId, ran: Nanos, leaf_only: bool) {
        let arena = &self.queues.arena;
        let Some(curr) = arena.leaf(cpu.index()).some() else { return };
        let (rq, now) = (arena.entities[curr].rq(), arena.entities[curr].exec_start.wrapping_add(ran));
        if leaf_only {
            self.queues.update_curr(rq, now);
        } else {
            self.queues.update_curr_levels(cpu.index(), now);
        }
    }

    /// Queued and running tasks, the least recently run first: the order in which the balancer considers them.
    pub fn cfs_tasks(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let mut at = self.rq(cpu).least_recent;
        std::iter::from_fn(move || {
            let task = at.task()?;
            at = self.queues.arena.entities.neighbours[at.index()].newer;
            Some(task)
        })
    }
}

/// Groups and quotas.
impl Fair {
    /// `sched_create_group`: an empty group of weight 1024 below `parent`.
    pub fn sched_create_group(&mut self, parent: GroupId) -> GroupId {
        self.queues.arena.sched_create_group(parent, &self.config)
    }

    /// Groups ever made, the root included.
    #[must_use]
    pub fn nr_groups(&self) -> usize {
        self.queues.arena.groups.len()
    }

    /// The state of a group.
    #[must_use]
    pub fn group(&self, group: GroupId) -> &TaskGroup {
        &self.queues.arena.groups[group.index()]
    }

    /// A group's queue on a CPU; the root's is the CPU's own.
    #[must_use]
    pub fn group_rq(&self, group: GroupId, cpu: CpuId) -> &CfsRq {
        let arena = &self.queues.arena;
        &arena.rqs[arena.group_queue(group, cpu)]
    }

    /// The entity that stands for a group on a CPU; the root has none.
    #[must_use]
    pub fn group_entity(&self, group: GroupId, cpu: CpuId) -> Option<&Entity> {
        let arena = &self.queues.arena;
        arena.entity_on(group, cpu.index()).some().map(|id| &arena.entities[id])
    }

    /// The group a task is in.
    #[must_use]
    pub fn group_of(&self, task: TaskId) -> GroupId {
        self.queues.arena.group_of(task)
    }

    /// `tg_set_cfs_bandwidth` of a group that has no quota yet; the root is never limited.
    pub fn tg_set_cfs_bandwidth(&mut self, group: GroupId, quota: Nanos, period: Nanos, burst: Nanos, now: Nanos) {
        self.queues.tg_set_cfs_bandwidth(group, quota, period, burst, now);
    }

    /// When the next timer of any pool fires, or a little earlier.
    #[inline]
    #[must_use]
    pub fn next_bandwidth_timer(&self) -> Option<Nanos> {
        self.queues.pools.next_timer()
    }

    /// In which order bandwidth timers of different groups fire that are due at the same time.
    pub fn set_ties(&mut self, ties: Ties) {
        self.queues.pools.ties = ties;
    }

    /// Draws where the periods of quotas lie; without it they begin at time 0. Call it before quotas are set.
    pub fn set_quota_phases(&mut self, seed: u64) {
        self.queues.pools.phases.seed = Some(seed);
    }

    /// Fires the bandwidth timers that are due; the CPUs whose queues were unthrottled.
    pub fn bandwidth_timers(&mut self, now: Nanos) -> Vec<CpuId> {
        self.queues.bandwidth_timers(now)
    }

    /// Whether the task has to call [`Fair::throttle_cfs_rq_work`] before it runs in user mode again.
    #[inline]
    #[must_use]
    pub fn has_throttle_work(&self, task: TaskId) -> bool {
        self.queues.pools.used && self.entity(task).throttle_work
    }

    /// `throttle_cfs_rq_work` by the current task, about to return to user mode. Whether it left; then it reschedules.
    pub fn throttle_cfs_rq_work(&mut self, task: TaskId, now: Nanos) -> bool {
        self.queues.throttle_cfs_rq_work(EntityId::of(task), now)
    }
}

/// Queries of the balancer.
impl Fair {
    /// `throttled_lb_pair`: the task's group is throttled where it is or where it would go.
    #[inline]
    #[must_use]
    pub fn throttled_lb_pair(&self, task: TaskId, dst: CpuId) -> bool {
        self.queues.pools.used && {
            let arena = &self.queues.arena;
            let here = &arena.rqs[self.entity(task).rq()];
            let there = &arena.rqs[arena.group_queue(here.group, dst)];
            here.throttle_count > 0 || there.throttle_count > 0
        }
    }

    /// `task_is_ineligible_on_dst_cpu`: something it would compete with is queued there already, and the task owes
    /// service here.
    pub fn task_is_ineligible_on_dst_cpu(&self, task: TaskId, cpu: CpuId) -> bool {
        let (id, arena) = (EntityId::of(task), &self.queues.arena);
        let there = arena.competes_on(arena.group_queue(self.group_of(task), cpu));
        let here = arena.competes_on(arena.entities[id].rq());
        self.config.has(Feature::PlaceLag)
            && arena.rqs[there].nr_competing(&self.config) > 0
            && !arena.rqs[here].entity_eligible(&arena.entities, id)
    }

    /// Whether the task is its queue's next or last buddy (`task_hot`).
    #[inline]
    #[must_use]
    pub fn is_hot_buddy(&self, task: TaskId) -> bool {
        let q = &self.queues.arena.rqs[self.entity(task).rq()];
        q.next == EntityId::of(task) || q.last == EntityId::of(task)
    }
}

/// Load tracking.
impl Fair {
    /// `update_blocked_averages`: what sleeps on the CPU decays, from the leaves of the group tree up.
    pub fn update_blocked_averages(&mut self, cpu: CpuId, now: Nanos) {
        self.queues.arena.update_blocked_averages(&self.config.rules.pelt, cpu, now);
    }

    /// The same of one group's queue, as its turn comes.
    pub(crate) fn update_blocked_group(&mut self, group: GroupId, cpu: CpuId, now: Nanos) {
        let arena = &mut self.queues.arena;
        arena.update_blocked_queue(&self.config.rules.pelt, arena.group_queue(group, cpu), now);
    }

    /// Up to when the CPU's queue was charged or decayed.
    pub(crate) fn updated_to(&self, cpu: CpuId) -> Nanos {
        self.queues.arena.updated_to(cpu)
    }

    /// From `now` on the CPU has this part of the largest capacity and of its own largest frequency, of 1024.
    pub fn set_cpu_scale(&mut self, cpu: CpuId, capacity: u32, frequency: u32, now: Nanos) {
        self.queues.arena.scaled = true;
        self.queues.arena.clock_pelt(cpu).set_scale(now, capacity, frequency);
    }

    /// The CPU's clock of load tracking.
    #[must_use]
    pub fn clock_pelt(&self, cpu: CpuId) -> &PeltClock {
        &self.queues.arena.clocks[cpu.index()]
    }

    /// The idle task is switched in (`update_idle_rq_clock_pelt`).
    pub fn enter_idle(&mut self, cpu: CpuId, now: Nanos) {
        let util_sum = u64::from(self.rq(cpu).pelt.avg.util_sum);
        self.queues.arena.clock_pelt(cpu).update_idle_rq_clock_pelt(now, util_sum);
    }

    /// The idle task is switched out.
    #[inline]
    pub fn exit_idle(&mut self, cpu: CpuId, now: Nanos) {
        self.queues.arena.clock_pelt(cpu).exit_idle(now);
    }

    /// `cpu_load`: the load average of the CPU, sleepers included (5.2: without them).
    #[inline]
    #[must_use]
    pub fn cpu_load(&self, cpu: CpuId) -> u64 {
        let avg = &self.rq(cpu).pelt.avg;
        if self.config.rules.pelt.runnable_load {
            avg.runnable_avg
        } else {
            avg.load_avg
        }
    }

    /// `cpu_runnable`: 1024 per task that always waits or runs; before it existed (5.2), per task queued now.
    #[inline]
    #[must_use]
    pub fn cpu_runnable(&self, cpu: CpuId) -> u64 {
        let q = self.rq(cpu);
        if self.config.rules.pelt.runnable_load {
            u64::from(q.h_nr_running) * CAPACITY_SCALE
        } else {
            q.pelt.avg.runnable_avg
        }
    }

    /// What the CPU's utilisation can be at most (`arch_scale_cpu_capacity`).
    #[inline]
    fn capacity_orig_of(&self, cpu: CpuId) -> u64 {
        if self.queues.arena.scaled {
            self.clock_pelt(cpu).capacity()
        } else {
            CAPACITY_SCALE
        }
    }

    /// `sync_entity_load_avg`.
    pub fn sync_entity_load_avg(&mut self, task: TaskId) {
        self.queues.arena.sync_entity_load_avg(&self.config.rules.pelt, EntityId::of(task));
    }

    /// `cpu_util_cfs`: utilisation of the CPU by the class, or what its tasks are expected to use, up to its capacity.
    #[inline]
    #[must_use]
    pub fn cpu_util_cfs(&self, cpu: CpuId) -> u64 {
        let avg = &self.rq(cpu).pelt.avg;
        let estimate = if self.config.has(Feature::UtilEst) { avg.util_est } else { 0 };
        u64::from(avg.util_avg.max(estimate)).min(self.capacity_orig_of(cpu))
    }

    /// `cpu_util_cfs_boost`: the same, but at least the time for which tasks ran or waited.
    #[inline]
    #[must_use]
    pub fn cpu_util_cfs_boost(&self, cpu: CpuId) -> u64 {
        let runnable = self.rq(cpu).pelt.avg.runnable_avg;
        self.cpu_util_cfs(cpu).max(runnable.min(self.capacity_orig_of(cpu)))
    }

    /// `task_h_load`: the task's part of its CPU's load, through its groups. A queue's part is computed once in a
    /// jiffy, or each time without a tick count.
    #[must_use]
    pub fn task_h_load(&mut self, task: TaskId, jiffies: Option<u64>) -> u64 {
        self.queues.arena.task_h_load(EntityId::of(task), jiffies)
    }

    /// `update_cfs_rq_h_load` of a CPU's own queue.
    pub fn update_cfs_rq_h_load(&mut self, cpu: CpuId, jiffies: Option<u64>) {
        self.queues.arena.update_cfs_rq_h_load(cpu.index(), jiffies);
    }

    /// `task_util_est`.
    #[must_use]
    pub fn task_util_est(&self, task: TaskId) -> u64 {
        let avg = &self.entity(task).avg;
        u64::from(avg.util_avg.max(self.config.rules.pelt.util_est._task_util_est(avg)))
    }
}
