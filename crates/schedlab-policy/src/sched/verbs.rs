//! The functions of core code that call the class of a task and keep core's own state with it (`enqueue_task`,
//! `dequeue_task`, `put_prev_task`, `set_next_task`, kernel/sched/core.c and sched.h).

use schedlab_model::{CpuId, Nanos, TaskId};

use super::Sched;
use crate::class::{ClassId, ClassList};
use crate::flags::{Dequeue, Enqueue};

impl<L: ClassList> Sched<L> {
    /// `enqueue_task` on the CPU that the task belongs to.
    #[inline(always)]
    pub fn enqueue_task(&mut self, cpu: CpuId, task: TaskId, flags: Enqueue, now: Nanos) {
        self.class_of(task).enqueue_task(cpu, task, flags, now);
    }

    /// `dequeue_task`. False: the task sleeps but stays queued.
    #[inline(always)]
    pub fn dequeue_task(&mut self, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool {
        self.class_of(task).dequeue_task(cpu, task, flags, now)
    }

    /// `put_prev_task`; the CPU has no running task afterwards.
    pub fn put_prev_task(&mut self, cpu: CpuId, now: Nanos) {
        if let Some(prev) = self.core.curr(cpu) {
            self.class_of(prev).put_prev_task(cpu, prev, now);
            self.core.set_curr(cpu, None);
        }
    }

    /// `set_next_task`: the task gets the CPU, which has no running task; `first`: it was picked.
    pub fn set_next_task(&mut self, cpu: CpuId, task: TaskId, first: bool, now: Nanos) {
        self.class_of(task).set_next_task(cpu, task, first, now);
        self.core.set_curr(cpu, Some(task));
    }

    /// `pick_task` of the highest class that has a task to run: the pick alone, which switches nothing.
    pub fn pick_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        if !self.core.has_higher() {
            return self.class(Self::LOWEST).pick_task(cpu, now);
        }
        (0..L::LEN).map(ClassId).find_map(|class| self.class(class).pick_task(cpu, now))
    }

    /// Clears the requests to reschedule the CPU (`clear_tsk_need_resched`), as a pick does.
    pub fn clear_resched(&mut self, cpu: CpuId) {
        self.every_class().clear_resched(cpu);
    }
}
