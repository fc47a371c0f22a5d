//! Operations counted second by second: one sample for every whole second after the warm-up, quiet ones included.

use schedlab_model::{Nanos, SEC};

use crate::Histogram;

/// The counter of the second under way and the samples of those before it.
#[derive(Clone, Debug)]
pub(crate) struct PerSecond {
    pub(crate) samples: Histogram,
    ends: Nanos,
    counted: u64,
    warmup: Nanos,
}

impl PerSecond {
    pub fn new(start: Nanos, warmup: Nanos) -> PerSecond {
        PerSecond { samples: Histogram::default(), ends: start.saturating_add(SEC), counted: 0, warmup }
    }

    pub fn count(&mut self, time: Nanos, count: u64) {
        self.advance(time);
        self.counted = self.counted.saturating_add(count);
    }

    /// Closes the seconds that have ended by `time`.
    pub fn advance(&mut self, time: Nanos) {
        while self.ends <= time {
            if self.ends >= self.warmup.saturating_add(SEC) {
                self.samples.record(self.counted);
            }
            self.counted = 0;
            let Some(next) = self.ends.checked_add(SEC) else { return };
            self.ends = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stat;

    #[test]
    fn whole_seconds_after_the_warm_up_are_samples() {
        let mut seconds = PerSecond::new(0, SEC);
        for (time, count) in [(0, 9), (SEC, 4), (2 * SEC - 1, 1), (4 * SEC, 7), (5 * SEC - 1, 1), (5 * SEC, 3)] {
            seconds.count(time, count);
        }
        seconds.advance(6 * SEC - 1);
        let stats = [Stat::Count, Stat::Min, Stat::Max, Stat::Mean].map(|stat| seconds.samples.stat(stat));
        assert_eq!(stats, [4.0, 0.0, 8.0, 13.0 / 4.0].map(Some), "the seconds of 0, 0, 5 and 8");
    }
}
