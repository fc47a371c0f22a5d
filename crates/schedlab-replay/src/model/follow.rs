//! Operations that change queues: the model does each in the kernel's order, decides where the kernel decided something, and is
//! then put where the kernel is.

use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use schedlab_policy::fair::{Dequeue, Enqueue, TaskState, WakeFlags};
use schedlab_policy::{Feature, Resched};

use super::Model;
use crate::decision::DecisionKind;
use crate::inputs::InputKind;
use crate::operation::{First, Flag, PrevState, Switch, Timer, Wakeup};

/// A preemption check (`wakeup_preempt`).
struct Check {
    kind: DecisionKind,
    cpu: CpuId,
    pid: Pid,
    /// The runqueue's clock.
    now: Nanos,
    /// Need-resched of the model before the task was queued.
    before: Resched,
    flag: Flag,
}

impl Model {
    /// `sched_tick` or `hrtick`, after its charge. Where either may have fired, only a slice that is used up can be judged.
    pub(super) fn tick(&mut self, cpu: CpuId, flag: Flag, timer: Timer) {
        let Some(curr) = self.fair.curr(cpu) else { return };
        let contested = self.fair.rq(cpu).h_nr_running > 1;
        let expired = timer == Timer::Hrtick && self.fair.config.has(Feature::Hrtick);
        let resched = match expired {
            true => self.fair.hrtick_expired(cpu, self.clock(cpu)),
            false => self.fair.task_tick(cpu, self.clock(cpu)),
        } != Resched::No;
        if contested && timer != Timer::Tick && !resched {
            self.unjudged_timer(cpu, curr, flag);
        } else if contested {
            self.judge_preemption(DecisionKind::Tick, cpu, curr, resched, flag);
        }
        self.fair.clear_resched(cpu);
    }

    /// `ttwu_do_activate` and the preemption check.
    pub(super) fn wakeup(&mut self, wakeup: &Wakeup) {
        let Wakeup { cpu, pid, new, first, flag, .. } = *wakeup;
        let Some(id) = self.task(pid) else { return };
        let before = self.fair.need_resched(cpu);
        if self.fair.entity(id).cpu != cpu {
            let from = self.fair.entity(id).cpu;
            self.set_task_cpu(pid, from, cpu, 0);
            self.put_on(cpu, pid);
        }
        let now = self.clock_at_wakeup(wakeup, id);
        self.cpus[cpu.index()].charged_for = None;
        let was_queued = self.fair.entity(id).on_rq;
        if !was_queued {
            self.enqueued_on_incomplete(id, cpu);
            self.take_lag(id, first);
        }
        let migrated = self.tasks.get_mut(&pid).is_some_and(|task| std::mem::take(&mut task.migrated));
        let flags = Enqueue { wakeup: !new, migrated: migrated && !new, initial: new, delayed: was_queued };
        self.fair.enqueue_task(cpu, id, flags, now);
        if !was_queued {
            self.align_queue(cpu, id, first, new || migrated);
            self.note_queued(pid);
        }
        self.take_state(pid, first);
        let kind = if new { DecisionKind::Fork } else { DecisionKind::Wakeup };
        self.check_preempt(&Check { kind, cpu, pid, now, before, flag });
    }

    /// `ttwu_runnable` of a delayed task: up to 7.1 it is requeued before the running task is charged, which happens in
    /// the preemption check; 7.2 charges first.
    pub(super) fn requeue_uncharged(&mut self, cpu: CpuId, pid: Pid) {
        let Some(id) = self.task(pid) else { return };
        if self.fair.config.version.rules.requeue_charges {
            return;
        }
        let se = self.fair.entity(id);
        if se.on_rq && se.sched_delayed && se.cpu == cpu {
            let now = self.clock(cpu);
            self.fair.enqueue_task(cpu, id, Enqueue { wakeup: true, delayed: true, ..Enqueue::default() }, now);
            self.note_queued(pid);
        }
    }

    fn check_preempt(&mut self, check: &Check) {
        let Check { kind, cpu, pid, now, before, flag } = *check;
        let (Some(id), Some(curr)) = (self.task(pid), self.fair.curr(cpu)) else { return };
        if curr == id {
            return self.fair.clear_resched(cpu);
        }
        let preempted = self.cpus[cpu.index()].preempted;
        let full = flag.before_full || before == Resched::Full || preempted == Resched::Full;
        let before = flag.before || before == Resched::Full || preempted != Resched::No;
        let flags = WakeFlags { sync: false, fork: kind == DecisionKind::Fork };
        let charged = self.fair.entity(curr).exec_start;
        let level = self.fair.wakeup_preempt(cpu, id, flags, full, now);
        let checked = self.fair.entity(curr).exec_start;
        self.cpus[cpu.index()].checked = (kind == DecisionKind::Fork && checked > charged).then_some((curr, checked));
        let resched = level != Resched::No;
        if !self.fair.entity(curr).on_rq {
            // `schedule()` is under way, in `sched_balance_newidle`: the flag stays until the switch, and the next task that is attached is not checked.
            let queue = &mut self.cpus[cpu.index()];
            queue.preempted = queue.preempted.max(level);
        } else {
            self.judge_preemption(kind, cpu, id, resched, flag);
            if let (false, Some(after)) = (before || flag.is_shared(), flag.after) {
                self.fair.follow_preemption(cpu, id, after);
                self.tally.inputs.take(InputKind::CheckOutcome);
            }
        }
        self.fair.clear_resched(cpu);
    }

