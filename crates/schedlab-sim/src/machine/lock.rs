//! A lock as a resource with a time at which it is free again.

use schedlab_model::Nanos;

/// A lock that is taken in the order of arrival.
///
/// A taker arrives at the local time of its CPU, which may lie ahead of the time of the run by the overhead that the CPU
/// still has to spend. So an earlier arrival may be seen later; it goes first if it is through before the others begin.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lock {
    /// From here to `until` it is held without a break.
    from: Nanos,
    until: Nanos,
}

impl Lock {
    /// Takes the lock at `at` for `hold`: how long the taker waits for it.
    #[inline]
    pub fn take(&mut self, at: Nanos, hold: Nanos) -> Nanos {
        self.take_polling(at, hold, || 0)
    }

    /// The same for a taker that polls the lock's line while it waits, which prolongs the stay of the holder by `slowed`. In a
    /// queue only the first waiter polls, so every holder that is waited for is slowed once.
    #[inline]
    pub fn take_polling(&mut self, at: Nanos, hold: Nanos, slowed: impl FnOnce() -> Nanos) -> Nanos {
        if at >= self.until {
            *self = Lock { from: at, until: at + hold };
            return 0;
        }
        if at < self.from && at + hold <= self.from {
            return 0;
        }
        self.until += slowed();
        let wait = self.until - at;
        self.until += hold;
        wait
    }

    /// For how long after `at` the lock is held by the CPUs that have taken it so far.
    #[inline]
    pub fn free_after(&self, at: Nanos) -> Nanos {
        if at < self.from {
            return 0;
        }
        self.until.saturating_sub(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn takers_queue_and_one_that_fits_before_the_others_does_not_wait() {
        let mut lock = Lock::default();
        assert_eq!(lock.take(1_000, 100), 0);
        assert_eq!(lock.take(1_050, 100), 50);
        assert_eq!(lock.take(1_060, 100), 140);
        assert_eq!(lock.take(800, 200), 0, "it is through when the first one comes");
        assert_eq!(lock.take(950, 100), 350);
    }

    #[test]
    fn a_waiter_that_polls_slows_the_holder_and_one_that_finds_the_lock_free_does_not() {
        let mut lock = Lock::default();
        assert_eq!(lock.take_polling(1_000, 100, || 20), 0);
        assert_eq!(lock.take_polling(1_050, 100, || 20), 70, "the holder stays until 1,120");
        assert_eq!(lock.take_polling(1_060, 100, || 20), 180, "the next one until 1,240");
        assert_eq!(lock.take_polling(1_340, 100, || 20), 0);
    }

    proptest! {
        /// Arrivals in order never overlap and never wait while the lock is free.
        #[test]
        fn holders_do_not_overlap(steps in prop::collection::vec((0..500u64, 0..200u64), 1..50)) {
            let (mut lock, mut now, mut free) = (Lock::default(), 0, 0);
            for (gap, hold) in steps {
                now += gap;
                let start = now + lock.take(now, hold);
                prop_assert_eq!(start, now.max(free));
                free = start + hold;
            }
        }
    }
}
