//! Wakeups, as the kernel's procedures in the parts that a trace shows.

use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use schedlab_policy::fair::{Enqueue, GroupId};
use schedlab_policy::procedure::{self, try_to_wake_up, ttwu_queue, wake_up_new_task};

use super::driver::{Recorded, Replay};
use super::Model;
use crate::operation::Wakeup;

/// How far the next wakeup of a task has come.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Waking {
    /// Nothing of it has been recorded.
    #[default]
    Ahead,
    /// The same; it is the first, by `wake_up_new_task`.
    New,
    /// Its CPU was selected, and its enqueue follows.
    Selected,
}

impl Model {
    /// `try_to_wake_up` up to `set_task_cpu`. A new task's CPU is set with its enqueue, by `wake_up_new_task`.
    pub(super) fn select_task_rq(&mut self, pid: Pid, from: CpuId, to: CpuId, charged: Nanos) {
        let Some(id) = self.task(pid) else { return };
        if let Some(task) = self.tasks.get_mut(&pid).filter(|task| task.waking != Waking::New) {
            task.waking = Waking::Selected;
            let wakeup = procedure::Wakeup { task: id, waker_cpu: self.at, sync: false, here: false, in_task: true };
            try_to_wake_up(&mut Replay::new(self, Recorded::Selected { pid, from, to, charged }), wakeup);
        }
    }

    /// The rest of a wakeup: the enqueue and the preemption check.
    pub(super) fn wakeup(&mut self, wakeup: &Wakeup) {
        let Wakeup { cpu, pid, new, .. } = *wakeup;
        let Some(id) = self.task(pid) else { return };
        let waking = self.tasks.get_mut(&pid).map(|task| std::mem::take(&mut task.waking));
        let (waker_cpu, resched) = (self.at, self.fair().need_resched(cpu));
        let request = procedure::Wakeup { task: id, waker_cpu, sync: false, here: false, in_task: true };
        let driver = &mut Replay::new(self, Recorded::Enqueued { wakeup, resched });
        match waking {
            _ if new => wake_up_new_task(driver, id, waker_cpu),
            Some(Waking::Selected) => ttwu_queue(driver, request, cpu),
            _ => try_to_wake_up(driver, request),
        }
        self.cpus[cpu.index()].charged_for = None;
    }

    /// `enqueue_task` of a wakee. It may still be queued, because its dequeue was delayed.
    pub(super) fn enqueue_wakee(&mut self, id: TaskId, wakeup: &Wakeup, now: Nanos) {
        let Wakeup { cpu, pid, new, first, .. } = *wakeup;
        let was_queued = self.sched.on_rq(id);
        if !was_queued {
            self.enqueued_on_incomplete(id, cpu);
            self.take_lag(id, first);
        }
        let migrated = self.tasks.get_mut(&pid).is_some_and(|task| std::mem::take(&mut task.migrated));
        let flags = Enqueue { wakeup: !new, migrated: migrated && !new, initial: new, delayed: was_queued };
        self.sched.enqueue_task(cpu, id, flags, now);
        if !was_queued {
            self.align_queue(cpu, id, first, new || migrated);
            self.note_queued(pid);
        }
        self.take_state(pid, first);
    }

    /// The enqueue of a wakee for which the running task is not charged, as it is charged in the preemption check only.
    pub(super) fn enqueue_uncharged(&mut self, cpu: CpuId, pid: Pid) {
        let Some(id) = self.task(pid) else { return };
        let (se, rules) = (self.fair().entity(id), self.fair().config.version.rules);
        let queued = se.on_rq;
        let uncharged = match queued {
            // `ttwu_runnable` of a delayed task: up to 7.1 it is requeued before the charge; 7.2 charges first.
            true => !rules.requeue_charges && se.sched_delayed,
            false => self.known(id) && self.enqueue_charges_nobody(cpu, id),
        };
        if uncharged && se.cpu == cpu {
            let now = self.clock(cpu);
            let migrated = self.tasks.get_mut(&pid).is_some_and(|task| !queued && std::mem::take(&mut task.migrated));
            let flags = Enqueue { wakeup: true, migrated, delayed: queued, ..Enqueue::default() };
            self.sched.enqueue_task(cpu, id, flags, now);
            self.note_queued(pid);
        }
    }

    /// Whether the running task is charged after a task of another group is queued, in the preemption check or by
    /// `schedule()`: up to 6.8 a new weight of a waiting group charges nobody. The probe of the charge shows the queue
    /// with that weight, and where the weight depends on V (from 6.7 on), the order matters.
    pub(super) fn enqueue_charges_nobody(&self, cpu: CpuId, id: TaskId) -> bool {
        self.is_eevdf() && !self.fair().config.version.rules.reweight_charges && self.waits_beside_curr(cpu, id)
    }

    /// Whether a group of the task, or one above, is queued where the running task is queued itself.
    fn waits_beside_curr(&self, cpu: CpuId, id: TaskId) -> bool {
        let Some(curr) = self.sched.curr(cpu) else { return false };
        let (mut group, beside) = (self.fair().group_of(id), self.fair().group_of(curr));
        while group != GroupId::ROOT && group != beside {
            let above = self.fair().group(group).parent;
            if above == beside {
                return self.fair().group_entity(group, cpu).is_some_and(|se| se.on_rq);
            }
            group = above;
        }
        false
    }

    /// The order in which tasks were queued, for the baselines.
    pub(super) fn note_queued(&mut self, pid: Pid) {
        let order = self.next_order();
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.queued_at = order;
        }
    }
}
