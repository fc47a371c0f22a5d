//! A lock, or a line that CPUs change, that is taken in the order of arrival.
//!
//! A CPU arrives at its local time, which may lie ahead of the time of the run by the overhead that it still has to
//! spend. So CPUs are simulated in another order than they arrive. The lock records each taker until the run has
//! reached its arrival, and of the earlier ones when the last of them releases it.
//!
//! In a queue a CPU waits w, until those that arrived before it have released the lock. Each that arrives later waits
//! longer because of it: by x_j, if it holds the lock for h_j. The waits of those that have been simulated already are
//! fixed, so the new taker, which holds the lock for h, is charged their share:
//!
//! ```text
//! wait = w + sum(x_j h_j) / h
//! ```
//!
//! The sum of all waits, each times the stay, is therefore that of a queue, in whatever order the CPUs are simulated;
//! if all stay equally long, the sum of the waits itself. A CPU that comes in order waits exactly as long as in a
//! queue.
//!
//! Simplified: which of the CPUs of a queue waits, if they are simulated in another order than they arrive.

use schedlab_model::Nanos;

/// A lock that is taken in the order of arrival.
#[derive(Clone, Default, Debug)]
pub struct Lock {
    /// When the last taker that arrived before those in `ahead` releases it.
    until: Nanos,
    /// Takers whose arrival the run has not reached, in the order of arrival.
    ahead: Vec<Taker>,
}

/// One that arrives at `at` and holds the lock for `hold`. If it has to wait, the holder before it stays longer by
/// `slowed`.
#[derive(Clone, Copy, Debug)]
struct Taker {
    at: Nanos,
    hold: Nanos,
    slowed: Nanos,
}

/// When a CPU gets to a lock.
#[derive(Clone, Copy, Default, Debug)]
pub struct Arrival {
    /// Time of the run: no CPU arrives before it from now on.
    pub now: Nanos,
    /// Local time of the CPU.
    pub at: Nanos,
}

impl Arrival {
    /// The CPU gets to it later, by time that it spends first.
    #[inline]
    pub fn after(self, spent: Nanos) -> Arrival {
        Arrival { at: self.at + spent, ..self }
    }
}

impl Lock {
    /// Takes the lock for `hold`: how long the taker waits for it.
    #[inline]
    pub fn take(&mut self, arrival: Arrival, hold: Nanos) -> Nanos {
        self.take_polling(arrival, hold, || 0)
    }

    /// The same for a taker that polls the lock's line while it waits, which prolongs the stay of the holder by
    /// `slowed`. In a queue only the first waiter polls, so every holder that is waited for is slowed once.
    #[inline]
    pub fn take_polling(&mut self, arrival: Arrival, hold: Nanos, slowed: impl FnOnce() -> Nanos) -> Nanos {
        let Arrival { now, at } = arrival;
        self.settle(now);
        if !self.ahead.is_empty() {
            return self.take_among_others(Taker { at, hold, slowed: slowed() });
        }
        if at <= now && at >= self.until {
            self.until = at + hold;
            return 0;
        }
        let taker = Taker { at, hold, slowed: slowed() };
        self.ahead.push(taker);
        taker.waits(self.until)
    }

    /// For how long after `at` the takers that arrived before need the lock.
    #[inline]
    pub fn free_after(&self, at: Nanos) -> Nanos {
        let before = self.ahead.iter().take_while(|taker| taker.at <= at);
        before.fold(self.until, |until, taker| taker.ends(until)).saturating_sub(at)
    }

    /// Removes the takers that no later one can precede.
    #[inline]
    fn settle(&mut self, now: Nanos) {
        let mut reached = 0;
        while let Some(taker) = self.ahead.get(reached).filter(|taker| taker.at <= now) {
            self.until = taker.ends(self.until);
            reached += 1;
        }
        if reached == self.ahead.len() {
            self.ahead.clear();
        } else if reached > 0 {
            self.ahead.drain(..reached);
        }
    }

    /// The formula above.
    #[inline(never)]
    fn take_among_others(&mut self, taker: Taker) -> Nanos {
        let place = self.ahead.partition_point(|other| other.at <= taker.at);
        let (before, later) = self.ahead.split_at(place);
        let mut without = before.iter().fold(self.until, |until, other| other.ends(until));
        let (wait, mut with, mut borne) = (taker.waits(without), taker.ends(without), 0);
        for other in later {
            let longer = other.waits(with) - other.waits(without);
            if longer == 0 {
                break;
            }
            borne += longer * other.hold;
            (with, without) = (other.ends(with), other.ends(without));
        }
        self.ahead.insert(place, taker);
        wait + borne.checked_div(taker.hold).unwrap_or(0)
    }
}

impl Taker {
    /// How long it waits in a queue whose earlier members are through at `until`.
    #[inline]
    fn waits(&self, until: Nanos) -> Nanos {
        if until > self.at {
            until - self.at + self.slowed
        } else {
            0
        }
    }

