//! A spinlock of the kernel: its owner and the tasks that wait for it.
//!
//! Follows kernel/locking/qspinlock.c, qspinlock_paravirt.h and arch/powerpc/lib/qspinlock.c of 6.12.117. Left out: the
//! pending bit of the native lock, by which a single waiter spins without a queue node, and nested waits of one CPU
//! (interrupts).

use std::collections::VecDeque;

use schedlab_model::TaskId;

use crate::kernel::Spinlocks;

/// A spinlock of the kernel.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct KernelLock {
    /// The holder, or the first waiter to which the lock has been handed.
    pub owner: Option<TaskId>,
    /// Waiting tasks in order of arrival. Those that have not queued yet are at the end.
    pub queue: VecDeque<LockWaiter>,
    /// The pending bit of a paravirtual lock: its first waiter spins, so that no other task may take the lock.
    /// `_Q_MUST_Q_VAL` of powerpc: it has spun for long.
    pending: bool,
}

/// A task that waits for a spinlock of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockWaiter {
    /// The task.
    pub task: TaskId,
    /// Work that it has spent spinning since it last halted.
    pub spun: u64,
    /// Work until its next action other than polling the lock.
    pub piece: u64,
    /// It has a node in the queue. One that has none tries to take a paravirtual lock as long as nothing is pending.
    pub queued: bool,
    /// It has seen the vCPU of the holder wait for a CPU.
    pub sleepy: bool,
}

impl KernelLock {
    /// A task that did not get the lock waits (`pv_hybrid_queued_unfair_trylock`): it queues, except while the first
    /// waiter of a paravirtual lock has not set the pending bit.
    pub fn arrive(&mut self, kind: Spinlocks, task: TaskId) {
        let first = self.queue.is_empty();
        self.pending |= first && kind != Spinlocks::Overtaken;
        let queued = kind != Spinlocks::Paravirt || self.pending;
        self.queue.push_back(LockWaiter { task, spun: 0, piece: 0, queued, sleepy: false });
    }

    /// Whether the task is the first waiter.
    pub fn is_first(&self, task: TaskId) -> bool {
        self.queue.front().is_some_and(|first| first.task == task)
    }

    /// The first waiter executes (`set_pending` in pv_wait_head_or_lock): the others queue.
    pub fn first_spins(&mut self) {
        self.pending = true;
        self.queue.iter_mut().for_each(|waiter| waiter.queued = true);
    }

    /// The first waiter halts (`clear_pending`).
    pub fn first_halts(&mut self) {
        self.pending = false;
    }

    /// Whether a task may take the lock now, given how the kernel's spinlocks work.
    pub fn is_free_for(&self, kind: Spinlocks, task: TaskId) -> bool {
        if let Some(owner) = self.owner {
            return owner == task;
        }
        match kind {
            Spinlocks::TestAndSet => true,
            Spinlocks::Queued | Spinlocks::Sleeping => self.queue.is_empty() || self.is_first(task),
            Spinlocks::Overtaken => {
                let queued = self.queue.iter().any(|waiter| waiter.task == task);
                self.is_first(task) || !queued && !self.pending
            }
            Spinlocks::Paravirt => {
                let queued = self.queue.iter().any(|waiter| waiter.task == task && waiter.queued);
                self.is_first(task) || !queued && !self.pending || self.queue.is_empty()
            }
        }
    }

    /// Whether only the first waiter may take the lock.
    pub fn must_queue(&self) -> bool {
        self.pending
    }

    /// The task gets the lock. True: there is another first waiter, which has not set the pending bit.
    pub fn take(&mut self, task: TaskId) -> bool {
        self.owner = Some(task);
        let was_first = self.is_first(task);
        self.queue.retain(|waiter| waiter.task != task);
        self.pending &= !was_first;
        was_first && !self.queue.is_empty()
    }

    /// The tasks that poll the lock when it is released, the one that gets it first: the first waiter, or with
    /// test-and-set any task; with a paravirtual lock without a pending bit also those that have not queued.
    pub fn candidates(&self, kind: Spinlocks) -> Vec<TaskId> {
        let looks = |(place, waiter): (usize, &LockWaiter)| {
            let unfair = kind == Spinlocks::TestAndSet || kind == Spinlocks::Paravirt && !waiter.queued;
            (place == 0 || unfair).then_some(waiter.task)
        };
        self.queue.iter().enumerate().filter_map(looks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(1);
    const B: TaskId = TaskId(2);
    const C: TaskId = TaskId(3);
    const D: TaskId = TaskId(4);

    fn held_by_a(kind: Spinlocks, waiters: &[TaskId]) -> KernelLock {
        let mut lock = KernelLock { owner: Some(A), ..KernelLock::default() };
        waiters.iter().for_each(|task| lock.arrive(kind, *task));
        lock
    }

    /// As long as the first waiter has not spun for long, a task that comes may overtake the queue.
    #[test]
    fn a_queue_of_powerpc_is_overtaken_until_its_first_waiter_forbids_it() {
        let kind = Spinlocks::Overtaken;
        let mut lock = held_by_a(kind, &[B, C]);
        lock.owner = None;
        assert_eq!([B, C, D].map(|task| lock.is_free_for(kind, task)), [true, false, true]);
        assert_eq!(lock.candidates(kind), [B]);
        lock.first_spins();
        assert_eq!([B, C, D].map(|task| lock.is_free_for(kind, task)), [true, false, false]);
        assert!(lock.take(B) && !lock.must_queue());
    }

    #[test]
    fn a_queued_lock_is_free_for_its_first_waiter_only() {
        let mut lock = held_by_a(Spinlocks::Queued, &[B, C]);
        lock.owner = None;
        let free = [B, C, D].map(|task| lock.is_free_for(Spinlocks::Queued, task));
        assert_eq!((free, lock.candidates(Spinlocks::Queued)), ([true, false, false], vec![B]));
        let free = [B, C, D].map(|task| lock.is_free_for(Spinlocks::TestAndSet, task));
        assert_eq!((free, lock.candidates(Spinlocks::TestAndSet)), ([true, true, true], vec![B, C]));
    }

    /// While the first waiter has halted, a task that comes does not queue and may take the lock; those in the queue
    /// may not.
    #[test]
    fn a_paravirtual_lock_can_be_stolen_only_by_tasks_that_are_not_queued() {
        let kind = Spinlocks::Paravirt;
        let mut lock = held_by_a(kind, &[B, C]);
        lock.first_halts();
        lock.arrive(kind, D);
        lock.owner = None;
        assert_eq!([B, C, D].map(|task| lock.is_free_for(kind, task)), [true, false, true]);
        assert_eq!(lock.candidates(kind), [B, D]);
        // It was kicked: a task that is not in the queue joins it.
        lock.first_spins();
        assert_eq!([B, C, D].map(|task| lock.is_free_for(kind, task)), [true, false, false]);
        assert!(lock.take(B), "C is the next first waiter");
        lock.owner = None;
        // C has not looked at the lock yet.
        assert_eq!([C, D, A].map(|task| lock.is_free_for(kind, task)), [true, false, true]);
    }
}
