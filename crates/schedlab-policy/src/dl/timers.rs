//! The high-resolution timers of the class: `dl_timer` and `inactive_timer` of every task.

use std::collections::BTreeMap;

use schedlab_model::{Nanos, TaskId};

/// What expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// `dl_timer`: the runtime of a throttled task is replenished.
    Replenish(TaskId),
    /// `inactive_timer`: the 0-lag time of a task that sleeps or has left the class.
    Inactive(TaskId),
    /// The same of a task that has exited, with the bandwidth to release.
    Gone(u64),
}

/// A timer that has been started: when it expires, and its place among those of that time.
pub(super) type Armed = (Nanos, u64);

/// The timers that have been started, in the order in which they expire.
#[derive(Clone, Default, Debug)]
pub(super) struct Timers {
    armed: BTreeMap<Armed, Timer>,
    started: u64,
}

impl Timers {
    /// Starts the timer, as `hrtimer_start` does.
    pub fn start(&mut self, at: Nanos, timer: Timer) -> Armed {
        self.started += 1;
        self.armed.insert((at, self.started), timer);
        (at, self.started)
    }

    /// `hrtimer_try_to_cancel`; whether the timer was active.
    pub fn cancel(&mut self, timer: &mut Option<Armed>) -> bool {
        timer.take().is_some_and(|armed| self.armed.remove(&armed).is_some())
    }

    /// When the next one expires.
    #[inline]
    pub fn next(&self) -> Option<Nanos> {
        self.armed.first_key_value().map(|((at, _), _)| *at)
    }

    /// The first timer that has expired.
    pub fn expired(&mut self, now: Nanos) -> Option<Timer> {
        let first = self.armed.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }
}
