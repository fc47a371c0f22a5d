//! The deadline class as one of the classes: the methods of `dl_sched_class`.

use schedlab_model::{CpuId, Nanos, TaskId, USEC};

use super::cbs::How;
use super::timers::Timer;
use super::{rq_clock, Dl, DlEntity, DlPolicy};
use crate::class::{view_pid, ClassId, SchedClass};
use crate::core::types::{Moves, Tested};
use crate::flags::{Dequeue, Enqueue, WakeFlags};
use crate::hrtick::Hrtick;
use crate::jiffies::UPTIME;
use crate::queue_view::QueueView;
use crate::run_times::RunTimes;
use crate::{Core, Resched, TaskAttr, WakeKind};

/// `hrtick_start`: a shorter timer is not worth its interrupt.
const SHORTEST: Nanos = 10 * USEC;

impl Dl {
    /// `__setparam_dl`, and the bandwidth that `sched_dl_overflow` counts; it has been admitted.
    fn setparam(&mut self, task: TaskId, dl: DlPolicy) {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, DlEntity::default());
        }
        self.count_bandwidth(task, dl.dl_bw());
        self.se(task).policy = Some(dl);
    }

    /// `put_prev_task_dl` and `set_next_task_dl`.
    fn set_curr(&mut self, core: &mut Core, cpu: CpuId, next: Option<TaskId>, now: Nanos) {
        self.update_curr_dl(core, cpu, now);
        let prev = self.curr(cpu);
        if prev == next {
            return;
        }
        core.update_rt_rq_load_avg(cpu, next.is_some(), now);
        if let Some(prev) = prev {
            self.enqueue_pushable_dl_task(core, cpu, prev);
        }
        if let Some(next) = next {
            self.dequeue_pushable_dl_task(cpu, next);
            self.se(next).exec_start = now;
        }
        self.rqs[cpu.index()].curr = next;
    }

    /// `wakeup_preempt_dl` (`check_preempt_curr_dl`) against a running task of this class.
    fn wakeup_preempt_dl(
        &self,
        core: &Core,
        task: TaskId,
        curr: TaskId,
        need_resched: bool,
    ) -> (Resched, &'static str) {
        let equal = self.tasks[task.index()].deadline == self.tasks[curr.index()].deadline;
        if self.dl_entity_preempt(task, curr) {
            (Resched::Full, "earlier deadline")
        } else if equal && !need_resched && self.check_preempt_equal_dl(core, task, curr) {
            (Resched::Full, "same deadline, and only the running one can go elsewhere")
        } else {
            (Resched::No, "no earlier deadline")
        }
    }

    /// `check_preempt_equal_dl`.
    fn check_preempt_equal_dl(&self, core: &Core, task: TaskId, curr: TaskId) -> bool {
        let free = |task: TaskId| !core.is_pinned(task) && self.cpudl_find(core, task, false).is_some();
        task != curr && free(curr) && !free(task)
    }

    /// The preemption check of a task that has become runnable other than by a wakeup.
    fn check_preempt(&self, core: &Core, cpu: CpuId, task: TaskId) -> Resched {
        match self.curr(cpu) {
            Some(curr) => self.wakeup_preempt_dl(core, task, curr, false).0,
            None => Resched::Full,
        }
    }

    /// `dl_task_timer`: the task's next period has begun.
    fn dl_task_timer(&mut self, core: &mut Core, task: TaskId, now: Nanos, moves: &mut Moves) {
        self.se(task).dl_timer = None;
        let cpu = core.cpu_of(task);
        let clock_task = core.clock_task(cpu, now);
        let se = self.tasks[task.index()];
        if se.policy.is_none() || !se.dl_throttled {
            return;
        }
        if !se.on_rq {
            return self.replenish(task, UPTIME + now);
        }
        self.enqueue_dl_entity(core, cpu, task, How::Replenish, clock_task);
        let resched = self.check_preempt(core, cpu, task);
        self.explain_replenish(core, cpu, task, resched, clock_task);
        moves.ask(cpu, resched);
        self.push_dl_task(core, cpu, cpu, clock_task, moves);
    }
}

impl SchedClass for Dl {
    fn id(&self) -> ClassId {
        self.class
    }

    fn set_id(&mut self, id: ClassId) {
        self.class = id;
    }

    fn takes(&self, attr: &TaskAttr) -> bool {
        attr.dl.is_some()
    }

    fn task_new(&mut self, _: &mut Core, task: TaskId, attr: &TaskAttr, mine: bool) {
        self.forget(task);
        if let Some(dl) = attr.dl.filter(|_| mine) {
            self.setparam(task, dl);
        }
    }

    fn task_dead(&mut self, _: &mut Core, task: TaskId) {
        self.forget(task);
    }

    fn on_rq(&self, task: TaskId) -> bool {
        self.tasks.get(task.index()).is_some_and(|se| se.on_rq)
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: Enqueue, now: Nanos) {
        let how = match flags {
            Enqueue { wakeup: true, .. } => How::Wakeup,
            Enqueue { migrated: true, .. } => How::Migrating,
            _ => How::Restore,
        };
        let se = self.se(task);
        (se.on_rq, se.asleep) = (true, false);
        self.enqueue_dl_entity(core, cpu, task, how, now);
    }

    fn dequeue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool {
        self.update_curr_dl(core, cpu, now);
        self.__dequeue_dl_entity(core, cpu, task);
        self.dequeue_pushable_dl_task(cpu, task);
        let se = self.se(task);
        (se.on_rq, se.asleep) = (false, flags.sleep);
        if flags.sleep {
            self.task_non_contending(task, rq_clock(core, cpu, now), !flags.special);
        }
        true
    }

