//! The steps of a wakeup (`ttwu_runnable`, `ttwu_do_activate`, `wakeup_preempt`, kernel/sched/core.c).

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{Core, Moves, Sched, WakeKind};
use crate::class::ClassList;
use crate::decision::{Action, Class, Decision, During};
use crate::flags::{Enqueue, WakeFlags};
use crate::version::placement::IdleSpell;
use crate::Resched;

impl<L: ClassList> Sched<L> {
    /// `__ttwu_queue_wakelist`: the CPU enqueues the task itself, and until then does not count as idle
    /// (`rq.ttwu_pending`). Returns whether the list was empty.
    pub(crate) fn __ttwu_queue_wakelist(&mut self, task: TaskId, cpu: CpuId, sync: bool) -> bool {
        self.core.change_rq(cpu, |rq| {
            let first = rq.wakelist.is_empty();
            rq.wakelist.push((task, sync));
            rq.ttwu_pending = true;
            first
        })
    }

    /// Removes the first `count` tasks, which the CPU has enqueued, from its wakelist.
    pub(crate) fn finish_wakelist(&mut self, cpu: CpuId, enqueued: usize) {
        self.core.change_rq(cpu, |rq| {
            rq.wakelist.drain(..enqueued);
            rq.ttwu_pending = !rq.wakelist.is_empty();
        });
    }

    /// The CPU's wakelist: tasks that other CPUs have woken and that it enqueues itself, with the waker's sync hint.
    #[inline]
    #[must_use]
    pub fn wakelist(&self, cpu: CpuId) -> &[(TaskId, bool)] {
        &self.core.rqs[cpu.index()].wakelist
    }

    /// Whether a CPU still executes the task (`p->on_cpu`), as procedures have left it.
    #[inline]
    #[must_use]
    pub fn on_cpu(&self, task: TaskId) -> bool {
        self.core.rqs[self.cpu_of(task).index()].on_cpu == Some(task)
    }

    /// The task that the CPU executes, as procedures have left it: until the switch, what it was before the pick.
    #[inline]
    #[must_use]
    pub fn executes(&self, cpu: CpuId) -> Option<TaskId> {
        self.core.rqs[cpu.index()].on_cpu
    }

    /// Sets the task that the CPU executes (`prepare_task`, `finish_task`); returns the previous one.
    #[inline]
    pub(crate) fn set_on_cpu(&mut self, cpu: CpuId, task: Option<TaskId>) -> Option<TaskId> {
        std::mem::replace(&mut self.core.rqs[cpu.index()].on_cpu, task)
    }

    /// `set_task_cpu` in `try_to_wake_up`: the task belongs to the selected CPU even if it is enqueued later.
    /// [`Sched::activate`] does the same where no time passes between selection and enqueue.
    pub fn set_wakee_cpu(&mut self, task: TaskId, cpu: CpuId, now: Nanos) {
        let migrated = self.set_task_cpu(task, cpu, now);
        self.core.tasks[task.index()].wake_migrated |= migrated;
    }

    /// `set_task_cpu` of a task that is not queued; whether the CPU changed.
    #[inline(always)]
    pub(super) fn set_task_cpu(&mut self, task: TaskId, cpu: CpuId, now: Nanos) -> bool {
        self.cpu_of(task) != cpu && self.migrate_task(task, cpu, now)
    }

    #[inline(never)]
    fn migrate_task(&mut self, task: TaskId, cpu: CpuId, now: Nanos) -> bool {
        let Some(from) = self.core.set_task_cpu(task, cpu) else { return false };
        self.every_class().migrate_task_rq(task, from, cpu, now);
        true
    }

    /// `ttwu_do_activate` up to the enqueue.
    pub fn activate(&mut self, task: TaskId, cpu: CpuId, kind: WakeKind, now: Nanos) {
        let wakeup = matches!(kind, WakeKind::Wakeup { .. });
        let state = &mut self.core.tasks[task.index()];
        let (migrated, moves) = (std::mem::take(&mut state.wake_migrated), state.cpu != cpu);
        let migrated = (moves && self.migrate_task(task, cpu, now) || migrated) && wakeup;
        let flags = Enqueue { wakeup, migrated, initial: !wakeup, delayed: false };
        self.class_of(task).enqueue_task(cpu, task, flags, now);
        if self.core.is_mixed() {
            self.start_servers(cpu, task, now);
        }
        if wakeup && self.core.rules.idle_spell == IdleSpell::Wakeup {
            self.core.account_idle_spell(cpu, now);
        }
    }

