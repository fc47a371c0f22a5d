//! Keeps what happens near given points of time, so that memory does not grow with the run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use schedlab_model::Nanos;

/// An interval, numbered in the order in which the intervals ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: Nanos,
    number: u64,
}

/// From when to when, and what.
type Span<T> = (Nanos, Nanos, T);

/// Around each point, the `most` intervals that ended last before it, the `most` that began first after it, and all
/// that contain it. Memory: `2 * most` intervals for each point, and those that contain it, of which there is at most
/// one per CPU and task.
pub struct Near<T> {
    most: usize,
    points: Vec<Point>,
    kept: BTreeMap<u64, Span<T>>,
    users: BTreeMap<u64, u32>,
    numbers: u64,
}

struct Point {
    at: Nanos,
    before: BinaryHeap<Reverse<Entry>>,
    after: BinaryHeap<Entry>,
    /// Everything that overlaps what lies between these is kept.
    low: Nanos,
    high: Nanos,
}

impl<T> Near<T> {
    pub fn new(points: &[Nanos], most: usize) -> Self {
        let point = |at: &Nanos| Point {
            at: *at,
            before: BinaryHeap::new(),
            after: BinaryHeap::new(),
            low: 0,
            high: Nanos::MAX,
        };
        let points = points.iter().map(point).collect();
        Near { most, points, kept: BTreeMap::new(), users: BTreeMap::new(), numbers: 0 }
    }

    /// Adds an interval from `from` until `until`.
    pub fn push(&mut self, from: Nanos, until: Nanos, what: T) {
        let number = self.numbers;
        self.numbers += 1;
        let mut users = 0;
        let mut evicted = Vec::new();
        for point in &mut self.points {
            if until < point.at {
                users += 1;
                point.before.push(Reverse(Entry { key: until, number }));
                if point.before.len() > self.most {
                    if let Some(Reverse(first)) = point.before.pop() {
                        point.low = point.low.max(first.key);
                        evicted.push(first.number);
                    }
                }
            } else if from > point.at {
                if from >= point.high {
                    continue;
                }
                users += 1;
                point.after.push(Entry { key: from, number });
                if point.after.len() > self.most {
                    if let Some(last) = point.after.pop() {
                        point.high = point.high.min(last.key);
                        evicted.push(last.number);
                    }
                }
            } else {
                users += 1;
            }
        }
        if users > 0 {
            self.kept.insert(number, (from, until, what));
            self.users.insert(number, users);
        }
        evicted.into_iter().for_each(|number| self.release(number));
    }

    fn release(&mut self, number: u64) {
        let Some(users) = self.users.get_mut(&number) else { return };
        *users -= 1;
        if *users == 0 {
            self.users.remove(&number);
            self.kept.remove(&number);
        }
    }

    /// What is kept, in the order in which it ended, and for each point the range in which nothing is missing.
    pub fn finish(self) -> (Vec<Span<T>>, Vec<(Nanos, Nanos)>) {
        (self.kept.into_values().collect(), self.points.iter().map(|point| (point.low, point.high)).collect())
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.kept.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Everything that overlaps the range of a point is there, and there is never more than the bound.
        #[test]
        fn ranges_are_complete_and_memory_is_bounded(
            mut spans in prop::collection::vec((0u64..1000, 0u64..30), 0..300),
            points in prop::collection::vec(0u64..1000, 1..4),
            most in 1usize..20,
        ) {
            spans.sort_by_key(|(from, length)| from + length);
            let mut near = Near::new(&points, most);
            for (from, length) in &spans {
                near.push(*from, from + length, ());
                let across = |at: &u64| spans.iter().filter(|(from, length)| *from <= *at && *at <= from + length).count();
                prop_assert!(near.len() <= points.iter().map(|at| 2 * most + across(at)).sum());
            }
            let (kept, ranges) = near.finish();
            for (low, high) in ranges {
                let inside = |from: u64, until: u64| until > low && from < high;
                let want = spans.iter().filter(|(from, length)| inside(*from, from + length)).count();
                prop_assert_eq!(kept.iter().filter(|(from, until, ())| inside(*from, *until)).count(), want);
            }
        }
    }
}
