//! Changes of a task's attributes (nice value, policy, slice, affinity) and the moves that they cause
//! (kernel/sched/core.c, syscalls.c).
//!
//! Not modelled: `sched_setaffinity` waiting for the stopper; the caller moves the task when it can.

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

use super::pick::Serve;
use super::{Sched, TaskAttr, WakeKind};
use crate::class::{ClassId, ClassList};
use crate::dl::DlPolicy;
use crate::flags::{Dequeue, Enqueue};
use crate::group_id::GroupId;
use crate::rt::RtPolicy;
use crate::{FairPolicy, Resched};

impl<L: ClassList> Sched<L> {
    /// `set_user_nice`. Here and below, the returned [`Resched`] is for the task's CPU.
    pub fn set_user_nice(&mut self, task: TaskId, nice: i8, now: Nanos) -> Resched {
        self.core.tasks[task.index()].attr.nice = nice.clamp(-20, 19);
        self.every_class().reweight_task(task, nice, now)
    }

    /// `sched_setscheduler` to a policy of the fair class.
    pub fn set_policy(&mut self, task: TaskId, policy: FairPolicy, now: Nanos) -> Resched {
        let attr = TaskAttr { policy, rt: None, dl: None, other: None, ..self.core.attr(task).clone() };
        let resched = self.__sched_setscheduler(task, attr, now);
        // Whether the CPU has only SCHED_IDLE tasks may have changed although its number of tasks has not.
        self.core.refresh_idle(self.cpu_of(task));
        resched
    }

    /// `sched_setscheduler` to a policy of the real-time class.
    pub fn set_rt_policy(&mut self, task: TaskId, policy: RtPolicy, now: Nanos) -> Resched {
        let attr = TaskAttr { rt: Some(policy), dl: None, other: None, ..self.core.attr(task).clone() };
        self.__sched_setscheduler(task, attr, now)
    }

    /// `sched_setattr` to SCHED_DEADLINE. The task has been admitted
    /// ([`Dl::sched_dl_overflow`](crate::dl::Dl::sched_dl_overflow)).
    pub fn set_dl_policy(&mut self, task: TaskId, policy: DlPolicy, now: Nanos) -> Resched {
        let attr = TaskAttr { rt: None, dl: Some(policy), other: None, ..self.core.attr(task).clone() };
        self.__sched_setscheduler(task, attr, now)
    }

    /// `__sched_setscheduler`: sets the policies of `attr` and the class that they belong to.
    pub fn __sched_setscheduler(&mut self, task: TaskId, attr: TaskAttr, now: Nanos) -> Resched {
        let (old, class) = (self.core.class_of(task), self.class_for(&attr));
        let before = std::mem::replace(&mut self.core.tasks[task.index()].attr, attr.clone());
        let resched = if old == class {
            self.class(class).prio_changed(task, &before, &attr, now)
        } else {
            self.change_class(task, old, class, &attr, now)
        };
        self.complete_views();
        resched
    }

    /// `__sched_setscheduler` from one class to another (`check_class_changed`).
    fn change_class(&mut self, task: TaskId, old: ClassId, new: ClassId, attr: &TaskAttr, now: Nanos) -> Resched {
        let cpu = self.cpu_of(task);
        self.class(old).switching_from(task, now);
        let (queued, running) = (self.on_rq(task), self.curr(cpu) == Some(task));
        if queued {
            self.class(old).dequeue_task(cpu, task, Dequeue { save: true, ..Dequeue::default() }, now);
        }
        if running {
            self.put_prev_task(cpu, now);
        }
        self.class(old).switched_from(task, now);
        self.core.set_class(task, new);
        self.class(new).switching_to(task, attr, queued, now);
        if queued {
            self.enqueue_task(cpu, task, Enqueue::default(), now);
        }
        if running {
            self.set_next_task(cpu, task, false, now);
            self.serve(Serve::Update { record: false }, cpu, now);
        }
        if queued {
            self.class(new).switched_to(cpu, task, running, now)
        } else {
            Resched::No
        }
    }

    /// `sched_setattr(sched_runtime)`; `None`: back to the base slice.
    pub fn set_slice(&mut self, task: TaskId, slice: Option<Nanos>, now: Nanos) -> Resched {
        self.core.tasks[task.index()].attr.slice = slice;
        self.every_class().set_slice(task, slice, now)
    }

