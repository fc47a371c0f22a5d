//! Operations that change queues: each is done by the model in the kernel's order, asked for its decision where the
//! kernel decided something, and then put where the kernel is.

use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use schedlab_policy::fair::{Dequeue, Enqueue, TaskState, WakeFlags};
use schedlab_policy::{DelayedLag, Feature, Resched};

use super::Model;
use crate::operation::{First, Flag, Left, Timer};
use crate::tally::Kind;

impl Model {
    /// `scheduler_tick` or `hrtick`, after its accounting. Where either may have fired, only a slice that is used up can be
    /// judged.
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
            self.judge_preemption(Kind::Tick, cpu, curr, resched, flag);
        }
        self.fair.clear_resched(cpu);
    }

    /// `ttwu_do_activate` and the preempt check.
    pub(super) fn wake(
        &mut self,
        (cpu, pid, new): (CpuId, Pid, bool),
        between: (Nanos, Nanos),
        first: Option<First>,
        flag: Flag,
    ) {
        let Some(id) = self.id(pid) else { return };
        let asked = self.fair.need_resched(cpu);
        if self.fair.entity(id).cpu != cpu {
            let from = self.fair.entity(id).cpu;
            self.rehome(pid, from, cpu, 0);
            self.put_on(cpu, pid);
        }
        let now = self.clock_between(cpu, id, between);
        self.cpus[cpu.index()].told_for = None;
        let was_queued = self.fair.entity(id).on_rq;
        if !was_queued {
            self.arrives_unknown(id, cpu);
            self.take_lag(id, first);
        }
        let migrated = self.members.get_mut(&pid).is_some_and(|member| std::mem::take(&mut member.rehomed));
        let flags = Enqueue { wakeup: !new, migrated: migrated && !new, initial: new, delayed: was_queued };
        self.fair.enqueue_task(cpu, id, flags, now);
        if !was_queued {
            self.align(cpu, id, first, new || migrated);
            self.join(pid);
        }
        self.take_over(pid, first);
        self.check_preempt(if new { Kind::Fork } else { Kind::Wakeup }, (cpu, pid, now), asked, flag);
    }

    /// `ttwu_runnable` of a delayed task: up to 6.18 it is requeued before the running task is charged, which happens in
    /// the preempt check; 7.x charges first.
    pub(super) fn requeue_uncharged(&mut self, cpu: CpuId, pid: Pid) {
        let Some(id) = self.id(pid) else { return };
        if self.fair.config.version.rules.delayed_lag == DelayedLag::Heals {
            return;
        }
        let se = self.fair.entity(id);
        if se.on_rq && se.sched_delayed && se.cpu == cpu {
            let now = self.clock(cpu);
            self.fair.enqueue_task(cpu, id, Enqueue { wakeup: true, delayed: true, ..Enqueue::default() }, now);
            self.join(pid);
        }
    }

    fn check_preempt(&mut self, kind: Kind, (cpu, pid, now): (CpuId, Pid, Nanos), asked: Resched, flag: Flag) {
        let (Some(id), Some(curr)) = (self.id(pid), self.fair.curr(cpu)) else { return };
        if curr == id {
            return self.fair.clear_resched(cpu);
        }
        let before = flag.before || asked == Resched::Full || self.cpus[cpu.index()].preempted;
        let flags = WakeFlags { sync: false, fork: kind == Kind::Fork };
        let resched = self.fair.wakeup_preempt(cpu, id, flags, before, now) != Resched::No;
        if self.fair.entity(curr).on_rq {
            self.judge_preemption(kind, cpu, id, resched, flag);
            if let (false, Some(after)) = (before || flag.shared && flag.after == Some(true), flag.after) {
                self.fair.follow_preemption(cpu, id, after);
            }
        }
        self.fair.clear_resched(cpu);
    }

    fn join(&mut self, pid: Pid) {
        let joined = self.next_order();
        if let Some(member) = self.members.get_mut(&pid) {
            member.joined = joined;
        }
    }

    /// A waking task is moved (`migrate_task_rq_fair`). CFS reads the zero point of its old queue without the lock.
    pub(super) fn rehome(&mut self, pid: Pid, from: CpuId, to: CpuId, charged: Nanos) {
        let Some(id) = self.id(pid) else { return };
        self.fair.finish_delayed(id);
        if !self.fair.entity(id).on_rq {
            self.leave_cpu(id);
            self.fair.migrate_load_avg(id, self.clock_now(from));
            let relative = (charged > 0 && !self.eevdf).then(|| self.relative_after(id, (from, to), charged));
            self.fair.migrate_task_rq(id, from, to);
            if let Some(state) = relative {
                self.fair.restore_task(id, state);
            }
            self.members.entry(pid).and_modify(|member| member.rehomed = true);
        }
    }

    /// What a task takes along to another CPU once the running task of its own is charged.
    fn relative_after(&self, id: TaskId, (from, to): (CpuId, CpuId), charged: Nanos) -> TaskState {
        let mut fair = self.fair.clone();
        fair.update_curr_leaf_by(from, charged);
        fair.migrate_task_rq(id, from, to);
        fair.task_state(id)
    }

    /// `detach_task`. A sleeper is moved only where its dequeue was delayed; where it was not, it changes CPU.
    pub(super) fn detach(&mut self, pid: Pid, from: CpuId, to: CpuId) {
        let Some(id) = self.id(pid) else { return };
        if !self.fair.entity(id).on_rq {
            return self.rehome(pid, from, to, 0);
        }
        let from = self.fair.entity(id).cpu;
        let now = self.clock(from);
        self.fair.dequeue_task(from, id, Dequeue { migrating: true, ..Dequeue::default() }, now);
        if self.fair.curr(from) == Some(id) {
            self.fair.put_prev_task(from, now);
        }
        self.fair.migrate_task_rq(id, from, to);
        self.members.entry(pid).and_modify(|member| member.moving = true);
    }

    /// `attach_task`.
    pub(super) fn attach(&mut self, pid: Pid, cpu: CpuId, flag: Flag) {
        let Some(member) = self.members.get_mut(&pid) else { return };
        let id = member.id;
        if !std::mem::take(&mut member.moving) || member.away || self.fair.entity(id).on_rq {
            return;
        }
        self.leave_cpu(id);
        self.fair.migrate_task_rq(id, self.fair.entity(id).cpu, cpu);
        let asked = self.fair.need_resched(cpu);
        self.arrives_unknown(id, cpu);
        self.fair.enqueue_task(cpu, id, Enqueue::default(), self.clock(cpu));
        self.join(pid);
        self.check_preempt(Kind::Balance, (cpu, pid, self.clock(cpu)), asked, flag);
    }

    /// `schedule()` finds nobody to run before it looks for tasks elsewhere (`sched_balance_newidle`): sleepers that were
    /// still queued leave thereby.
    pub(super) fn run_dry(&mut self, cpu: CpuId) {
        if self.rivals(cpu).is_empty() {
            self.fair.pick_task(cpu, self.clock(cpu));
        }
    }

    /// The current task leaves the queue, unless it did already.
    pub(super) fn block(&mut self, cpu: CpuId, special: bool) {
        let awake = |curr: &TaskId| self.fair.entity(*curr).on_rq && !self.fair.entity(*curr).sched_delayed;
        if let Some(curr) = self.fair.curr(cpu).filter(awake) {
            let sure = self.level_known(curr);
            self.fair.dequeue_task(cpu, curr, Dequeue { sleep: true, special, ..Dequeue::default() }, self.clock(cpu));
            if !sure {
                self.left_unknown(curr);
            }
        }
    }

    /// `__schedule`.
    pub(super) fn switch(&mut self, cpu: CpuId, prev: Pid, left: Left, next: Pid, fair: bool) {
        if let Some(id) = self.id(prev).filter(|id| self.fair.curr(cpu) != Some(*id)) {
            self.tally.out_of_step += u64::from(self.fair.curr(cpu).is_some() || self.fair.entity(id).on_rq);
            self.run_anyway(cpu, prev);
        }
        if left != Left::Runnable && self.id(prev).is_some() {
            self.block(cpu, left == Left::Special);
        }
        if fair {
            self.queue_anyway(cpu, next);
            self.judge_pick(cpu, next, true);
        } else if next == 0 {
            // The fair class was asked and found at most sleepers that were still queued, which leave thereby.
            let runnable = self.fair.pick_task(cpu, self.clock(cpu));
            self.tally.out_of_step += u64::from(runnable.is_some());
        }
        let now = self.clock(cpu);
        self.cpus[cpu.index()].clock = now;
        if self.fair.curr(cpu).is_none() {
            self.cpus[cpu.index()].told = self.now;
        }
        self.fair.switch_to(cpu, self.id(next).filter(|_| fair), now);
        match next {
            0 => self.fair.enter_idle(cpu, now),
            _ => self.fair.exit_idle(cpu, now),
        }
        self.join(prev);
        self.fair.clear_resched(cpu);
        self.cpus[cpu.index()].preempted = false;
    }

    /// `schedule()` that came back to the same task.
    pub(super) fn repick(&mut self, cpu: CpuId, sure: bool) {
        if let Some(curr) = self.fair.curr(cpu) {
            self.judge_pick(cpu, self.pid(curr), sure);
            self.fair.switch_to(cpu, Some(curr), self.clock(cpu));
            self.fair.clear_resched(cpu);
            self.cpus[cpu.index()].preempted = false;
        }
    }

    /// The trace says a task runs that the model has elsewhere: the trace is right.
    pub(super) fn run_anyway(&mut self, cpu: CpuId, pid: Pid) {
        let now = self.clock(cpu);
        let lost = self.fair.curr(cpu).is_some();
        self.fair.put_prev_task(cpu, now);
        if lost {
            self.take_again(cpu, now);
        }
        self.queue_anyway(cpu, pid);
        if let Some(id) = self.id(pid) {
            self.fair.set_next_task(cpu, id, now);
        }
    }

    /// The trace says a task is queued on a CPU where the model has not got it: the trace is right.
    fn queue_anyway(&mut self, cpu: CpuId, pid: Pid) {
        self.put_on(cpu, pid);
        let Some(id) = self.id(pid) else { return };
        let now = self.clock(cpu);
        let se = self.fair.entity(id);
        if se.sched_delayed {
            self.fair.enqueue_task(cpu, id, Enqueue { delayed: true, wakeup: true, ..Enqueue::default() }, now);
        } else if !se.on_rq {
            self.tally.out_of_step += 1;
            let wakeup = se.asleep;
            self.fair.enqueue_task(cpu, id, Enqueue { wakeup, ..Enqueue::default() }, now);
        }
    }

    /// A task that the model has on another CPU changes to this one, off any queue.
    fn put_on(&mut self, cpu: CpuId, pid: Pid) {
        let Some(id) = self.id(pid) else { return };
        let (from, on_rq) = (self.fair.entity(id).cpu, self.fair.entity(id).on_rq);
        if from != cpu && on_rq {
            self.tally.out_of_step += 1;
            self.detach(pid, from, cpu);
            self.members.entry(pid).and_modify(|member| member.moving = false);
        } else if from != cpu {
            self.leave_cpu(id);
            self.fair.migrate_task_rq(id, from, cpu);
        }
    }

    /// A task that blocked but whose switch was not seen no longer has its CPU.
    pub(super) fn leave_cpu(&mut self, id: TaskId) {
        let cpu = self.fair.entity(id).cpu;
        if self.fair.curr(cpu) == Some(id) {
            self.cpus[cpu.index()].clock = self.clock(cpu);
            self.fair.put_prev_task(cpu, self.clock(cpu));
        }
    }
}
