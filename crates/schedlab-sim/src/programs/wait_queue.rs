//! The wait queues of pipes, sockets and gates that several CPUs use: who waits for their locks.
//!
//! `__wake_up` holds the lock of a queue until it has woken the last of its tasks (kernel/sched/wait.c). A task that begins to
//! wait takes it as well (`prepare_to_wait`), and one that polled takes it once more when it has been woken
//! (`poll_freewait`); a task that was woken from read() or write() has been taken off the queue by its waker.
//!
//! How long waking takes is not known when it begins, as the search for a CPU depends on what happens meanwhile. The hold is
//! the typical time of a wakeup and of its lines, from each task's last CPU.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_trace::{Lock as LockKind, Sink};

use super::objects::Object;
use super::running::Running;
use crate::kernel::lock_waited;
use crate::machine::{touched, Lines, Lock, Machine};

/// Of a channel, the queue of readers; of a gate, the only one.
pub const READERS: usize = 0;
/// Of a channel, the queue of writers.
pub const WRITERS: usize = 1;

/// `wait_queue_head`.
#[derive(Clone, Default, Debug)]
pub struct WaitQueue {
    /// A socket's `sk_wq`; never touched for a pipe, whose queues are in its own first line.
    lines: Lines,
    lock: Lock,
    walk: Walk,
}

/// The last walk over the tasks of a queue.
#[derive(Clone, Copy, Default, Debug)]
struct Walk {
    /// The CPU that walks: it never waits for itself.
    cpu: Option<CpuId>,
    from: Nanos,
    until: Nanos,
    /// After so long the lock is free for a moment: those who wait for it then go first.
    step: Nanos,
}

impl Walk {
    /// When one who wants the lock at `at` may have it, as far as the walk is concerned.
    fn pauses_after(&self, cpu: CpuId, at: Nanos) -> Nanos {
        if at < self.from || at >= self.until || self.step == 0 || self.cpu == Some(cpu) {
            return at;
        }
        let steps = (at - self.from) / self.step + 1;
        self.until.min(self.from + steps * self.step)
    }
}

impl WaitQueue {
    /// Whether anyone sleeps (`skwq_has_sleeper`): how long reading that takes.
    #[inline]
    pub fn look(&mut self, machine: &mut Machine, cpu: CpuId) -> Nanos {
        machine.read_lines(cpu, &mut self.lines, touched::SOCKET_WAITERS)
    }

    /// Takes the lock at `at` for `hold`: how long the taker waits.
    fn take(&mut self, cpu: CpuId, at: Nanos, hold: Nanos, slowed: Nanos) -> Nanos {
        let free = self.walk.pauses_after(cpu, at);
        free - at + self.lock.take_polling(free, hold, slowed)
    }

    /// Takes the lock at `at` for a walk over tasks of which each takes `each`: how long the taker waits.
    fn take_to_walk(&mut self, cpu: CpuId, at: Nanos, tasks: usize, each: Nanos, pause: Option<u32>) -> Nanos {
        let free = if self.walk.cpu == Some(cpu) { at } else { self.walk.until.max(at) };
        let from = free + self.lock.take(free, 0);
        let step = each * pause.map_or(tasks as u64, u64::from);
        self.walk = Walk { cpu: Some(cpu), from, until: from + each * tasks as u64, step };
        from - at
    }
}

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
        let (cpu, at, socket) = (self.cpu, self.local_time(), is_socket(self, queue));
        let machine = &mut *self.machine;
        let Some(shared) = self.programs.shared.get_mut(queue.object as usize) else { return };
        let waiters = &mut shared.queues[queue.side];
        let slowed = machine.slows_holder(cpu, &waiters.lines);
        let lines = if socket { machine.write_lines(cpu, &mut waiters.lines, touched::SOCKET_WAITERS) } else { 0 };
        let mut wait = 0;
        if machine.has_locks() {
            wait = waiters.take(cpu, at, machine.atomic_time + lines, slowed);
        }
        machine.charge_stall(cpu, wait + lines);
        lock_waited(self.run, self.kernel, cpu, LockKind::WaitQueue, wait);
    }

    /// The running task is about to wake these tasks, which it does with the lock of their queue held.
    pub fn lock_wait_queue(&mut self, queue: Queue, tasks: &[TaskId]) {
        let (cpu, at, socket) = (self.cpu, self.local_time(), is_socket(self, queue));
        let pause = self.kernel.wait_queue_break;
        let each = match tasks {
            [] => 0,
            tasks => tasks.iter().map(|task| self.waking_takes(*task)).sum::<Nanos>() / tasks.len() as Nanos,
        };
        let machine = &mut *self.machine;
        let Some(shared) = self.programs.shared.get_mut(queue.object as usize) else { return };
        let waiters = &mut shared.queues[queue.side];
        let lines = if socket { machine.write_lines(cpu, &mut waiters.lines, touched::SOCKET_WAITERS) } else { 0 };
        let mut wait = 0;
        if machine.has_locks() {
            wait = waiters.take_to_walk(cpu, at + lines, tasks.len(), each, pause);
        }
        machine.charge_stall(cpu, wait + lines);
        lock_waited(self.run, self.kernel, cpu, LockKind::WaitQueue, wait);
    }

    /// The typical time of a wakeup with its lines, from the CPU on which the task ran.
    fn waking_takes(&self, task: TaskId) -> Nanos {
        const LINES: u32 = touched::TASK_WAKE + touched::TASK_ENTITY + touched::RUNQUEUE;
        let line = self.machine.line_time(self.cpu, self.kernel.sched.cpu_of(task));
        self.machine.wakeup_time + line * u64::from(LINES)
    }
}

fn is_socket<S: Sink>(x: &Running<S>, queue: Queue) -> bool {
    matches!(&x.programs.objects[queue.object as usize], Object::Channel(channel) if channel.is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_who_wants_the_lock_waits_for_the_end_of_a_walk_or_its_next_pause() {
        for (pause, waits) in [(None, [1_000, 600, 0]), (Some(4), [400, 400, 0])] {
            let mut queue = WaitQueue::default();
            assert_eq!(queue.take_to_walk(CpuId(0), 5_000, 10, 100, pause), 0);
            let found = [5_000, 5_400, 6_000].map(|at| queue.clone().take(CpuId(1), at, 10, 0));
            assert_eq!(found, waits, "{pause:?}");
            let another = |cpu| queue.clone().take_to_walk(CpuId(cpu), 5_500, 1, 100, pause);
            assert_eq!([another(1), another(0)], [500, 0], "another walk begins after this one");
        }
    }

    proptest! {
        /// Nobody gets the lock before the walk's next pause, and all of them have it one after the other.
        #[test]
        fn takers_queue(
            (tasks, each, pause) in (1..100usize, 1..500u64, prop::option::of(1..70u32)),
            gaps in prop::collection::vec(0..2_000u64, 1..40),
        ) {
            let mut queue = WaitQueue::default();
            queue.take_to_walk(CpuId(0), 10_000, tasks, each, pause);
            let (walk, mut at, mut free) = (queue.walk, 10_000, 0);
            for gap in gaps {
                at += gap;
                let got = at + queue.take(CpuId(1), at, 50, 0);
                prop_assert!(got >= free && (got > at || at >= walk.until));
                if got > free {
                    let pauses = got == walk.until || (got - walk.from) % walk.step == 0;
                    prop_assert!(got - at <= walk.step && (pauses || at >= walk.until && got == at));
                }
                free = got + 50;
            }
        }
    }
}
