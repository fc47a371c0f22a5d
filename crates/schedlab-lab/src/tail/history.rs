//! What a task did and what a CPU executed, as far back as a bounded number of entries reaches.

use std::collections::VecDeque;

use schedlab_model::{Nanos, Pid};

use super::names::Name;

/// How many intervals are kept for each living task.
pub const STAYS: usize = 1024;
/// How many slices are kept for each CPU.
pub const SLICES: usize = 4096;

/// What ended a sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Waker {
    /// An interrupt: a timer or a device.
    Interrupt,
    /// A task of this program.
    Task(Name),
    /// The events do not show it.
    Unknown,
}

/// What a task did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It ran on this CPU.
    Ran(usize),
    /// It was runnable on the runqueue of this CPU.
    Waited(usize),
    /// It was runnable, but its group, its class or its own reservation had no runtime left.
    Throttled(Name),
    /// It slept; what woke it and on which CPU.
    Slept(Wakeup),
}

/// A wakeup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wakeup {
    pub by: Waker,
    /// The task that it came from, 0 if it came from none.
    pub pid: Pid,
    pub cpu: usize,
}

impl Wakeup {
    /// The events do not show where it came from.
    pub const UNKNOWN: Wakeup = Wakeup { by: Waker::Unknown, pid: 0, cpu: usize::MAX };
}

/// For how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    pub from: Nanos,
    pub until: Nanos,
    pub what: What,
}

/// The last intervals of a task, without gaps between them.
#[derive(Default)]
pub struct History(VecDeque<Stay>);

impl History {
    pub fn push(&mut self, from: Nanos, until: Nanos, what: What) {
        if until <= from {
            return;
        }
        if self.0.len() == STAYS {
            self.0.pop_front();
        }
        self.0.push_back(Stay { from, until, what });
    }

    /// The parts of the intervals between `low` and `high`, the last first.
    pub fn between(&self, low: Nanos, high: Nanos) -> impl Iterator<Item = Stay> + '_ {
        let clipped = move |stay: &Stay| Stay { from: stay.from.max(low), until: stay.until.min(high), ..*stay };
        let stays = self.0.iter().rev().skip_while(move |stay| stay.from >= high);
        stays.take_while(move |stay| stay.until > low).map(clipped)
    }
}

/// One task on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    pub from: Nanos,
    pub until: Nanos,
    pub pid: Pid,
    pub program: Name,
}

/// The last slices of a CPU.
#[derive(Clone, Default)]
pub struct Executed(VecDeque<Slice>);

impl Executed {
    pub fn push(&mut self, slice: Slice) {
        if self.0.len() == SLICES {
            self.0.pop_front();
        }
        self.0.push_back(slice);
    }

    /// The parts of the slices between `low` and `high`, the last first.
    pub fn between(&self, low: Nanos, high: Nanos) -> impl Iterator<Item = Slice> + '_ {
        let clipped = move |slice: &Slice| Slice { from: slice.from.max(low), until: slice.until.min(high), ..*slice };
        let slices = self.0.iter().rev().skip_while(move |slice| slice.from >= high);
        slices.take_while(move |slice| slice.until > low).map(clipped)
    }

    /// The time from which it is known what ran; 0 as long as nothing was discarded.
    pub fn known_from(&self) -> Nanos {
        if self.0.len() < SLICES {
            return 0;
        }
        self.0.front().map_or(0, |slice| slice.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_are_cut_and_empty_ones_are_not_kept() {
        let mut history = History::default();
        for (from, until, what) in [
            (0, 10, What::Ran(0)),
            (10, 10, What::Slept(Wakeup { by: Waker::Interrupt, pid: 0, cpu: 0 })),
            (10, 30, What::Waited(1)),
            (30, 40, What::Ran(1)),
        ] {
            history.push(from, until, what);
        }
        let found: Vec<Stay> = history.between(5, 35).collect();
        let stay = |from, until, what| Stay { from, until, what };
        assert_eq!(found, [stay(30, 35, What::Ran(1)), stay(10, 30, What::Waited(1)), stay(5, 10, What::Ran(0))]);
        assert_eq!(history.between(40, 50).count(), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut history, mut executed) = (History::default(), Executed::default());
        for at in 0..(3 * SLICES) as Nanos {
            history.push(at, at + 1, What::Ran(0));
            executed.push(Slice { from: at, until: at + 1, pid: 1, program: 0 });
        }
        assert_eq!((history.0.len(), executed.0.len()), (STAYS, SLICES));
        assert_eq!(executed.known_from(), 2 * SLICES as Nanos);
    }
}
