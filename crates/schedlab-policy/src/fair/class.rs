//! The fair class as one of the classes: the methods of `struct sched_class` on its queues, and placement and
//! balancing, which read the rest of the scheduler as well (`fair_sched_class`).

use schedlab_model::{CpuId, Nanos, TaskId};

use super::attributes::SchedParams;
use super::fair_sched_class::Fair;
use crate::class::{view_pid, ClassId, SchedClass};
use crate::core::types::Tested;
use crate::flags::{Dequeue, Enqueue, WakeFlags};
use crate::group_id::GroupId;
use crate::hrtick::Hrtick;
use crate::numa::Access;
use crate::queue_view::QueueView;
use crate::run_times::RunTimes;
use crate::{Core, Moves, Resched, TaskAttr, WakeKind};

/// The fair class together with what the classes share.
pub(crate) struct FairClass<'a> {
    pub fair: &'a mut Fair,
    pub core: &'a mut Core,
}

impl FairClass<'_> {
    /// After anything that may have changed the CPU's queue or recorded a decision.
    #[inline(always)]
    pub(crate) fn sync(&mut self, cpu: CpuId) {
        let q = &mut self.fair.queues.arena.rqs[cpu.index()];
        if std::mem::take(&mut q.counted) {
            self.core.set_h_nr(cpu, self.fair.class, q.h_nr_running, q.idle_h_nr_running);
        }
        if self.core.is_recording() {
            self.drain_log();
        }
    }

    /// The runqueue takes over the counters of the CPU's queue.
    pub(crate) fn take_counts(&mut self, cpu: CpuId) {
        let q = self.fair.rq(cpu);
        self.core.set_h_nr(cpu, self.fair.class, q.h_nr_running, q.idle_h_nr_running);
    }

    #[cold]
    pub(crate) fn drain_log(&mut self) {
        let log = self.fair.log_mut();
        let Some(decisions) = log.decisions.as_mut().filter(|decisions| !decisions.is_empty()) else { return };
        let mut views = log.views.iter_mut().flat_map(|views| views.drain(..));
        decisions.drain(..).for_each(|decision| self.core.log.push(decision, views.next()));
    }

    /// `set_task_cpu` of a task of this class that is not queued; whether the CPU changed.
    pub(crate) fn set_task_cpu(&mut self, task: TaskId, cpu: CpuId, now: Nanos) {
        if let Some(from) = self.core.set_task_cpu(task, cpu) {
            self.fair.migrate_load_avg(task, now);
            self.fair.migrate_task_rq(task, from, cpu);
        }
    }

    /// `wakeup_preempt` of a task that is not the first of its class on the CPU, perhaps.
    pub(crate) fn wakeup_preempt(&mut self, cpu: CpuId, task: TaskId, flags: WakeFlags, now: Nanos) -> Resched {
        self.sync(cpu);
        let resched = match self.core.preempts_by_class(cpu, task, now) {
            Some(resched) => resched,
            None => self.check_preempt(cpu, task, flags, false, now),
        };
        let queued = |task| self.fair.entity(task).on_rq;
        if resched == Resched::Full && self.fair.curr(cpu).is_none_or(queued) {
            self.core.rq_clock_skip_update(cpu, now);
        }
        resched
    }

    #[inline(always)]
    fn check_preempt(&mut self, cpu: CpuId, task: TaskId, flags: WakeFlags, need_resched: bool, now: Nanos) -> Resched {
        let resched = self.fair.wakeup_preempt(cpu, task, flags, need_resched, now);
        // Delayed tasks that the check came across may have left (7.x).
        self.sync(cpu);
        resched
    }

    /// `dequeue_task_fair`.
    #[inline(always)]
    pub(crate) fn dequeue_task(&mut self, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool {
        let before = self.core.rqs[cpu.index()].sched_idle_rq();
        let dequeued = self.fair.dequeue_task(cpu, task, flags, now);
        self.swqueue_remove_task(task);
        self.sync(cpu);
        if !before && self.core.rqs[cpu.index()].sched_idle_rq() && self.core.idle.is_usable(cpu) {
            // Pull something better soon.
            self.core.rqs[cpu.index()].next_balance = self.core.jiffies(now);
        }
        dequeued
    }
}

