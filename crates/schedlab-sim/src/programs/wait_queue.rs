//! Contention for the wait queues of pipes, sockets and gates.
//!
//! `__wake_up` holds the lock of a queue until it has woken the last of its tasks (kernel/sched/wait.c). A task that
//! begins to wait takes it as well (`prepare_to_wait`), and one that polled takes it once more when it has been woken
//! (`poll_freewait`); a task that was woken from read() or write() has been taken off the queue by its waker.
//!
//! The duration of the wakeups is not known when they begin, since the search for a CPU depends on what happens
//! meanwhile. The hold time is therefore the typical time of a wakeup and of its lines, from the last CPU of each task.

use schedlab_model::{Nanos, TaskId};
use schedlab_trace::{Lock as LockKind, Sink};

use super::objects::Object;
use super::running::Running;
use crate::kernel::lock_waited;
use crate::machine::touched;

/// Which wait queue of which object.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    pub object: u32,
    pub side: usize,
}

impl<S: Sink> Running<'_, '_, S> {
    /// The running task enters the queue (`prepare_to_wait`, `__pollwait`) or leaves it (`poll_freewait`).
    #[inline(never)]
    pub fn change_wait_queue(&mut self, queue: Queue) {
        let (cpu, at, socket) = (self.cpu, self.arrival(), is_socket(self, queue));
        let machine = &mut *self.machine;
        let Some(shared) = self.programs.shared.get_mut(queue.object as usize) else { return };
        let waiters = &mut shared.queues[queue.side];
        let before = waiters.lines;
        let lines = if socket { machine.write_lines(cpu, &mut waiters.lines, touched::SOCKET_WAITERS) } else { 0 };
        let mut wait = 0;
        if machine.has_locks() {
            wait = waiters.take(cpu, at, machine.atomic_time + lines, || machine.slows_holder(cpu, &before));
        }
        machine.charge_stall(cpu, wait + lines);
        lock_waited(self.run, self.kernel, cpu, LockKind::WaitQueue, wait);
    }

    /// The running task wakes these tasks next, with the lock of their queue held.
    pub fn lock_wait_queue(&mut self, queue: Queue, tasks: &[TaskId]) {
        let (cpu, at, socket) = (self.cpu, self.arrival(), is_socket(self, queue));
        let pause = self.kernel.wait_queue_break;
        let each = match tasks {
            [] => 0,
            [task] => self.waking_takes(*task),
            tasks => tasks.iter().map(|task| self.waking_takes(*task)).sum::<Nanos>() / tasks.len() as Nanos,
        };
        let machine = &mut *self.machine;
        let Some(shared) = self.programs.shared.get_mut(queue.object as usize) else { return };
        let waiters = &mut shared.queues[queue.side];
        let lines = if socket { machine.write_lines(cpu, &mut waiters.lines, touched::SOCKET_WAITERS) } else { 0 };
        let mut wait = 0;
        if machine.has_locks() {
            wait = waiters.take_to_walk(cpu, at.after(lines), tasks.len(), each, pause);
        }
        machine.charge_stall(cpu, wait + lines);
        lock_waited(self.run, self.kernel, cpu, LockKind::WaitQueue, wait);
    }

    /// The typical time of a wakeup with its lines, from the CPU on which the task ran.
    fn waking_takes(&self, task: TaskId) -> Nanos {
        const STEPS: u32 = touched::TASK_WAKE + touched::TASK_ENTITY + touched::RUNQUEUE;
        let line = self.machine.line_time(self.cpu, self.kernel.sched.cpu_of(task));
        self.machine.wakeup_time + line * u64::from(STEPS)
    }
}

fn is_socket<S: Sink>(x: &Running<S>, queue: Queue) -> bool {
    matches!(&x.programs.objects[queue.object as usize], Object::Channel(channel) if channel.is_socket())
}
