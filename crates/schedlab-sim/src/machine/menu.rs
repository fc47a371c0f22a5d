//! The menu governor: which idle state a CPU enters, and whether its tick stops.
//!
//! drivers/cpuidle/governors/menu.c of 5.10 to 7.2; [`MenuRules`] has what differs between them. The prediction is the
//! smaller one of two: the time to the next timer, times a factor learnt per order of magnitude of that time, and the
//! typical one of the last eight idle periods, if they agree. The deepest state whose target residency it covers is
//! chosen. The tick continues if it is shorter than a tick or the state polls; it wakes the CPU, and the governor
//! chooses again. Left out: `nr_iowait` (up to 6.12), no task here waits for a disk; states switched off in sysfs.

use schedlab_model::{Nanos, USEC};
use schedlab_policy::MenuRules;

use super::idle_choice::{keep_tick, Choice, State, Stay, Timers, Woken, RESIDENCY_THRESHOLD};

const BUCKETS: usize = 6;
const INTERVALS: usize = 8;
const RESOLUTION: u32 = 1024;
const DECAY: u32 = 8;
const MAX_INTERESTING: Nanos = 50_000_000;
/// No prediction.
const NONE: u64 = u32::MAX as u64;

/// `struct menu_device` of a CPU.
#[derive(Clone, Debug)]
pub struct Menu {
    rules: MenuRules,
    last: Option<Stay>,
    next_timer: Nanos,
    bucket: usize,
    correction_factor: [u32; BUCKETS],
    intervals: Intervals,
}

/// Lengths of the last idle periods, us.
#[derive(Clone, Debug)]
struct Intervals {
    values: [u32; INTERVALS],
    /// The place of the oldest.
    oldest: usize,
    /// The same lengths, the shortest first.
    sorted: [u32; INTERVALS],
    /// The sums of those that are not [`NONE`].
    sums: Sums,
}

/// How many intervals, their sum and that of their squares, which wraps.
#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    count: u64,
    sum: u64,
    squares: u64,
}

impl Sums {
    fn add(&mut self, value: u32) {
        let value = u64::from(value);
        self.count += 1;
        self.sum += value;
        self.squares = self.squares.wrapping_add(value * value);
    }

    /// Removes so many of this length.
    fn remove(&mut self, value: u32, count: usize) {
        let (value, count) = (u64::from(value), count as u64);
        self.count -= count;
        self.sum -= value * count;
        self.squares = self.squares.wrapping_sub((value * value).wrapping_mul(count));
    }
}

impl Intervals {
    fn new(values: [u32; INTERVALS]) -> Self {
        let (mut sorted, mut sums) = (values, Sums::default());
        sorted.sort_unstable();
        values.into_iter().filter(|value| *value != u32::MAX).for_each(|value| sums.add(value));
        Intervals { values, oldest: 0, sorted, sums }
    }

    /// A new one takes the place of the oldest.
    fn push(&mut self, value: u32) {
        let oldest = std::mem::replace(&mut self.values[self.oldest % INTERVALS], value);
        self.oldest = (self.oldest + 1) % INTERVALS;
        if oldest != u32::MAX {
            self.sums.remove(oldest, 1);
        }
        if value != u32::MAX {
            self.sums.add(value);
        }
        let mut place = self.sorted.iter().position(|sorted| *sorted == oldest).unwrap_or(0);
        while place > 0 && self.sorted[place - 1] > value {
            self.sorted[place] = self.sorted[place - 1];
            place -= 1;
        }
        while place + 1 < INTERVALS && self.sorted[place + 1] < value {
            self.sorted[place] = self.sorted[place + 1];
            place += 1;
        }
        self.sorted[place] = value;
    }
}

impl Menu {
    /// The governor of a CPU that has been idle for long.
    pub fn new(rules: MenuRules) -> Self {
        Menu {
            rules,
            last: None,
            next_timer: 0,
            bucket: 0,
            correction_factor: [RESOLUTION * DECAY; BUCKETS],
            intervals: Intervals::new([(MAX_INTERESTING / USEC) as u32; INTERVALS]),
        }
    }

    /// `menu_reflect`: the stay in `state` took `residency`.
    pub fn reflect(&mut self, state: usize, residency: Nanos, woken: Woken) {
        self.last = Some(Stay { state, residency, woken });
    }

    /// `menu_select` among the states that the latency requirement allows, at least two.
    pub fn select(&mut self, states: &[State], timers: &Timers) -> Choice {
        if let Some(last) = self.last.take() {
            self.update(states, timers.tick, last);
        }
        let (mut predicted, next_event) = self.predict(timers);
        if self.next_timer < states.get(1).map_or(Nanos::MAX, |state| state.target_residency) {
            return Choice { state: 0, stops_tick: !states[0].polling };
        }
        let mut found = 0;
        for (i, state) in states.iter().enumerate() {
            if state.target_residency <= predicted {
                found = i;
                continue;
            }
            let instead = states[found].polling
                && state.exit_latency <= predicted
                && state.target_residency <= self.next_timer
                && (!self.rules.intervals_first || state.target_residency < RESIDENCY_THRESHOLD);
            if instead {
                (predicted, found) = (state.target_residency, i);
                break;
            }
            if predicted < timers.tick {
                break;
            }
            if !timers.stopped() {
                predicted = states[found].target_residency;
                break;
            }
            if states[found].target_residency < timers.tick && state.target_residency <= next_event {
                found = i;
            }
            return Choice { state: found, stops_tick: true };
        }
        if timers.stopped() || !(states[found].polling || predicted < timers.tick) {
            return Choice { state: found, stops_tick: true };
        }
        keep_tick(states, found, next_event)
    }