    /// When it is through there.
    #[inline]
    fn ends(&self, until: Nanos) -> Nanos {
        self.at + self.waits(until) + self.hold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A taker: the time of the run at which it is simulated, how far its local time lies ahead, and its stay.
    type Step = (Nanos, Nanos, Nanos);

    /// What a spinlock with a queue of waiters does, given all arrivals at once: the wait of each, in the order given.
    /// A waiter slows the holder before it.
    fn fifo(takers: &[Step], slowed: Nanos) -> Vec<Nanos> {
        let mut order: Vec<usize> = (0..takers.len()).collect();
        order.sort_by_key(|taker| takers[*taker].0 + takers[*taker].1);
        let (mut waits, mut free) = (vec![0; takers.len()], 0);
        for taker in order {
            let (now, ahead, hold) = takers[taker];
            let at = now + ahead;
            free = if free > at { free + slowed } else { at };
            waits[taker] = free - at;
            free += hold;
        }
        waits
    }

    fn simulated(takers: &[Step], slowed: Nanos) -> Vec<Nanos> {
        let mut lock = Lock::default();
        let arrival = |(now, ahead, _): Step| Arrival { now, at: now + ahead };
        takers.iter().map(|taker| lock.take_polling(arrival(*taker), taker.2, || slowed)).collect()
    }

    /// Takers every `gap` ns on average, up to `ahead` ns ahead of the run.
    fn takers(
        gap: Nanos,
        ahead: Nanos,
        hold: impl Strategy<Value = Nanos> + Clone,
    ) -> impl Strategy<Value = Vec<Step>> {
        prop::collection::vec((0..=2 * gap, 0..=ahead, hold), 1..200).prop_map(|steps| {
            let mut now = 1_000_000;
            let step = |(gap, ahead, hold)| {
                now += gap;
                (now, ahead, hold)
            };
            steps.into_iter().map(step).collect()
        })
    }

    #[test]
    fn takers_queue_and_one_that_is_through_before_the_others_does_not_wait() {
        let mut lock = Lock::default();
        let mut take = |at, hold| lock.take(Arrival { now: 0, at }, hold);
        assert_eq!(take(1_000, 100), 0);
        assert_eq!(take(1_050, 100), 50);
        assert_eq!(take(1_060, 100), 140);
        assert_eq!(take(800, 200), 0, "it is through when the first one comes");
        assert_eq!(take(950, 100), 50 + 3 * 100, "each of the others would have waited for it");
    }

    #[test]
    fn a_waiter_that_polls_slows_the_holder_and_one_that_finds_the_lock_free_does_not() {
        let mut lock = Lock::default();
        let mut take = |at| lock.take_polling(Arrival { now: at, at }, 100, || 20);
        assert_eq!(take(1_000), 0);
        assert_eq!(take(1_050), 70, "the holder stays until 1,120");
        assert_eq!(take(1_060), 180, "the next one until 1,240");
        assert_eq!(take(1_340), 0);
    }

    /// What one interval for all takers cannot do: there the mean wait of these was 5 ns, in a queue it is 382 ns.
    #[test]
    fn who_comes_out_of_order_is_not_forgotten() {
        let mut state = 1_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let mut now = 1_000_000;
        let mut taker = || {
            now += 1 + below(220);
            (now, below(5_000), 100)
        };
        let takers: Vec<Step> = (0..2_000).map(|_| taker()).collect();
        let [found, queue] = [simulated(&takers, 0), fifo(&takers, 0)].map(|waits| waits.iter().sum::<Nanos>());
        assert_eq!(found, queue);
        assert!(queue > 2_000 * 200, "{queue}: they do contend");
    }

    proptest! {
        /// In the order of arrival each taker waits as long as in a queue, with waiters that poll as well.
        #[test]
        fn in_order_every_wait_is_that_of_a_queue(takers in takers(150, 0, 0..300u64), slowed in 0..50u64) {
            prop_assert_eq!(simulated(&takers, slowed), fifo(&takers, slowed));
        }

        /// In any order equal stays wait as long together as in a queue, to the nanosecond.
        #[test]
        fn equal_stays_wait_as_long_together_as_in_a_queue(takers in takers(110, 5_000, Just(100)), slowed in 0..50u64) {
            let waits = [simulated(&takers, slowed), fifo(&takers, slowed)].map(|waits| waits.iter().sum::<Nanos>());
            prop_assert_eq!(waits[0], waits[1]);
        }

        /// Unequal stays as well, each wait times the stay, with waiters that poll; what is lost in rounding is below
        /// one nanosecond a taker.
        #[test]
        fn unequal_stays_wait_as_long_together_as_in_a_queue(
            takers in takers(150, 5_000, 1..300u64),
            slowed in 0..50u64,
        ) {
            let weigh = |waits: Vec<Nanos>| takers.iter().zip(waits).map(|(taker, wait)| taker.2 * wait).sum::<Nanos>();
            let (found, queue) = (weigh(simulated(&takers, slowed)), weigh(fifo(&takers, slowed)));
            let rounding: Nanos = takers.iter().map(|taker| taker.2).sum();
            prop_assert!(found <= queue && found + rounding >= queue, "{found} {queue}");
        }

        /// A look takes no lock and returns how long the takers before it still need.
        #[test]
        fn a_look_sees_the_unfinished_work(takers in takers(110, 5_000, 1..300u64), later in 0..5_000u64) {
            let mut lock = Lock::default();
            for (now, ahead, hold) in &takers {
                lock.take(Arrival { now: *now, at: now + ahead }, *hold);
            }
            let at = takers.last().map_or(0, |taker| taker.0 + later);
            let mut with_it = takers.clone();
            with_it.push((at, 0, 0));
            prop_assert_eq!(Some(lock.free_after(at)), fifo(&with_it, 0).pop());
        }
    }
}
