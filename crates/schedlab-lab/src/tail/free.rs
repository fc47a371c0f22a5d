//! For how long a condition held between two moments, as far back as a bounded number of changes reaches.

use std::collections::VecDeque;

use schedlab_model::Nanos;

/// How many changes are kept.
pub const CHANGES: usize = 65_536;

/// A condition that holds or not; here: a CPU is idle and nothing waits on its runqueue.
#[derive(Default)]
pub struct Held {
    /// When it changed, for how long it had held before, and whether it has held since.
    changes: VecDeque<(Nanos, Nanos, bool)>,
}

impl Held {
    /// Sets whether it holds from `now` on.
    pub fn set(&mut self, now: Nanos, holds: bool) {
        let (since, total, held) = self.changes.back().copied().unwrap_or_default();
        if held == holds && !self.changes.is_empty() {
            return;
        }
        if self.changes.len() == CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((now, total + if held { now - since } else { 0 }, holds));
    }

    /// For how long it held between `low` and `high`; changes that are no longer kept do not count.
    pub fn between(&self, low: Nanos, high: Nanos) -> Nanos {
        self.until(high).saturating_sub(self.until(low))
    }

    fn until(&self, at: Nanos) -> Nanos {
        let next = self.changes.partition_point(|(time, ..)| *time <= at);
        let Some((since, total, held)) = next.checked_sub(1).and_then(|i| self.changes.get(i)).copied() else {
            return self.changes.front().map_or(0, |(_, total, _)| *total);
        };
        total + if held { at - since } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_adds_up_what_held() {
        let mut held = Held::default();
        for (at, holds) in [(10, true), (20, false), (25, false), (30, true)] {
            held.set(at, holds);
        }
        for (low, high, want) in [(0, 10, 0), (0, 15, 5), (12, 40, 18), (20, 30, 0), (35, 36, 1)] {
            assert_eq!(held.between(low, high), want, "{low}..{high}");
        }
    }

    #[test]
    fn what_is_forgotten_does_not_count() {
        let mut held = Held::default();
        for at in 0..(CHANGES + 10) as Nanos {
            held.set(10 * at, at % 2 == 0);
        }
        assert_eq!(held.changes.len(), CHANGES);
        assert_eq!(held.between(0, 100), 0);
        assert_eq!(held.between(200, 400), 100);
    }
}
