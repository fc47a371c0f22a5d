//! Synchronisation on futex words in shared memory, with the fast path in user mode and the slow path in the kernel, as
//! in glibc.
//!
//! Each type has the semantics of the simulator's object of the same name (crates/schedlab-sim/src/programs/sync.rs),
//! with two exceptions: the order of waiters is the kernel's (FIFO by priority), and a new waiter of a condition may
//! consume the wakeup of a waiter that has been signalled and has not run yet, as POSIX allows.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex::{self, Flags};

use crate::sys::shared;

/// Blocks while the word holds `value`.
fn wait(word: &AtomicU32, flags: Flags, value: u32) {
    // An error means that the word has changed or that a signal arrived; every caller checks the word again.
    let _ = futex::wait(word, flags, value, None);
}

fn wake(word: &AtomicU32, flags: Flags, count: u32) {
    // Fails only for a bad address.
    let _ = futex::wake(word, flags, count);
}

shared! {
    /// A futex word with at most one waiter. It is posted, waited on, or handed over to a waiter that has not run yet.
    #[derive(Debug, Default)]
    pub struct Futex {
        word: AtomicU32,
    }
}

const POSTED: u32 = 1;
const WAITING: u32 = 2;
const HANDED: u32 = 4;

impl Futex {
    /// Waits for a post. Returns false if another task already waits.
    pub fn wait(&self, flags: Flags) -> bool {
        let mut word = self.word.load(Relaxed);
        loop {
            if word & POSTED != 0 {
                match self.word.compare_exchange_weak(word, word & !POSTED, AcqRel, Relaxed) {
                    Ok(_) => return true,
                    Err(now) => word = now,
                }
            } else if word & WAITING != 0 {
                return false;
            } else {
                match self.word.compare_exchange_weak(word, word | WAITING, AcqRel, Relaxed) {
                    Ok(_) => break,
                    Err(now) => word = now,
                }
            }
        }
        loop {
            word = self.word.load(Acquire);
            if word & HANDED == 0 {
                wait(&self.word, flags, word);
            } else if self.word.compare_exchange(word, word & !HANDED, AcqRel, Relaxed).is_ok() {
                return true;
            }
        }
    }

    /// Wakes the waiter, or leaves the word posted.
    pub fn post(&self, flags: Flags) {
        let mut word = self.word.load(Relaxed);
        loop {
            let next = if word & WAITING != 0 { word & !WAITING | HANDED } else { word | POSTED };
            match self.word.compare_exchange_weak(word, next, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word & WAITING != 0 {
            wake(&self.word, flags, 1);
        }
    }
}

shared! {
    /// A mutex: 0 free, 1 held, 2 held and waited for (Drepper's third). With priority inheritance the word is the
    /// kernel's.
    #[derive(Debug, Default)]
    pub struct Mutex {
        word: AtomicU32,
        owner: AtomicU32,
    }
}

impl Mutex {
    /// Acquires the mutex for the task `me`, which must be above 0.
    pub fn lock(&self, flags: Flags, me: u32) {
        if self.word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            while self.word.swap(2, Acquire) != 0 {
                wait(&self.word, flags, 2);
            }
        }
        self.owner.store(me, Relaxed);
    }

    /// Releases the mutex. Returns false if `me` does not hold it.
    pub fn unlock(&self, flags: Flags, me: u32) -> bool {
        if self.owner.load(Relaxed) != me {
            return false;
        }
        self.owner.store(0, Relaxed);
        if self.word.swap(0, Release) == 2 {
            wake(&self.word, flags, 1);
        }
        true
    }

    /// `lock` with priority inheritance; `tid` is the thread's.
    pub fn lock_pi(&self, flags: Flags, me: u32, tid: u32) {
        while self.word.compare_exchange(0, tid, Acquire, Relaxed).is_err() {
            if futex::lock_pi(&self.word, flags, None).is_ok() {
                break;
            }
        }
        self.owner.store(me, Relaxed);
    }

    /// `unlock` with priority inheritance.
    pub fn unlock_pi(&self, flags: Flags, me: u32, tid: u32) -> bool {
        if self.owner.load(Relaxed) != me {
            return false;
        }
        self.owner.store(0, Relaxed);
        if self.word.compare_exchange(tid, 0, Release, Relaxed).is_err() {
            // Fails only if the thread is not the owner, which the check above excludes.
            let _ = futex::unlock_pi(&self.word, flags);
        }
        true
    }
}

shared! {
    /// A barrier: the number of tasks that have arrived, and the current round.
    #[derive(Debug, Default)]
    pub struct Barrier {
        arrived: AtomicU32,
        round: AtomicU32,
    }
}

impl Barrier {
    /// Waits until `parties` have arrived.
    pub fn arrive(&self, flags: Flags, parties: u32) {
        let round = self.round.load(Acquire);
        if self.arrived.fetch_add(1, AcqRel) + 1 >= parties {
            self.arrived.store(0, Relaxed);
            self.round.fetch_add(1, AcqRel);
            wake(&self.round, flags, i32::MAX as u32);
            return;
        }
        while self.round.load(Acquire) == round {
            wait(&self.round, flags, round);
        }
    }
}

shared! {
    /// A semaphore.
    #[derive(Debug, Default)]
    pub struct Semaphore {
        units: AtomicU32,
        waiters: AtomicU32,
    }
}

/// Replaces the value by what `next` makes of it; `false`: it makes nothing, and the value stays.
fn update(value: &AtomicU32, order: Ordering, mut next: impl FnMut(u32) -> Option<u32>) -> bool {
    let mut seen = value.load(Relaxed);
    while let Some(new) = next(seen) {
        match value.compare_exchange_weak(seen, new, order, Relaxed) {
            Ok(_) => return true,
            Err(changed) => seen = changed,
        }
    }
    false
}

impl Semaphore {
    /// Sets the initial number of units.
    pub fn set(&self, units: u32) {
        self.units.store(units, Relaxed);
    }