    /// The order in which tasks were queued, for the baselines.
    fn note_queued(&mut self, pid: Pid) {
        let order = self.next_order();
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.queued_at = order;
        }
    }

    /// `migrate_task_rq_fair` of a waking task. CFS reads the zero point of the previous queue without the lock.
    pub(super) fn set_task_cpu(&mut self, pid: Pid, from: CpuId, to: CpuId, charged: Nanos) {
        let Some(id) = self.task(pid) else { return };
        self.fair.finish_delayed(id);
        if !self.fair.entity(id).on_rq {
            self.leave_cpu(id);
            self.fair.migrate_load_avg(id, self.clock_now(from));
            let relative = (charged > 0 && !self.eevdf).then(|| self.relative_after_charge(id, from, to, charged));
            self.fair.migrate_task_rq(id, from, to);
            if let Some(state) = relative {
                self.fair.restore().task(id, state);
            }
            self.tasks.entry(pid).and_modify(|task| task.migrated = true);
        }
    }

    /// The state that a task takes to another CPU after the running task of its own is charged.
    fn relative_after_charge(&self, id: TaskId, from: CpuId, to: CpuId, charged: Nanos) -> TaskState {
        let mut fair = self.fair.clone();
        fair.update_curr_by(from, charged, true);
        fair.migrate_task_rq(id, from, to);
        fair.view().task_state(id)
    }

    /// `detach_task`. A sleeping task is detached only if its dequeue was delayed; otherwise it changes CPU.
    pub(super) fn detach(&mut self, pid: Pid, from: CpuId, to: CpuId) {
        let Some(id) = self.task(pid) else { return };
        if !self.fair.entity(id).on_rq {
            return self.set_task_cpu(pid, from, to, 0);
        }
        let from = self.fair.entity(id).cpu;
        let now = self.clock(from);
        self.fair.dequeue_task(from, id, Dequeue { migrating: true, ..Dequeue::default() }, now);
        if self.fair.curr(from) == Some(id) {
            self.fair.put_prev_task(from, now);
        }
        self.fair.migrate_load_avg(id, now);
        self.fair.migrate_task_rq(id, from, to);
        self.tasks.entry(pid).and_modify(|task| task.moving = true);
    }

    /// `attach_task`.
    pub(super) fn attach(&mut self, pid: Pid, cpu: CpuId, first: Option<First>, flag: Flag) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let id = task.id;
        if !std::mem::take(&mut task.moving) || task.left_class || self.fair.entity(id).on_rq {
            return;
        }
        self.leave_cpu(id);
        self.fair.migrate_task_rq(id, self.fair.entity(id).cpu, cpu);
        let before = self.fair.need_resched(cpu);
        self.enqueued_on_incomplete(id, cpu);
        self.fair.enqueue_task(cpu, id, Enqueue::default(), self.clock(cpu));
        self.align_queue_and_task(cpu, id, first);
        self.note_queued(pid);
        let (kind, now) = (DecisionKind::Balance, self.clock(cpu));
        self.check_preempt(&Check { kind, cpu, pid, now, before, flag });
    }

    /// `schedule()` finds no task to run before it pulls from other CPUs (`sched_balance_newidle`): tasks whose dequeue is
    /// delayed are dequeued by that.
    pub(super) fn newidle_balance(&mut self, cpu: CpuId) {
        if self.runnable(cpu).is_empty() {
            self.fair.pick_task(cpu, self.clock(cpu));
        }
    }

    /// The current task is dequeued, unless it was already.
    pub(super) fn block(&mut self, cpu: CpuId, special: bool) {
        let awake = |curr: &TaskId| self.fair.entity(*curr).on_rq && !self.fair.entity(*curr).sched_delayed;
        if let Some(curr) = self.fair.curr(cpu).filter(awake) {
            let complete = self.queues_known(curr);
            self.fair.dequeue_task(cpu, curr, Dequeue { sleep: true, special, ..Dequeue::default() }, self.clock(cpu));
            if !complete {
                self.dequeued_from_incomplete(curr);
            }
        }
    }

    /// `__schedule`.
    pub(super) fn switch(&mut self, switch: &Switch) {
        let Switch { cpu, prev, prev_state, next, next_is_fair } = *switch;
        if let Some(id) = self.task(prev).filter(|id| self.fair.curr(cpu) != Some(*id)) {
            self.tally.desyncs += u64::from(self.fair.curr(cpu).is_some() || self.fair.entity(id).on_rq);
            self.run_anyway(cpu, prev);
        }
        if prev_state != PrevState::Runnable && self.task(prev).is_some() {
            self.block(cpu, prev_state == PrevState::Special);
        }
        if next_is_fair {
            self.queue_anyway(cpu, next);
            self.judge_pick(cpu, next, true);
        } else if next == 0 {
            // The fair class was asked and found at most tasks whose dequeue is delayed; it dequeues them.
            let runnable = self.fair.pick_task(cpu, self.clock(cpu));
            self.tally.desyncs += u64::from(runnable.is_some());
        }
        let now = self.clock(cpu);
        self.cpus[cpu.index()].clock = now;
        if self.fair.curr(cpu).is_none() {
            self.cpus[cpu.index()].charged_at = self.now;
        }
        self.fair.switch_to(cpu, self.task(next).filter(|_| next_is_fair), now);
        match next {
            0 => self.fair.enter_idle(cpu, now),
            _ => self.fair.exit_idle(cpu, now),
        }
        self.note_queued(prev);
        self.fair.clear_resched(cpu);
        self.end_series(cpu);
    }

    /// `__schedule` that picked the running task again.
    pub(super) fn repick(&mut self, cpu: CpuId, certain: bool) {
        if let Some(curr) = self.fair.curr(cpu) {
            self.judge_pick(cpu, self.pid(curr), certain);
            self.fair.switch_to(cpu, Some(curr), self.clock(cpu));
            self.fair.clear_resched(cpu);
            self.end_series(cpu);
        }
    }
}
