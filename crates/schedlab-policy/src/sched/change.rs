//! Attribute changes from outside: nice, policy, slice, affinity, and the moves that follow (kernel/sched/core.c,
//! syscalls.c).
//!
//! Left out: `sched_setaffinity`'s wait for the stopper; the caller moves the task when it can.

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

use crate::fair::{Dequeue, Enqueue};
use crate::group_id::GroupId;
use crate::{FairPolicy, Resched, Sched, WakeKind};

impl Sched {
    /// `set_user_nice`. [`Resched`] is for the task's CPU, here and below.
    pub fn set_nice(&mut self, task: TaskId, nice: i8, now: Nanos) -> Resched {
        let resched = self.fair.set_user_nice(task, nice, now);
        self.tasks[task.index()].attr.nice = self.fair.entity(task).nice;
        // Its check for preemption may have let delayed tasks go (7.x), here and below.
        self.sync(self.cpu_of(task));
        resched
    }

    /// `sched_setscheduler` to a policy of the fair class.
    pub fn set_policy(&mut self, task: TaskId, policy: FairPolicy, now: Nanos) -> Resched {
        self.tasks[task.index()].attr.policy = policy;
        let resched = match self.rt.policy(task) {
            Some(_) => self.leave_rt(task, policy, now),
            None => self.fair.set_policy(task, policy, now),
        };
        self.sync(self.cpu_of(task));
        // Whether the CPU has SCHED_IDLE tasks only may have changed without its number of tasks.
        self.refresh_idle(self.cpu_of(task));
        resched
    }

    /// `sched_setattr(sched_runtime)`; `None` = back to the base slice.
    pub fn set_slice(&mut self, task: TaskId, slice: Option<Nanos>, now: Nanos) -> Resched {
        self.tasks[task.index()].attr.slice = slice;
        self.fair.set_slice(task, slice, now)
    }

    /// `sched_move_task`: another task group, which its children to come inherit.
    pub fn move_to_group(&mut self, task: TaskId, group: GroupId, now: Nanos) -> Resched {
        self.tasks[task.index()].attr.group = group;
        let resched = self.fair.sched_move_task(task, group, now);
        self.sync(self.cpu_of(task));
        resched
    }

    /// `sched_setaffinity`. `Some(cpu)`: the task is queued or running where it no longer may; the caller moves it
    /// there with [`Sched::move_task`] (the kernel's stopper). A set without any CPU of the machine changes nothing.
    pub fn set_affinity(&mut self, task: TaskId, affinity: Option<CpuMask>, now: Nanos) -> Option<CpuId> {
        let all = *self.topology.all();
        let wanted = affinity.map_or(all, |mask| mask.and(&all));
        if wanted.is_empty() {
            return None;
        }
        let before = self.tasks[task.index()].affinity.take();
        self.tasks[task.index()].set_affinity(Some(&wanted), &self.topology);
        if before != self.tasks[task.index()].affinity {
            self.fair.do_set_cpus_allowed(task, now);
        }
        if wanted.has(self.cpu_of(task)) || !self.on_rq(task) {
            return None;
        }
        self.any_and_distribute(&wanted)
    }

    /// `move_queued_task`: moves a queued task, taking it off its CPU first if it is running (the caller then picks on
    /// the old CPU). [`Resched`] is for the new CPU.
    pub fn move_task(&mut self, task: TaskId, cpu: CpuId, now: Nanos) -> Resched {
        let from = self.cpu_of(task);
        if from == cpu || !self.on_rq(task) {
            return Resched::No;
        }
        if self.rt.policy(task).is_some() {
            return self.move_rt(task, from, cpu, now);
        }
        if self.fair.curr(from) == Some(task) {
            self.fair.put_prev_task(from, now);
        }
        self.fair.dequeue_task(from, task, Dequeue { migrating: true, ..Dequeue::default() }, now);
        self.sync(from);
        self.set_task_cpu(task, cpu, now);
        self.fair.enqueue_task(cpu, task, Enqueue { migrated: true, ..Enqueue::default() }, now);
        self.sync(cpu);
        self.wakeup_preempt(cpu, task, WakeKind::Wakeup { sync: false }, false, now)
    }
}