impl Fair {
    #[inline(always)]
    pub(crate) fn with<'a>(&'a mut self, core: &'a mut Core) -> FairClass<'a> {
        FairClass { fair: self, core }
    }

    /// The end of a change of attributes, whose check for preemption may have dequeued delayed tasks (7.x).
    fn changed(&mut self, core: &mut Core, task: TaskId, resched: Resched) -> Resched {
        let cpu = core.cpu_of(task);
        self.with(core).sync(cpu);
        resched
    }
}

impl SchedClass for Fair {
    fn id(&self) -> ClassId {
        self.class
    }

    fn set_id(&mut self, id: ClassId) {
        self.class = id;
    }

    fn takes(&self, _: &TaskAttr) -> bool {
        true
    }

    fn task_new(&mut self, _: &mut Core, task: TaskId, attr: &TaskAttr, _: bool) {
        self.add_task_as(task, attr);
    }

    fn task_fork(&mut self, _: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) -> Resched {
        Fair::task_fork(self, cpu, task, now)
    }

    fn task_dead(&mut self, _: &mut Core, task: TaskId) {
        Fair::task_dead(self, task);
    }

    #[inline(always)]
    fn on_rq(&self, task: TaskId) -> bool {
        self.entity(task).on_rq
    }

    #[inline(always)]
    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: Enqueue, now: Nanos) {
        Fair::enqueue_task(self, cpu, task, flags, now);
        let mut class = self.with(core);
        class.sync(cpu);
        class.swqueue_enqueue(cpu, task, flags);
        if !flags.initial {
            class.check_update_overutilized_status(cpu);
        }
    }

    #[inline(always)]
    fn dequeue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool {
        self.with(core).dequeue_task(cpu, task, flags, now)
    }

    fn yield_to_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) -> bool {
        let yields = Fair::yield_to_task(self, cpu, task, now);
        if yields && self.rq(cpu).h_nr_running > 1 {
            core.rq_clock_skip_update(cpu, now);
        }
        yields
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) {
        Fair::yield_task(self, cpu, now);
        if self.rq(cpu).h_nr_running > 1 {
            core.rq_clock_skip_update(cpu, now);
        }
    }

    #[inline(always)]
    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        flags: WakeFlags,
        need_resched: bool,
        now: Nanos,
    ) -> Resched {
        self.with(core).check_preempt(cpu, task, flags, need_resched, now)
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        kind: WakeKind,
        tested: &mut Tested,
        now: Nanos,
    ) -> (CpuId, &'static str) {
        let (cpu, rule) = self.with(core).select_task_rq_fair(task, kind, tested, now);
        (cpu, rule.text())
    }

    #[inline(always)]
    fn migrate_task_rq(&mut self, _: &mut Core, task: TaskId, from: CpuId, to: CpuId, now: Nanos) {
        self.migrate_load_avg(task, now);
        Fair::migrate_task_rq(self, task, from, to);
    }

    #[inline(always)]
    fn sched_balance_newidle(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        self.with(core).sched_balance_newidle(cpu, now)
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let picked = Fair::pick_task(self, cpu, now);
        self.with(core).sync(cpu);
        picked
    }

    #[inline(always)]
    fn pick_next_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let picked = Fair::pick_next_task(self, cpu, now);
        let mut class = self.with(core);
        class.sync(cpu);
        if let Some(task) = picked {
            class.swqueue_remove_task(task);
            class.update_misfit_status(cpu, picked);
        }
        picked
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, now: Nanos) {
        Fair::put_prev_task(self, cpu, now);
        self.with(core).sync(cpu);
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, next: TaskId, first: bool, now: Nanos) {
        Fair::set_next_task(self, cpu, next, first, now);
        let mut class = self.with(core);
        class.sync(cpu);
        class.swqueue_remove_task(next);
        class.update_misfit_status(cpu, Some(next));
    }

    #[inline(always)]
    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, curr: TaskId, now: Nanos) -> Resched {
        let (resched, jiffies) = (Fair::task_tick(self, cpu, now), core.jiffies(now));
        if let Some(cache) = self.sched_cache_mut().filter(|cache| !cache.follows_trace) {
            cache.task_tick_cache(cpu, curr);
        }
        if let Some(numa) = &mut core.numa {
            numa.task_tick_numa(curr, self.entity(curr).sum_exec_runtime, jiffies);
        }
        let mut class = self.with(core);
        class.sync(cpu);
        class.update_misfit_status(cpu, Some(curr));
        class.check_update_overutilized_status(cpu);
        resched
    }

    fn switching_from(&mut self, core: &mut Core, task: TaskId, now: Nanos) {
        self.end_delay(task, now);
        self.changed(core, task, Resched::No);
    }

    fn switched_from(&mut self, core: &mut Core, task: TaskId, now: Nanos) {
        Fair::switched_from(self, task, now);
        self.changed(core, task, Resched::No);
    }

    fn switching_to(&mut self, _: &mut Core, task: TaskId, attr: &TaskAttr, queued: bool, _: Nanos) {
        let se = self.entity(task);
        let slice = se.custom_slice.then_some(se.slice);
        let params = SchedParams { policy: attr.policy, nice: se.nice, slice };
        self.set_params_outside(task, params);
        Fair::switched_to(self, task, queued);
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, running: bool, now: Nanos) -> Resched {
        let outranked = core.curr(cpu).is_some_and(|curr| core.class_of(curr) < self.class);
        let resched = match (running, outranked) {
            (true, _) => Resched::Full,
            (_, true) => Resched::No,
            _ => Fair::wakeup_preempt(self, cpu, task, WakeFlags::default(), false, now),
        };
        self.changed(core, task, resched)
    }

    fn prio_changed(&mut self, core: &mut Core, task: TaskId, _: &TaskAttr, attr: &TaskAttr, now: Nanos) -> Resched {
        let resched = self.set_policy(task, attr.policy, now);
        self.changed(core, task, resched)
    }

    fn reweight_task(&mut self, core: &mut Core, task: TaskId, nice: i8, now: Nanos) -> Resched {
        let resched = self.set_user_nice(task, nice, now);
        self.changed(core, task, resched)
    }

    fn set_slice(&mut self, core: &mut Core, task: TaskId, slice: Option<Nanos>, now: Nanos) -> Resched {
        let resched = Fair::set_slice(self, task, slice, now);
        self.changed(core, task, resched)
    }

    fn task_change_group(&mut self, core: &mut Core, task: TaskId, group: GroupId, now: Nanos) -> Resched {
        let resched = self.sched_move_task(task, group, now);
        self.changed(core, task, resched)
    }

    fn set_cpus_allowed(&mut self, core: &mut Core, task: TaskId, now: Nanos) {
        let resched = Fair::do_set_cpus_allowed(self, task, now);
        self.changed(core, task, resched);
    }

    fn clear_resched(&mut self, _: &mut Core, cpu: CpuId) {
        Fair::clear_resched(self, cpu);
    }

    #[inline]
    fn clock_updated(&self, cpu: CpuId) -> Nanos {
        self.updated_to(cpu)
    }

    fn idle_changed(&mut self, core: &mut Core, cpu: CpuId, idle: bool, now: Nanos) {
        match idle {
            true => {
                self.enter_idle(cpu, now);
                self.with(core).nohz_balance_enter_idle(cpu);
            }
            false => self.exit_idle(cpu, now),
        }
    }

    fn bandwidth_timers(&mut self, core: &mut Core, now: Nanos) -> Vec<CpuId> {
        let cpus = Fair::bandwidth_timers(self, now);
        cpus.iter().for_each(|cpu| self.with(core).sync(*cpu));
        cpus
    }

    fn throttle_work(&mut self, core: &mut Core, task: TaskId, now: Nanos) -> bool {
        let left = Fair::throttle_cfs_rq_work(self, task, now);
        self.changed(core, task, Resched::No);
        left
    }

    fn task_cache_work(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) {
        Fair::task_cache_work(self, cpu, task, |cpu| core.curr(cpu), now);
    }

    fn numa_access(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        user: Nanos,
        may_move: bool,
        now: Nanos,
    ) -> Access {
        self.with(core).numa_access(cpu, task, user, may_move, now)
    }

    fn domains_rebuilt(&mut self, core: &mut Core, leaves: bool, now: Nanos) {
        self.rq_online(core.topology.all(), leaves, now);
        if let Some(cache) = self.sched_cache_mut() {
            cache.rebuild(&core.topology);
        }
    }

    fn active_load_balance_cpu_stop(&mut self, core: &mut Core, cpu: CpuId, dest: CpuId, now: Nanos) -> Moves {
        self.with(core).active_load_balance_cpu_stop(cpu, dest, now)
    }

    fn sched_balance_domains(&mut self, core: &mut Core, cpu: CpuId, idle: bool, now: Nanos) -> Moves {
        self.with(core).sched_balance_domains(cpu, idle, now)
    }

    fn nohz_balancer_kick(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Option<CpuId> {
        self.with(core).nohz_balancer_kick(cpu, now)
    }

    fn nohz_idle_balance(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        self.with(core).nohz_idle_balance(cpu, now)
    }

    fn hrtick_start(&self, cpu: CpuId) -> Hrtick {
        Fair::hrtick_start(self, cpu)
    }

    fn hrtick_update(&self, cpu: CpuId) -> Option<Hrtick> {
        Fair::hrtick_update(self, cpu)
    }

    fn drain_log(&mut self, core: &mut Core) {
        self.with(core).drain_log();
    }

    fn set_log(&mut self, _: &mut Core, on: bool, views: bool) {
        let log = self.log_mut();
        log.decisions = on.then(Vec::new);
        log.views = (on && views).then(Vec::new);
    }

    fn view(&self, _: &Core, view: &mut QueueView) {
        let (deadline, real_time) = (std::mem::take(&mut view.deadline), std::mem::take(&mut view.real_time));
        *view = QueueView { deadline, real_time, ..Fair::view(self).queue_view(CpuId(view.cpu), view_pid) };
    }

    fn run_time_log(&mut self) -> Option<&mut RunTimes> {
        Some(self.run_times())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schedlab_model::{Topology, MSEC};

    use super::*;
    use crate::{FairPolicy, KernelConfig, Sched, Version};

    /// A CPU that is left with SCHED_IDLE tasks balances at its next tick, however the other task left.
    #[test]
    fn a_cpu_with_only_idle_tasks_left_balances_early() {
        for flags in [
            Dequeue { sleep: true, special: true, ..Dequeue::default() },
            Dequeue { migrating: true, ..Dequeue::default() },
        ] {
            let config = KernelConfig::new(Version::find("7.2").unwrap(), 2, 250);
            let mut sched = Sched::new(config, Arc::new(Topology::regular(1, 1, 2, 1, true).unwrap()));
            let cpu = CpuId(0);
            let [normal, _] = [FairPolicy::Normal, FairPolicy::Idle].map(|policy| {
                let task = sched.add_task(&TaskAttr { cpu, policy, ..TaskAttr::default() });
                sched.activate(task, cpu, WakeKind::Fork, MSEC);
                task
            });
            sched.core.rqs[cpu.index()].next_balance = u64::MAX;
            sched.dequeue_task(cpu, normal, flags, 9 * MSEC);
            assert_eq!(sched.core.rqs[cpu.index()].next_balance, sched.core.jiffies(9 * MSEC), "{flags:?}");
        }
    }
}
