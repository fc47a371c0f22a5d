//! A read-write semaphore: which tasks acquire it, which may spin for it, and which are woken.
//!
//! Follows kernel/locking/rwsem.c of 6.12.117. All readers are recorded as owners; the kernel records the last one
//! only. Left out: signals, and the order in which a reader and the release of a writer change the count at the same
//! moment.

use std::collections::VecDeque;

use schedlab_model::{Nanos, TaskId};

/// `MAX_READERS_WAKEUP`.
const READERS_WOKEN: usize = 0x100;

/// A read-write semaphore.
#[derive(Clone, Default, Debug)]
pub struct RwSem {
    writer: Option<TaskId>,
    readers: Vec<TaskId>,
    waiters: VecDeque<Waiter>,
    /// Tasks that spin, the holder of the `osq` first.
    spinners: Vec<Spinner>,
    /// RWSEM_FLAG_HANDOFF: only the first waiter may acquire it.
    handoff: bool,
    /// RWSEM_NONSPINNABLE: a writer has spun on readers for longer than the threshold.
    nonspinnable: bool,
}

/// A task in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiter {
    pub task: TaskId,
    pub write: bool,
    /// From then on it may request the handoff (`waiter.timeout`).
    pub timeout: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Spinner {
    task: TaskId,
    write: bool,
    /// Until when it spins on readers (`rspin_threshold`), once readers have been seen.
    limit: Option<Nanos>,
}

/// The result of a step of optimistic spinning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spin {
    /// The task has acquired the semaphore.
    Acquired,
    /// It continues to spin; while readers hold the semaphore, until then at most.
    Continues(Option<Nanos>),
    /// It stops spinning.
    Stops,
}

impl RwSem {
    /// Whether the task holds it.
    pub fn is_held_by(&self, task: TaskId) -> bool {
        self.writer == Some(task) || self.readers.contains(&task)
    }

    /// The writer that holds it.
    pub fn writer(&self) -> Option<TaskId> {
        self.writer
    }

    /// Whether no task holds it or waits for it.
    pub fn is_idle(&self) -> bool {
        self.is_free() && self.waiters.is_empty() && self.spinners.is_empty()
    }

    /// Whether a reader would acquire it at once.
    pub fn is_readable(&self) -> bool {
        self.writer.is_none() && self.waiters.is_empty()
    }

    fn is_free(&self) -> bool {
        self.writer.is_none() && self.readers.is_empty()
    }

    /// Acquires it without waiting. A reader may steal it from sleeping waiters (`rwsem_down_read_slowpath`); then the
    /// readers at the head of the queue are `woken`.
    pub fn try_lock(&mut self, task: TaskId, write: bool, all: bool, woken: &mut Vec<TaskId>) -> bool {
        if write {
            let free = self.is_free() && self.waiters.is_empty() && self.spinners.is_empty();
            if free {
                self.take(task, true);
            }
            return free;
        }
        let steals = self.readers.is_empty() && !self.handoff;
        if self.writer.is_some() || !self.waiters.is_empty() && !steals {
            return false;
        }
        self.take(task, false);
        self.rwsem_mark_wake(all, woken);
        true
    }

    fn take(&mut self, task: TaskId, write: bool) {
        if write {
            self.writer = Some(task);
        } else {
            self.readers.push(task);
        }
        self.nonspinnable = false;
    }

    /// The task begins to spin (`osq_lock`).
    pub fn spin(&mut self, task: TaskId, write: bool) {
        self.spinners.push(Spinner { task, write, limit: None });
    }

    /// The tasks that spin, or were preempted while they did, in order of arrival.
    pub fn spinners(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.spinners.iter().map(|spinner| spinner.task)
    }

    /// A spinner acquires it if it can (`rwsem_try_write_lock_unqueued`).
    pub fn try_spinner(&mut self, task: TaskId) -> bool {
        let Some(place) = self.spinners.iter().position(|spinner| spinner.task == task) else { return false };
        let write = self.spinners[place].write;
        let free = if write { self.is_free() } else { self.writer.is_none() };
        if !free || self.handoff {
            return false;
        }
        self.spinners.remove(place);
        self.take(task, write);
        true
    }