    fn yield_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) {
        if let Some(curr) = self.curr(cpu) {
            self.se(curr).dl_yielded = true;
            self.update_curr_dl(core, cpu, now);
            core.rq_clock_skip_update(cpu, now);
        }
    }

    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        _: WakeFlags,
        need_resched: bool,
        now: Nanos,
    ) -> Resched {
        if !self.se(task).queued {
            // It waits for its next period, and nothing has changed for the CPU.
            return Resched::No;
        }
        let Some(curr) = self.curr(cpu) else { return core.preempts_lower(cpu, task, now) };
        let (resched, rule) = self.wakeup_preempt_dl(core, task, curr, need_resched);
        self.explain_preempt(core, cpu, task, rule, resched, now);
        resched
    }

    fn select_task_rq(
        &mut self,
        core: &mut Core,
        task: TaskId,
        kind: WakeKind,
        tested: &mut Tested,
        _: Nanos,
    ) -> (CpuId, &'static str) {
        match kind {
            WakeKind::Wakeup { .. } => self.select_task_rq_dl(core, task, tested.from()),
            WakeKind::Fork | WakeKind::Exec => (core.cpu_of(task), "last CPU"),
        }
    }

    fn balance(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        self.balance_dl(core, cpu, now)
    }

    fn pick_task(&mut self, _: &mut Core, cpu: CpuId, _: Nanos) -> Option<TaskId> {
        self.rqs[cpu.index()].root.first().map(|(_, task)| task)
    }

    fn pick_next_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let next = self.pick_task(core, cpu, now);
        self.set_curr(core, cpu, next, now);
        if let Some(next) = next {
            self.explain_pick(core, cpu, next, now);
        }
        next
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, now: Nanos) {
        self.set_curr(core, cpu, None, now);
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, next: TaskId, first: bool, now: Nanos) {
        self.set_curr(core, cpu, Some(next), now);
        if first {
            self.explain_pick(core, cpu, next, now);
        }
    }

    fn balance_callback(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        if self.curr(cpu).is_some() {
            self.push_dl_tasks(core, cpu, now, &mut moves);
        }
        moves
    }

    fn task_woken(&mut self, core: &mut Core, task: TaskId, need_resched: bool, now: Nanos) -> Moves {
        self.task_woken_dl(core, task, need_resched, now)
    }

    fn task_tick(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, now: Nanos) -> Resched {
        let resched = self.update_curr_dl(core, cpu, now);
        core.update_rt_rq_load_avg(cpu, true, now);
        resched
    }

    fn update_curr(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) {
        self.update_curr_dl(core, cpu, now);
    }

    fn switched_from(&mut self, core: &mut Core, task: TaskId, now: Nanos) {
        let se = self.tasks[task.index()];
        if !se.asleep {
            let clock = rq_clock(core, core.cpu_of(task), now);
            self.task_non_contending(task, clock, false);
        } else if se.inactive_timer.is_none() {
            self.give_back(task);
        }
        self.se(task).policy = None;
    }

    fn switching_to(&mut self, _: &mut Core, task: TaskId, attr: &TaskAttr, queued: bool, _: Nanos) {
        if let Some(dl) = attr.dl {
            self.setparam(task, dl);
            self.task_contending(task);
            self.se(task).asleep = !queued;
        }
    }

    fn switched_to(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, running: bool, _: Nanos) -> Resched {
        if running || !self.se(task).queued {
            Resched::No
        } else {
            self.check_preempt(core, cpu, task)
        }
    }

    fn prio_changed(&mut self, core: &mut Core, task: TaskId, _: &TaskAttr, attr: &TaskAttr, now: Nanos) -> Resched {
        let (cpu, queued, Some(dl)) = (core.cpu_of(task), self.on_rq(task), attr.dl) else { return Resched::No };
        if queued {
            self.dequeue_task(core, cpu, task, Dequeue { save: true, ..Dequeue::default() }, now);
        }
        self.setparam(task, dl);
        if !queued {
            return Resched::No;
        }
        self.enqueue_task(core, cpu, task, Enqueue::default(), now);
        if self.curr(cpu) == Some(task) {
            let first = self.is_leftmost(cpu, task);
            return if first { Resched::No } else { Resched::Full };
        }
        self.check_preempt(core, cpu, task)
    }

    fn clock_updated(&self, cpu: CpuId) -> Nanos {
        self.curr(cpu).map_or(0, |curr| self.tasks[curr.index()].exec_start)
    }

    fn hrtick_start(&self, cpu: CpuId) -> Hrtick {
        match self.curr(cpu).filter(|_| self.hrtick) {
            Some(curr) => Hrtick::After(SHORTEST.max(self.tasks[curr.index()].runtime.max(0) as Nanos)),
            None => Hrtick::Off,
        }
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timers.next()
    }

    fn timer_expired(&mut self, core: &mut Core, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        while let Some(timer) = self.timers.expired(now) {
            match timer {
                Timer::Replenish(task) => self.dl_task_timer(core, task, now, &mut moves),
                Timer::Inactive(task) => self.inactive_task_timer(task),
                Timer::Gone(dl_bw) => self.give_back_of_dead(dl_bw),
            }
        }
        moves
    }

    fn view(&self, _: &Core, view: &mut QueueView) {
        view.deadline = self.deadline_view(CpuId(view.cpu), view_pid);
    }

    fn is_precise(&self) -> bool {
        true
    }

    fn run_time_log(&mut self) -> Option<&mut RunTimes> {
        Some(self.run_times())
    }
}
