//! Tasks that change CPU: waking ones, and those that the balancer or the migration thread moves.

use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use schedlab_policy::fair::{Dequeue, Enqueue, TaskState};

use super::preempt::Check;
use super::Model;
use crate::decision::DecisionKind;
use crate::operation::{First, Flag};

/// How far a task has come between `detach_task` and the end of `attach_task`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Moving {
    /// It is not moving.
    #[default]
    No,
    /// It is on no queue.
    Detached,
    /// It is queued, and the preemption check is still to come.
    Enqueued,
}

impl Model {
    /// The record has a waking task on this CPU, whether or not its selection was recorded.
    pub(super) fn adopt_cpu(&mut self, pid: Pid, cpu: CpuId) {
        let Some(id) = self.task(pid) else { return };
        let from = self.sched.cpu_of(id);
        if from != cpu {
            self.set_task_cpu(pid, from, cpu, 0);
            self.put_on(cpu, pid);
        }
    }

    /// `migrate_task_rq_fair` of a waking task. CFS reads the zero point of the previous queue without the lock.
    pub(super) fn set_task_cpu(&mut self, pid: Pid, from: CpuId, to: CpuId, charged: Nanos) {
        let Some(id) = self.task(pid) else { return };
        self.sched.follow().finish_delayed(id);
        if !self.sched.on_rq(id) {
            self.leave_cpu(id);
            let now = self.clock_now(from);
            let relative = (charged > 0 && !self.eevdf).then(|| self.relative_after_charge(id, from, to, charged));
            self.sched.follow().set_task_cpu(id, from, to, Some(now));
            if let Some(state) = relative {
                self.sched.follow().restore().task(id, state);
            }
            self.tasks.modify(pid, |task| task.migrated = true);
        }
    }

    /// The state that a task takes to another CPU after the running task of its own is charged.
    fn relative_after_charge(&self, id: TaskId, from: CpuId, to: CpuId, charged: Nanos) -> TaskState {
        let mut sched = self.sched.clone();
        sched.follow().update_curr(from, charged);
        sched.follow().set_task_cpu(id, from, to, None);
        sched.fair.view().task_state(id)
    }

    /// `detach_task`. A sleeping task is detached only if its dequeue was delayed; otherwise it changes CPU.
    pub(super) fn detach(&mut self, pid: Pid, from: CpuId, to: CpuId) {
        let Some(id) = self.task(pid) else { return };
        if !self.sched.on_rq(id) {
            return self.set_task_cpu(pid, from, to, 0);
        }
        let from = self.sched.cpu_of(id);
        let now = self.clock(from);
        self.sched.dequeue_task(from, id, Dequeue { migrating: true, ..Dequeue::default() }, now);
        if self.sched.curr(from) == Some(id) {
            self.sched.put_prev_task(from, now);
        }
        self.sched.follow().set_task_cpu(id, from, to, Some(now));
        self.tasks.modify(pid, |task| task.moving = Moving::Detached);
    }

    /// `attach_task`.
    pub(super) fn attach(&mut self, pid: Pid, cpu: CpuId, first: Option<First>, flag: Flag) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let (id, left_class) = (task.id, task.left_class);
        let moving = std::mem::take(&mut task.moving);
        if moving == Moving::No || left_class || moving == Moving::Detached && self.sched.on_rq(id) {
            return;
        }
        let before = self.fair().need_resched(cpu);
        if moving == Moving::Detached {
            self.enqueue_moved(id, cpu);
            self.align_queue_and_task(cpu, id, first);
            self.note_queued(pid);
        }
        let (kind, now) = (DecisionKind::Balance, self.clock(cpu));
        self.check_preempt(&Check { kind, cpu, pid, now, before, flag });
    }

    fn enqueue_moved(&mut self, id: TaskId, cpu: CpuId) {
        self.leave_cpu(id);
        let from = self.sched.cpu_of(id);
        self.sched.follow().set_task_cpu(id, from, cpu, None);
        self.enqueued_on_incomplete(id, cpu);
        self.sched.enqueue_task(cpu, id, Enqueue::default(), self.clock(cpu));
    }

    /// The enqueue of a moved task ahead of a charge that it does not make.
    pub(super) fn enqueue_moved_uncharged(&mut self, pid: Pid, cpu: CpuId) {
        let Some(task) = self.tasks.get(&pid) else { return };
        let id = task.id;
        let detached = task.moving == Moving::Detached && !task.left_class && !self.sched.on_rq(id);
        if detached && self.known(id) && self.enqueue_charges_nobody(cpu, id) {
            self.enqueue_moved(id, cpu);
            self.tasks.modify(pid, |task| task.moving = Moving::Enqueued);
            self.note_queued(pid);
        }
    }
}