    /// `rwsem_optimistic_spin`: one step of the first spinner. `runs`: the writer that holds the semaphore, if any, is
    /// on a CPU.
    pub fn rwsem_optimistic_spin(
        &mut self,
        task: TaskId,
        now: Nanos,
        realtime: bool,
        runs: bool,
        on_readers: bool,
    ) -> Spin {
        if self.try_spinner(task) {
            return Spin::Acquired;
        }
        let (held, readers) = (self.writer.is_some(), self.readers.len());
        let stays = if held { runs } else { on_readers && !realtime && !self.nonspinnable && readers > 0 };
        let Some(place) = self.spinners.iter().position(|spinner| spinner.task == task) else { return Spin::Stops };
        let spinner = &mut self.spinners[place];
        let threshold = now + rwsem_rspin_threshold(readers);
        let limit = if held { None } else { Some(*spinner.limit.get_or_insert(threshold)) };
        spinner.limit = limit;
        let over = limit.is_some_and(|limit| now >= limit);
        self.nonspinnable |= stays && over;
        if stays && !over {
            return Spin::Continues(limit);
        }
        self.spinners.remove(place);
        Spin::Stops
    }

    /// `rwsem_can_spin_on_owner`.
    pub fn rwsem_can_spin_on_owner(&self, realtime: bool, runs: bool, on_readers: bool) -> bool {
        match self.writer {
            Some(_) => runs,
            None => self.readers.is_empty() && !self.handoff || on_readers && !self.nonspinnable && !realtime,
        }
    }

    /// A task that does not spin joins the queue; readers that can have the semaphore are `woken`.
    pub fn queue(&mut self, waiter: Waiter, all: bool, now: Nanos, woken: &mut Vec<TaskId>) {
        self.waiters.push_back(waiter);
        if self.writer.is_none() && !self.readers.is_empty() {
            self.rwsem_mark_wake(all, woken);
        } else if self.is_free() {
            self.rwsem_wake(all, now, woken);
        }
        woken.retain(|other| *other != waiter.task);
    }

    #[cfg(test)]
    fn is_queued(&self, task: TaskId) -> bool {
        self.waiters.iter().any(|waiter| waiter.task == task)
    }

    /// A writer in the queue tries to acquire it (`rwsem_try_write_lock`).
    pub fn try_queued(&mut self, task: TaskId, now: Nanos) -> bool {
        let Some(place) = self.waiters.iter().position(|waiter| waiter.task == task) else { return false };
        let waiter = self.waiters[place];
        if !waiter.write || self.handoff && place > 0 {
            return false;
        }
        if !self.is_free() {
            self.handoff |= now >= waiter.timeout;
            return false;
        }
        self.waiters.remove(place);
        self.handoff = false;
        self.take(task, true);
        true
    }

    /// The first waiter, if it is a writer that has requested the handoff: it spins while a writer runs.
    pub fn handoff_waiter(&self) -> Option<TaskId> {
        self.waiters.front().filter(|first| self.handoff && first.write).map(|first| first.task)
    }

    /// A holder releases it (`up_read`, `up_write`), without waking the waiters. True: no task holds it any more.
    pub fn release(&mut self, task: TaskId) -> bool {
        if self.writer == Some(task) {
            self.writer = None;
        }
        self.readers.retain(|reader| *reader != task);
        let free = self.is_free();
        self.nonspinnable &= !free;
        free
    }

    /// `rwsem_wake`: the first waiter is woken if it is a writer; if it is a reader, the waiting readers get the
    /// semaphore. If a writer has acquired it meanwhile, a reader that has waited for too long requests the handoff.
    pub fn rwsem_wake(&mut self, all: bool, now: Nanos, woken: &mut Vec<TaskId>) {
        match self.waiters.front() {
            Some(first) if first.write => woken.push(first.task),
            Some(_) if self.writer.is_none() => self.rwsem_mark_wake(all, woken),
            Some(first) => self.handoff |= now >= first.timeout,
            None => {}
        }
    }