    /// The expected length of the idle period and the time to the next timer with the tick, ns.
    fn predict(&mut self, timers: &Timers) -> (Nanos, Nanos) {
        let mut next_event = timers.next_event();
        let mut predicted = NONE * USEC;
        if self.rules.intervals_first {
            predicted = self.get_typical_interval(None) * USEC;
            if predicted <= RESIDENCY_THRESHOLD && !timers.stopped() {
                (self.next_timer, self.bucket) = (Nanos::MAX, BUCKETS - 1);
                next_event = timers.tick / 2;
                return (predicted, next_event);
            }
        }
        self.next_timer = timers.next_timer;
        self.bucket = which_bucket(self.next_timer);
        let by_timer = self.by_timer();
        if !self.rules.intervals_first {
            predicted = self.get_typical_interval(Some(by_timer)) * USEC;
        }
        predicted = predicted.min(by_timer * USEC);
        let trusted = self.rules.near_timer_suffices && self.next_timer <= 2 * timers.tick;
        if timers.stopped() && predicted < timers.tick && !trusted {
            predicted = self.next_timer;
        }
        (predicted, next_event)
    }

    /// The time to the next timer as far as such times were used up in the past, us, rounded.
    fn by_timer(&self) -> u64 {
        let unit = u64::from(RESOLUTION * DECAY) * USEC;
        // What does not fit 64 bits is beyond NONE, too.
        let product = self.next_timer.saturating_mul(u64::from(self.correction_factor[self.bucket]));
        (product.saturating_add(unit / 2) / unit).min(NONE)
    }

    /// The length on which most of the last intervals agree, us; [`NONE`] if they do not. `predicted`: up to 6.5 the
    /// prediction by the timer, which intervals that are all longer do not change.
    fn get_typical_interval(&self, predicted: Option<u64>) -> u64 {
        let mut sums = self.intervals.sums;
        let mut left = &self.intervals.sorted[..(sums.count as usize).min(INTERVALS)];
        while let (Some(&min), Some(&max)) = (left.first(), left.last()) {
            if predicted.map_or(max == 0, |predicted| u64::from(min) >= predicted) {
                break;
            }
            let Sums { count, sum, squares } = sums;
            let average = sum / count.max(1);
            // sum of (v - a)^2 = sum of v^2 - a * (2 * sum of v - n * a); a difference is exact even where the terms
            // wrap.
            let variance = squares.wrapping_sub(average.wrapping_mul(2 * sum - count * average)) / count.max(1);
            let most = count * 4 >= INTERVALS as u64 * 3;
            let agrees = variance.checked_mul(36).is_some_and(|variance| average * average > variance);
            if (agrees && most) || variance <= 400 {
                return average;
            }
            if count * 4 <= INTERVALS as u64 * 3 {
                break;
            }
            let lower = self.rules.both_ends && average - u64::from(min) > u64::from(max) - average;
            let rest = if lower {
                &left[left.partition_point(|value| *value == min)..]
            } else {
                &left[..left.partition_point(|value| *value < max)]
            };
            sums.remove(if lower { min } else { max }, left.len() - rest.len());
            left = rest;
        }
        NONE
    }

    /// `menu_update`: updates the factor of the bucket in which the last stay began, and the intervals.
    fn update(&mut self, states: &[State], tick: Nanos, last: Stay) {
        let Stay { state, residency, woken } = last;
        let latency = states.get(state).map_or(0, |state| state.exit_latency);
        let measured = match woken {
            Woken::Tick if self.next_timer > tick => 9 * MAX_INTERESTING / 10,
            Woken::Limit => self.next_timer,
            _ if residency > 2 * latency => residency - latency,
            _ => residency / 2,
        };
        let measured = measured.min(self.next_timer);
        let factor = &mut self.correction_factor[self.bucket];
        *factor -= *factor / DECAY;
        *factor += match self.next_timer {
            1.. if measured < MAX_INTERESTING => (u64::from(RESOLUTION) * measured / self.next_timer) as u32,
            _ => RESOLUTION,
        };
        self.intervals.push(u32::try_from(measured / USEC).unwrap_or(u32::MAX));
    }
}

fn which_bucket(duration: Nanos) -> usize {
    [10, 100, 1_000, 10_000, 100_000].iter().take_while(|limit| duration >= **limit * USEC).count()
}

#[cfg(test)]
mod tests {
    use super::super::idle_choice::table::{timers, STATES, TICK};
    use super::*;
    use schedlab_model::MSEC;
    use schedlab_policy::Version;

