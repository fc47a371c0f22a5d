//! The event queue: at most one pending event per source, ordered by (time, phase, sequence).

use schedlab_model::Nanos;

/// What kind of event; events of one instant are handled in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Phase {
    /// The run's own marks: start of a task, end of the warm-up, end of the run.
    Control = 0,
    /// High-resolution timers.
    Timer = 1,
    /// The scheduler tick.
    Tick = 2,
    /// Inter-processor interrupts.
    Ipi = 3,
    /// A CPU leaves an idle state.
    IdleExit = 4,
    /// The running task's current segment ends.
    Segment = 5,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    time: Nanos,
    phase: Phase,
    sequence: u64,
}

const ABSENT: u32 = u32::MAX;
/// Children per heap node: four keep a 1,000-entry heap five levels deep and within few cache lines.
const ARITY: usize = 4;

/// An indexed heap: `source` is dense (`0..sources`), each with at most one pending event, so that moving or
/// cancelling an event needs no tombstones.
#[derive(Clone)]
pub struct EventQueue {
    heap: Vec<(Key, u32)>,
    slot: Vec<u32>,
    sequence: u64,
}

impl EventQueue {
    /// An empty queue for the sources `0..sources`.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        EventQueue { heap: Vec::with_capacity(sources), slot: vec![ABSENT; sources], sequence: 0 }
    }

    /// Schedules the source's event at `time`, replacing its pending one.
    #[inline]
    pub fn set(&mut self, source: u32, time: Nanos, phase: Phase) {
        self.sequence += 1;
        let key = Key { time, phase, sequence: self.sequence };
        match self.slot[source as usize] {
            ABSENT => {
                let at = self.heap.len();
                self.heap.push((key, source));
                self.slot[source as usize] = at as u32;
                self.sift_up(at);
            }
            at => {
                let at = at as usize;
                let earlier = key < self.heap[at].0;
                self.heap[at].0 = key;
                if earlier {
                    self.sift_up(at);
                } else {
                    self.sift_down(at);
                }
            }
        }
    }

    /// Removes the source's pending event, if any.
    #[inline]
    pub fn cancel(&mut self, source: u32) {
        let at = self.slot[source as usize];
        if at != ABSENT {
            self.remove(at as usize);
        }
    }

    /// When the source's event is due.
    #[must_use]
    pub fn due(&self, source: u32) -> Option<Nanos> {
        match self.slot[source as usize] {
            ABSENT => None,
            at => Some(self.heap[at as usize].0.time),
        }
    }

    /// Time of the earliest event.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Option<Nanos> {
        self.heap.first().map(|(key, _)| key.time)
    }

    /// Takes the earliest event if it is due at `now`.
    #[inline]
    pub fn pop_at(&mut self, now: Nanos) -> Option<u32> {
        let (key, source) = *self.heap.first()?;
        if key.time > now {
            return None;
        }
        self.remove(0);
        Some(source)
    }

    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn remove(&mut self, at: usize) {
        let (_, source) = self.heap.swap_remove(at);
        self.slot[source as usize] = ABSENT;
        if at < self.heap.len() {
            self.slot[self.heap[at].1 as usize] = at as u32;
            self.sift_down(at);
            self.sift_up(at);
        }
    }

    fn sift_up(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].0 <= entry.0 {
                break;
            }
            self.heap[at] = self.heap[parent];
            self.slot[self.heap[at].1 as usize] = at as u32;
            at = parent;
        }
        self.heap[at] = entry;
        self.slot[entry.1 as usize] = at as u32;
    }

    fn sift_down(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let first = at * ARITY + 1;
            let last = (first + ARITY).min(self.heap.len());
            let Some(least) = (first..last).min_by_key(|child| self.heap[*child].0) else { break };
            if entry.0 <= self.heap[least].0 {
                break;
            }
            self.heap[at] = self.heap[least];
            self.slot[self.heap[at].1 as usize] = at as u32;
            at = least;
        }
        self.heap[at] = entry;
        self.slot[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn agrees_with_a_sorted_map(ops in prop::collection::vec((0u32..12, 0u64..50, 0u8..3), 1..300)) {
            let phases = [Phase::Control, Phase::Tick, Phase::Segment];
            let mut queue = EventQueue::new(12);
            let mut model: BTreeMap<u32, (u64, Phase, u64)> = BTreeMap::new();
            for (i, (source, time, what)) in ops.into_iter().enumerate() {
                if time == 0 {
                    queue.cancel(source);
                    model.remove(&source);
                } else {
                    queue.set(source, time, phases[what as usize]);
                    model.insert(source, (time, phases[what as usize], i as u64));
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.next_time(), model.values().map(|k| k.0).min());
            }
            while let Some(first) = model.iter().min_by_key(|(_, key)| **key).map(|(source, _)| *source) {
                prop_assert_eq!(queue.pop_at(u64::MAX), Some(first));
                model.remove(&first);
            }
            prop_assert!(queue.is_empty());
        }
    }
}