    /// What `ttwu_runnable` does with a task that is still queued, because its dequeue was delayed: it is runnable in
    /// place. Whether it was. In that case no CPU is selected, and [`Sched::wakeup_preempt`] follows unless the task is
    /// running.
    #[inline(always)]
    pub fn requeue_delayed(&mut self, task: TaskId, now: Nanos) -> bool {
        let queued = self.on_rq(task);
        if queued {
            self.enqueue_delayed(task, now);
        }
        queued
    }

    #[inline(never)]
    fn enqueue_delayed(&mut self, task: TaskId, now: Nanos) {
        let cpu = self.cpu_of(task);
        let flags = Enqueue { wakeup: true, delayed: true, ..Enqueue::default() };
        self.class_of(task).enqueue_task(cpu, task, flags, now);
    }

    /// `wakeup_preempt`: the request to reschedule `cpu` for the task that has just been queued there.
    #[inline]
    pub fn wakeup_preempt(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        kind: WakeKind,
        need_resched: bool,
        now: Nanos,
    ) -> Resched {
        let flags = WakeFlags { sync: matches!(kind, WakeKind::Wakeup { sync: true }), fork: kind == WakeKind::Fork };
        let resched = match self.core.preempts_by_class(cpu, task, now) {
            Some(resched) => resched,
            None => self.class_of(task).wakeup_preempt(cpu, task, flags, need_resched, now),
        };
        let full = need_resched || resched == Resched::Full;
        if full && self.core.curr(cpu).is_none_or(|curr| self.on_rq(curr)) {
            self.core.rq_clock_skip_update(cpu, now);
        }
        self.complete_views();
        resched
    }

    /// `task_woken`, after the preemption check.
    #[inline]
    pub fn task_woken(&mut self, task: TaskId, need_resched: bool, now: Nanos) -> Moves {
        if !self.core.is_mixed() {
            return Moves::default();
        }
        self.moving(now, |sched| sched.class_of(task).task_woken(task, need_resched, now))
    }
}

impl Core {
    /// `wakeup_preempt` where the task and the running one are of different classes; `None`: the class decides.
    #[inline(always)]
    pub(crate) fn preempts_by_class(&mut self, cpu: CpuId, task: TaskId, now: Nanos) -> Option<Resched> {
        if self.has_higher() {
            self.compare_classes(cpu, task, now)
        } else {
            None
        }
    }

    #[inline(never)]
    fn compare_classes(&mut self, cpu: CpuId, task: TaskId, now: Nanos) -> Option<Resched> {
        let (wakee, curr) = (self.class_of(task), self.class_of(self.curr(cpu)?));
        if wakee == curr {
            return None;
        }
        if wakee < curr {
            return Some(self.preempts_lower(cpu, task, now));
        }
        self.explain_preempt(cpu, task, Class::Core, "a task of a higher class runs", Resched::No, now);
        Some(Resched::No)
    }

    /// A task preempts one of a lower class, or the idle task.
    pub(crate) fn preempts_lower(&mut self, cpu: CpuId, task: TaskId, now: Nanos) -> Resched {
        self.explain_preempt(cpu, task, Class::Core, "its class is higher", Resched::Full, now);
        Resched::Full
    }

    /// Records whether a task that woke preempts, by their priorities.
    #[inline]
    pub(crate) fn explain_preempt(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        class: Class,
        rule: &'static str,
        resched: Resched,
        now: Nanos,
    ) {
        if self.is_recording() {
            let priority = |task: TaskId| self.attr(task).rt.map_or(0, |policy| i64::from(policy.priority));
            let running = self.curr(cpu).map_or(0, priority);
            let action = if resched == Resched::No { Action::Keep(task) } else { Action::Preempt(task) };
            let compared = [("priority", priority(task)), ("running priority", running)];
            let decision = Decision::outside(now, cpu, action, rule, None, compared);
            self.record(Decision { class, during: During::Wakeup, resched, ..decision });
        }
    }
}