    fn of(row: &str) -> Menu {
        Menu::new(Version::find(row).unwrap().menu())
    }

    /// The governor after this many idle periods of this length, each ended by a wakeup.
    fn after(row: &str, stays: usize, length: Nanos) -> Menu {
        let mut menu = of(row);
        for _ in 0..stays {
            let choice = menu.select(&STATES, &timers(100 * MSEC, Some(2 * MSEC)));
            menu.reflect(choice.state, length, Woken::Event);
        }
        menu
    }

    #[test]
    fn what_it_chooses() {
        // (row, stays before, their length, next timer, next tick, state, whether the tick stops)
        let cases = [
            ("6.3", 0, 0, 100 * MSEC, Some(MSEC), 3, true),
            ("6.12.107", 0, 0, 100 * MSEC, Some(MSEC), 3, true),
            // Nothing but a timer is expected.
            ("6.3", 0, 0, 300 * USEC, Some(MSEC), 2, false),
            ("6.3", 0, 0, 500, Some(MSEC), 0, false),
            // Always woken after 100 us: C1E, and the tick guards the prediction.
            ("6.3", 16, 102 * USEC, 100 * MSEC, Some(2 * MSEC), 2, false),
            ("6.12.107", 16, 102 * USEC, 100 * MSEC, Some(2 * MSEC), 2, false),
            ("7.2", 16, 102 * USEC, 100 * MSEC, Some(2 * MSEC), 2, false),
            // With the tick stopped nothing would guard it.
            ("6.3", 16, 102 * USEC, 100 * MSEC, None, 3, true),
            ("7.2", 16, 102 * USEC, 100 * MSEC, None, 3, true),
            ("6.12.107", 16, 102 * USEC, 2 * TICK, None, 3, true),
            ("7.2", 16, 102 * USEC, 2 * TICK, None, 2, true),
            // A state that is deeper than the next tick allows.
            ("6.3", 16, 2 * MSEC, 100 * MSEC, Some(500 * USEC), 2, false),
            ("6.3", 16, 2 * MSEC, 100 * MSEC, Some(900 * USEC), 3, false),
        ];
        for case in cases {
            let (row, stays, length, next_timer, next_tick, state, stops_tick) = case;
            let found = after(row, stays, length).select(&STATES, &timers(next_timer, next_tick));
            assert_eq!(found, Choice { state, stops_tick }, "{case:?}");
        }
    }

    #[test]
    fn a_tick_that_wakes_it_teaches_it_to_sleep_longer() {
        for row in ["6.3", "6.6", "7.2"] {
            let mut menu = after(row, 16, 102 * USEC);
            let mut ticks = 0;
            loop {
                let choice = menu.select(&STATES, &timers(100 * MSEC, Some(TICK)));
                if choice.stops_tick {
                    break;
                }
                ticks += 1;
                menu.reflect(choice.state, TICK, Woken::Tick);
            }
            assert!((1..=8).contains(&ticks), "{row}: {ticks}");
        }
    }

    #[test]
    fn outliers_are_left_out_at_the_upper_end_and_later_at_both() {
        // (intervals in us, up to 6.14, since)
        let cases = [
            ([100, 100, 100, 100, 100, 100, 100, 100], 100, 100),
            ([100, 100, 100, 100, 100, 100, 9_000, 5_000], 100, 100),
            ([5, 5, 3_000, 3_000, 3_000, 3_000, 3_000, 3_000], 5, 3_000),
            ([100, 900, 100, 5_000, 100, 40_000, 100, 300], NONE, NONE),
        ];
        for (intervals, before, since) in cases {
            for (row, want) in [("6.6", before), ("7.2", since)] {
                let menu = Menu { intervals: Intervals::new(intervals), ..of(row) };
                assert_eq!(menu.get_typical_interval(None), want, "{row} {intervals:?}");
            }
        }
    }

    #[test]
    fn sums_and_order_are_kept_as_intervals_come() {
        let mut intervals = Intervals::new([7; INTERVALS]);
        for value in [3, 9, 9, u32::MAX, 1, 0, 40_000, 9, 3, u32::MAX, u32::MAX, 5, 2, 3, 8, 8, 8, 0, 1, 6] {
            intervals.push(value);
            let anew = Intervals::new(intervals.values);
            let of = |intervals: &Intervals| {
                let Sums { count, sum, squares } = intervals.sums;
                (intervals.sorted, count, sum, squares)
            };
            assert_eq!(of(&intervals), of(&anew), "after {value}");
        }
    }

    #[test]
    fn polling_to_its_limit_counts_as_sleeping_to_the_timer() {
        let mut menu = after("6.3", 8, USEC / 2);
        menu.select(&STATES, &timers(100 * MSEC, Some(TICK)));
        let before = menu.correction_factor;
        menu.reflect(0, 250 * USEC, Woken::Limit);
        menu.select(&STATES, &timers(100 * MSEC, Some(TICK)));
        assert!(menu.correction_factor[5] > before[5]);
        assert!(menu.intervals.values.contains(&100_000));
    }
}