    /// `downgrade_write`: the writer becomes a reader.
    pub fn downgrade_write(&mut self, task: TaskId, all: bool, woken: &mut Vec<TaskId>) {
        if self.writer == Some(task) {
            self.writer = None;
            self.take(task, false);
            self.rwsem_mark_wake(all, woken);
        }
    }

    /// `rwsem_mark_wake`: if the first waiter is a reader, the waiting readers get the semaphore: all of them, or those
    /// before the first writer.
    fn rwsem_mark_wake(&mut self, all: bool, woken: &mut Vec<TaskId>) {
        if self.waiters.front().is_none_or(|first| first.write) {
            return;
        }
        let (mut granted, mut writer) = (0, false);
        self.waiters.retain(|waiter| {
            writer |= waiter.write;
            if waiter.write || !all && writer || granted == READERS_WOKEN {
                return true;
            }
            granted += 1;
            self.readers.push(waiter.task);
            woken.push(waiter.task);
            false
        });
        self.handoff = false;
    }
}

/// `rwsem_rspin_threshold`: how long a writer spins while that many readers hold the semaphore.
///
/// ```text
/// (20 + min(readers, 30)) / 2 us
/// ```
fn rwsem_rspin_threshold(readers: usize) -> Nanos {
    (20 + readers.min(30) as Nanos) * 500
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);
    const C: TaskId = TaskId(2);
    const D: TaskId = TaskId(3);

    fn waiter(task: TaskId, write: bool, timeout: Nanos) -> Waiter {
        Waiter { task, write, timeout }
    }

    fn held_by_writer(queue: &[(TaskId, bool)]) -> RwSem {
        let mut sem = RwSem::default();
        assert!(sem.try_lock(A, true, true, &mut Vec::new()));
        for (task, write) in queue {
            sem.queue(waiter(*task, *write, 4_000_000), true, 0, &mut Vec::new());
        }
        sem
    }

    /// A writer that spins takes the semaphore before the reader is woken, but only once after the reader's timeout.
    #[test]
    fn a_reader_that_has_waited_for_too_long_requests_the_handoff() {
        for (now, handed_over) in [(3_999_999, false), (4_000_000, true)] {
            let mut sem = held_by_writer(&[(B, false)]);
            let mut woken = Vec::new();
            for (holder, spinner) in [(A, C), (C, D)] {
                sem.spin(spinner, true);
                assert!(sem.release(holder));
                let steals = sem.try_spinner(spinner);
                assert_eq!(steals, spinner == C || !handed_over);
                sem.rwsem_wake(true, now, &mut woken);
            }
            assert_eq!(woken, if handed_over { vec![B] } else { vec![] });
            assert_eq!((sem.is_held_by(B), sem.handoff_waiter()), (handed_over, None));
        }
    }

    #[test]
    fn readers_that_wait_get_it_together_in_the_rewrite_even_from_behind_a_writer() {
        for (all, expected) in [(true, vec![B, D]), (false, vec![B])] {
            let mut sem = held_by_writer(&[(B, false), (C, true), (D, false)]);
            let mut woken = Vec::new();
            assert!(sem.release(A));
            sem.rwsem_wake(all, 0, &mut woken);
            assert_eq!(woken, expected);
            assert!(expected.iter().all(|reader| sem.is_held_by(*reader)) && !sem.try_queued(C, 0));
        }
    }

    #[test]
    fn a_woken_writer_can_be_overtaken_until_it_may_ask_for_the_handoff() {
        let mut sem = held_by_writer(&[(B, true)]);
        sem.spin(C, true);
        assert_eq!(sem.rwsem_optimistic_spin(C, 0, false, true, true), Spin::Continues(None));
        sem.release(A);
        assert_eq!(sem.rwsem_optimistic_spin(C, 0, false, true, true), Spin::Acquired);
        assert!(!sem.try_queued(B, 10) && sem.handoff_waiter().is_none());
        assert!(!sem.try_queued(B, 4_000_000) && sem.handoff_waiter() == Some(B));
        sem.release(C);
        sem.spin(D, true);
        assert_eq!(sem.rwsem_optimistic_spin(D, 0, false, true, true), Spin::Stops);
        assert!(!sem.try_lock(A, false, true, &mut Vec::new()), "no reader steals it either");
        assert!(sem.try_queued(B, 4_000_001));
    }

    #[test]
    fn a_writer_spins_on_readers_for_a_time_and_a_real_time_one_does_not() {
        let mut sem = RwSem::default();
        assert!(sem.try_lock(A, false, true, &mut Vec::new()));
        assert!(
            sem.rwsem_can_spin_on_owner(false, true, true)
                && !sem.rwsem_can_spin_on_owner(true, true, true)
                && !sem.rwsem_can_spin_on_owner(false, true, false)
        );
        sem.spin(B, true);
        assert_eq!(sem.rwsem_optimistic_spin(B, 1_000, false, false, true), Spin::Continues(Some(11_500)));
        assert_eq!(sem.rwsem_optimistic_spin(B, 11_499, false, false, true), Spin::Continues(Some(11_500)));
        assert_eq!(sem.rwsem_optimistic_spin(B, 11_500, false, false, true), Spin::Stops);
        assert!(!sem.rwsem_can_spin_on_owner(false, true, true));
        sem.release(A);
        assert!(sem.try_lock(B, true, true, &mut Vec::new()));
    }

    #[test]
    fn a_downgrade_lets_the_first_readers_in() {
        let mut sem = held_by_writer(&[(B, false), (C, true)]);
        let mut woken = Vec::new();
        sem.downgrade_write(A, true, &mut woken);
        assert_eq!(woken, [B]);
        assert!(sem.is_held_by(A) && sem.is_held_by(B) && sem.writer().is_none());
        assert!(!sem.release(A) && sem.release(B) && sem.try_queued(C, 0));
    }

    proptest! {
        /// Whatever tasks do: a writer is alone, and when everybody has released it nobody is left waiting for a
        /// wakeup.
        #[test]
        fn a_writer_is_alone_and_nobody_is_forgotten(
            steps in prop::collection::vec((0..6u32, any::<bool>(), 0..3u8), 1..200),
            all in any::<bool>(),
        ) {
            let (mut sem, mut woken, mut asleep) = (RwSem::default(), Vec::new(), Vec::new());
            for (now, (task, write, action)) in steps.into_iter().enumerate() {
                let (task, now) = (TaskId(task), now as Nanos);
                if sem.is_held_by(task) {
                    if action == 0 {
                        sem.downgrade_write(task, all, &mut woken);
                    } else if sem.release(task) {
                        sem.rwsem_wake(all, now, &mut woken);
                    }
                } else if sem.is_queued(task) {
                    if !asleep.contains(&task) && !sem.try_queued(task, now) {
                        asleep.push(task);
                    }
                } else if !sem.try_lock(task, write, all, &mut woken) {
                    sem.queue(waiter(task, write, now + 20), all, now, &mut woken);
                    if !sem.try_queued(task, now) && !sem.is_held_by(task) {
                        asleep.push(task);
                    }
                }
                asleep.retain(|sleeper| !woken.contains(sleeper));
                woken.clear();
                prop_assert!(sem.writer.is_none() || sem.readers.is_empty());
            }
            for now in 1_000..2_000 {
                let holders: Vec<TaskId> = (0..6).map(TaskId).filter(|task| sem.is_held_by(*task)).collect();
                for holder in holders {
                    if sem.release(holder) {
                        sem.rwsem_wake(all, now, &mut woken);
                    }
                }
                asleep.retain(|sleeper| !woken.contains(sleeper));
                woken.clear();
                let awake: Vec<TaskId> = (0..6).map(TaskId).filter(|task| sem.is_queued(*task) && !asleep.contains(task)).collect();
                for task in awake {
                    if !sem.try_queued(task, now) {
                        asleep.push(task);
                    }
                }
            }
            prop_assert!(sem.is_idle(), "{sem:?} {asleep:?}");
        }
    }
}
