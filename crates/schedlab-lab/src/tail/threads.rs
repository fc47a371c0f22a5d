//! What all tasks of one program did together between two moments: what a request in their queue waited for.

use std::collections::VecDeque;

use schedlab_model::Nanos;

/// How many changes are kept for each program.
pub const CHANGES: usize = 16_384;

/// Task time: running, runnable without a CPU, asleep, throttled.
pub type Times = [Nanos; 4];
/// The same states as indices.
pub const RUNNING: usize = 0;
pub const WAITING: usize = 1;
pub const ASLEEP: usize = 2;
pub const THROTTLED: usize = 3;

/// The tasks of one program.
#[derive(Default)]
pub struct ProgramThreads {
    counts: [u32; 4],
    since: Nanos,
    total: Times,
    /// Counts from a moment on, and the totals up to it.
    changes: VecDeque<(Nanos, Times, [u32; 4])>,
}

impl ProgramThreads {
    /// A task changes its state; it has no old state if it is new, and no new one if it has ended.
    pub fn change(&mut self, now: Nanos, from: Option<usize>, to: Option<usize>) {
        if from == to {
            return;
        }
        for (total, count) in self.total.iter_mut().zip(self.counts) {
            *total += u64::from(count) * (now - self.since);
        }
        self.since = now;
        if let Some(count) = from.and_then(|state| self.counts.get_mut(state)) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = to.and_then(|state| self.counts.get_mut(state)) {
            *count += 1;
        }
        if self.changes.back().is_some_and(|(at, ..)| *at == now) {
            self.changes.pop_back();
        }
        if self.changes.len() == CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((now, self.total, self.counts));
    }

    /// What its tasks did between `low` and `high`; nothing where that is no longer kept.
    pub fn between(&self, low: Nanos, high: Nanos) -> Times {
        let (before, after) = (self.until(low), self.until(high));
        std::array::from_fn(|state| after[state].saturating_sub(before[state]))
    }

    fn until(&self, at: Nanos) -> Times {
        let next = self.changes.partition_point(|(time, ..)| *time <= at);
        let Some((since, total, counts)) = next.checked_sub(1).and_then(|i| self.changes.get(i)) else {
            return self.changes.front().map_or([0; 4], |(_, total, _)| *total);
        };
        std::array::from_fn(|state| total[state] + u64::from(counts[state]) * (at - since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_two_tasks_add_up() {
        let mut threads = ProgramThreads::default();
        threads.change(0, None, Some(RUNNING));
        threads.change(10, None, Some(WAITING));
        threads.change(30, Some(RUNNING), Some(ASLEEP));
        threads.change(30, Some(WAITING), Some(RUNNING));
        threads.change(50, Some(ASLEEP), None);
        assert_eq!(threads.between(0, 60), [30 + 30, 20, 20, 0]);
        assert_eq!(threads.between(20, 40), [10 + 10, 10, 10, 0]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut threads = ProgramThreads::default();
        for at in 0..3 * CHANGES as Nanos {
            threads.change(at, Some((at % 2) as usize), Some(((at + 1) % 2) as usize));
        }
        assert_eq!(threads.changes.len(), CHANGES);
    }
}