    /// `sched_move_task`: moves the task to another task group, which its future children inherit.
    pub fn sched_move_task(&mut self, task: TaskId, group: GroupId, now: Nanos) -> Resched {
        self.core.tasks[task.index()].attr.group = group;
        self.every_class().task_change_group(task, group, now)
    }

    /// Sets the affinity, as `sched_setaffinity` does on CPU `this`. `Some(cpu)`: the task is queued or running where
    /// it no longer may; the caller moves it there with [`Sched::move_queued_task`] (the kernel's stopper). A set
    /// without any active CPU changes nothing (EINVAL).
    pub fn set_affinity(&mut self, task: TaskId, affinity: Option<CpuMask>, this: CpuId, now: Nanos) -> Option<CpuId> {
        let all = *self.core.possible.all();
        let wanted = affinity.map_or(all, |mask| mask.and(&all));
        let active = wanted.and(self.core.topology.all());
        if active.is_empty() {
            return None;
        }
        let before = self.core.tasks[task.index()].affinity.take();
        self.core.tasks[task.index()].set_affinity(Some(&wanted), &self.core.possible);
        let changes = before != self.core.tasks[task.index()].affinity;
        let stays = active.has(self.cpu_of(task)) || !self.on_rq(task);
        if !changes && stays {
            return None;
        }
        // The kernel selects a CPU at every change, even if the task need not move.
        let dest = match self.core.rules.affinity_distributes {
            true => self.core.cpumask_any_and_distribute(this, &active),
            false => active.lowest(),
        };
        if changes {
            self.class_of(task).set_cpus_allowed(task, now);
        }
        dest.filter(|_| !stays)
    }

    /// `move_queued_task`: moves a queued task. A running task is taken off its CPU first, and the caller then picks on
    /// the old CPU. [`Resched`] is for the new CPU.
    pub fn move_queued_task(&mut self, task: TaskId, cpu: CpuId, now: Nanos) -> Resched {
        let from = self.cpu_of(task);
        if from == cpu || !self.on_rq(task) {
            return Resched::No;
        }
        if self.curr(from) == Some(task) {
            self.put_prev_task(from, now);
        }
        self.dequeue_task(from, task, Dequeue { migrating: true, ..Dequeue::default() }, now);
        self.set_task_cpu(task, cpu, now);
        self.enqueue_task(cpu, task, Enqueue { migrated: true, ..Enqueue::default() }, now);
        self.wakeup_preempt(cpu, task, WakeKind::Wakeup { sync: false }, false, now)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use std::sync::Arc;

    use schedlab_model::{Topology, MSEC};

    use super::*;
    use crate::{KernelConfig, Version};

    /// A CPU whose only task becomes SCHED_IDLE counts as idle for a search (`sched_idle_cpu`), and no longer when the
    /// task is SCHED_NORMAL again. Before 5.4 it does not.
    #[test]
    fn a_search_sees_a_change_of_the_only_tasks_policy() {
        for (row, sched_idle_counts) in [("5.2", false), ("6.1", true), ("6.12.107", true), ("7.3", true)] {
            let topology = Arc::new(Topology::regular(1, 1, 2, 1, true).unwrap());
            let mut sched = Sched::new(KernelConfig::new(Version::find(row).unwrap(), 2, 250), topology);
            let task = sched.add_task(&TaskAttr { cpu: CpuId(0), ..TaskAttr::default() });
            sched.activate(task, CpuId(0), WakeKind::Wakeup { sync: false }, 0);
            sched.pick_next_task(CpuId(0), 0);
            let seen = |sched: &Sched| (sched.core.idle.is_idle(CpuId(0)), sched.core.idle.is_usable(CpuId(0)));
            assert_eq!(seen(&sched), (false, false), "{row}");
            sched.set_policy(task, FairPolicy::Idle, MSEC);
            assert_eq!(seen(&sched), (false, sched_idle_counts), "{row}");
            sched.set_policy(task, FairPolicy::Normal, 2 * MSEC);
            assert_eq!(seen(&sched), (false, false), "{row}");
        }
    }
}