    fn take(&self) -> bool {
        update(&self.units, SeqCst, |units| units.checked_sub(1))
    }

    /// Takes one unit if there is one.
    #[must_use]
    pub fn try_wait(&self) -> bool {
        self.take()
    }

    /// Takes one unit.
    pub fn wait(&self, flags: Flags) {
        if self.take() {
            return;
        }
        self.waiters.fetch_add(1, SeqCst);
        while !self.take() {
            wait(&self.units, flags, 0);
        }
        self.waiters.fetch_sub(1, AcqRel);
    }

    /// Gives one unit.
    pub fn post(&self, flags: Flags) {
        // Saturates, as in the simulator.
        update(&self.units, SeqCst, |units| units.checked_add(1));
        if self.waiters.load(SeqCst) > 0 {
            wake(&self.units, flags, 1);
        }
    }
}

shared! {
    /// A condition variable: the number of waiters, and of wakeups that no waiter has consumed yet.
    #[derive(Debug, Default)]
    pub struct Condition {
        waiters: AtomicU32,
        wakeups: AtomicU32,
    }
}

impl Condition {
    /// Counts the caller as a waiter; it then releases its mutex and calls [`Condition::wait`].
    pub fn enter(&self) {
        self.waiters.fetch_add(1, AcqRel);
    }

    /// Waits for a signal.
    pub fn wait(&self, flags: Flags) {
        while !update(&self.wakeups, AcqRel, |wakeups| wakeups.checked_sub(1)) {
            wait(&self.wakeups, flags, 0);
        }
    }

    /// Wakes one waiter, or all.
    pub fn signal(&self, flags: Flags, all: bool) {
        let mut count = 0;
        update(&self.waiters, AcqRel, |waiters| {
            count = if all { waiters } else { waiters.min(1) };
            Some(waiters - count)
        });
        if count > 0 {
            self.wakeups.fetch_add(count, AcqRel);
            wake(&self.wakeups, flags, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    const FLAGS: Flags = Flags::PRIVATE;
    const ROUNDS: u64 = 2_000;

    #[test]
    fn a_futex_word_hands_over_and_holds_one_post() {
        let futex = Futex::default();
        futex.post(FLAGS);
        futex.post(FLAGS);
        assert!(futex.wait(FLAGS));
        assert_eq!(futex.word.load(Relaxed), 0, "two posts without a waiter are one");
        let (ping, pong, turns) = (Futex::default(), Futex::default(), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..ROUNDS {
                    assert!(ping.wait(FLAGS));
                    assert_eq!(turns.fetch_add(1, Relaxed), 2 * turn);
                    pong.post(FLAGS);
                }
            });
            for turn in 0..ROUNDS {
                ping.post(FLAGS);
                assert!(pong.wait(FLAGS));
                assert_eq!(turns.fetch_add(1, Relaxed), 2 * turn + 1);
            }
        });
    }

    #[test]
    fn mutexes_are_exclusive() {
        for pi in [false, true] {
            let (mutex, value) = (Mutex::default(), AtomicU64::new(0));
            thread::scope(|scope| {
                for me in 1..=4 {
                    let (mutex, value) = (&mutex, &value);
                    scope.spawn(move || {
                        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
                        for _ in 0..ROUNDS {
                            if pi {
                                mutex.lock_pi(FLAGS, me, tid)
                            } else {
                                mutex.lock(FLAGS, me)
                            }
                            let seen = value.load(Relaxed);
                            thread::yield_now();
                            value.store(seen + 1, Relaxed);
                            assert!(if pi { mutex.unlock_pi(FLAGS, me, tid) } else { mutex.unlock(FLAGS, me) });
                        }
                    });
                }
            });
            assert_eq!(value.load(Relaxed), 4 * ROUNDS, "pi {pi}");
            assert!(!mutex.unlock(FLAGS, 1), "not held");
        }
    }

    #[test]
    fn no_task_passes_a_barrier_early() {
        let (barrier, arrived) = (Barrier::default(), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=ROUNDS {
                        arrived.fetch_add(1, Relaxed);
                        barrier.arrive(FLAGS, 3);
                        assert!(arrived.load(Relaxed) >= 3 * round);
                    }
                });
            }
        });
    }

    #[test]
    fn semaphores_and_conditions_lose_no_wakeup() {
        let (semaphore, condition, mutex) = (Semaphore::default(), Condition::default(), Mutex::default());
        semaphore.set(2);
        thread::scope(|scope| {
            scope.spawn(|| (0..ROUNDS).for_each(|_| semaphore.post(FLAGS)));
            scope.spawn(|| (0..ROUNDS + 2).for_each(|_| semaphore.wait(FLAGS)));
        });
        assert!(!semaphore.take());
        thread::scope(|scope| {
            for me in 1..=3 {
                let (condition, mutex) = (&condition, &mutex);
                scope.spawn(move || {
                    mutex.lock(FLAGS, me);
                    condition.enter();
                    mutex.unlock(FLAGS, me);
                    condition.wait(FLAGS);
                });
            }
            while condition.waiters.load(Relaxed) < 3 {
                thread::yield_now();
            }
            condition.signal(FLAGS, false);
            condition.signal(FLAGS, true);
        });
    }
}
