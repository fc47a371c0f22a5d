//! The event queue: at most one pending event per source, ordered by (time, rank, phase, sequence).

use schedlab_model::{Nanos, Ties};

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

/// Time, rank, phase and sequence in one number, so that one comparison orders two events.
type Key = u128;

const SEQUENCE_BITS: u32 = 48;
const PHASE_BITS: u32 = 64 - Ties::BITS - SEQUENCE_BITS;

#[inline]
fn key(time: Nanos, rank: u16, phase: Phase, sequence: u64) -> Key {
    let order = u64::from(rank) << PHASE_BITS | phase as u64;
    (Key::from(time) << 64) | Key::from(order << SEQUENCE_BITS | sequence)
}

#[inline]
fn time_of(key: Key) -> Nanos {
    (key >> 64) as Nanos
}

const ABSENT: u32 = u32::MAX;
/// Children per heap node: four keep a 1,000-entry heap five levels deep and within few cache lines.
const ARITY: usize = 4;

/// Slot of a source whose event is in front of the heap.
const FRONT: u32 = u32::MAX - 1;
/// Later than every event.
const NEVER: Key = Key::MAX;

/// An indexed heap: `source` is dense (`0..sources`), each with at most one pending event, so that moving or
/// cancelling an event needs no tombstones.
///
/// One event may stand in front of the heap: the latest one set, as long as it is earlier than what stood there. A
/// running task sets the end of its next segment and is usually the next to be handled, so most events never enter the
/// heap.
#[derive(Clone)]
pub struct EventQueue {
    /// The event in front and its source; [`NEVER`] if there is none.
    front: (Key, u32),
    /// Key of the heap's first entry; [`NEVER`] if it is empty.
    top: Key,
    heap: Vec<(Key, u32)>,
    slot: Vec<u32>,
    sequence: u64,
}

impl EventQueue {
    /// An empty queue for the sources `0..sources`.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        let heap = Vec::with_capacity(sources);
        EventQueue { front: (NEVER, 0), top: NEVER, heap, slot: vec![ABSENT; sources], sequence: 0 }
    }

    /// Schedules the source's event at `time`, replacing its pending one. Events of one instant are ordered by rank
    /// ([`Ties::rank`]), then by phase.
    #[inline]
    pub fn set(&mut self, source: u32, time: Nanos, rank: u16, phase: Phase) {
        self.sequence += 1;
        let key = key(time, rank, phase, self.sequence);
        let slot = &mut self.slot[source as usize];
        match *slot {
            ABSENT if key < self.front.0 => {
                *slot = FRONT;
                let before = std::mem::replace(&mut self.front, (key, source));
                if before.0 != NEVER {
                    self.push(before);
                }
            }
            ABSENT => self.push((key, source)),
            FRONT => self.front.0 = key,
            at => self.rekey(at as usize, key),
        }
    }

    /// Removes the source's pending event, if any.
    #[inline]
    pub fn cancel(&mut self, source: u32) {
        match std::mem::replace(&mut self.slot[source as usize], ABSENT) {
            ABSENT => {}
            FRONT => self.front.0 = NEVER,
            at => self.remove(at as usize),
        }
    }

    /// When the source's event is due.
    #[must_use]
    pub fn due(&self, source: u32) -> Option<Nanos> {
        match self.slot[source as usize] {
            ABSENT => None,
            FRONT => Some(time_of(self.front.0)),
            at => Some(time_of(self.heap[at as usize].0)),
        }
    }

    /// Time of the earliest event; the end of time if nothing is pending.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Nanos {
        time_of(self.front.0.min(self.top))
    }

    /// The source of the earliest event if that is due at `now`.
    #[must_use]
    pub fn peek_at(&self, now: Nanos) -> Option<u32> {
        let (key, source) = self.front;
        let first = if key < self.top { (key, source) } else { *self.heap.first()? };
        (time_of(first.0) <= now).then_some(first.1)
    }

    /// Takes the earliest event if it is due at `now`.
    #[inline]
    pub fn pop_at(&mut self, now: Nanos) -> Option<u32> {
        let (key, source) = self.front;
        if key < self.top {
            if time_of(key) > now {
                return None;
            }
            self.front.0 = NEVER;
            self.slot[source as usize] = ABSENT;
            return Some(source);
        }
        if time_of(self.top) > now {
            return None;
        }
        self.pop_heap()
    }

    fn pop_heap(&mut self) -> Option<u32> {
        let (_, source) = *self.heap.first()?;
        self.slot[source as usize] = ABSENT;
        self.remove(0);
        Some(source)
    }

    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len() + usize::from(self.front.0 != NEVER)
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn push(&mut self, entry: (Key, u32)) {
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1);
        self.note_top();
    }

    fn rekey(&mut self, at: usize, key: Key) {
        let earlier = key < self.heap[at].0;
        self.heap[at].0 = key;
        if earlier {
            self.sift_up(at);
        } else {
            self.sift_down(at);
        }
        self.note_top();
    }

    /// Takes an entry out of the heap; its slot is the caller's.
    fn remove(&mut self, at: usize) {
        let Some(last) = self.heap.pop() else { return };
        if at < self.heap.len() {
            let earlier = last.0 < self.heap[at].0;
            self.heap[at] = last;
            if earlier {
                self.sift_up(at);
            } else {
                self.sift_down(at);
            }
        }
        self.note_top();
    }

    #[inline]
    fn note_top(&mut self) {
        self.top = self.heap.first().map_or(NEVER, |first| first.0);
    }

    fn sift_up(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].0 <= entry.0 {
                break;
            }
            self.put(at, self.heap[parent]);
            at = parent;
        }
        self.put(at, entry);
    }

    fn sift_down(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let first = at * ARITY + 1;
            let Some(child) = self.heap.get(first..).and_then(earliest) else { break };
            let below = first + child;
            let least = self.heap[below];
            if entry.0 <= least.0 {
                break;
            }
            self.put(at, least);
            at = below;
        }
        self.put(at, entry);
    }

    #[inline]
    fn put(&mut self, at: usize, entry: (Key, u32)) {
        self.heap[at] = entry;
        self.slot[entry.1 as usize] = at as u32;
    }
}

/// Which of the first [`ARITY`] entries is the earliest. Nearly every node has all its children: those are compared in pairs,
/// without a branch that depends on the outcome.
#[inline]
fn earliest(children: &[(Key, u32)]) -> Option<usize> {
    let [a, b, c, d, ..] = children else {
        return (0..children.len()).min_by_key(|nth| children[*nth].0);
    };
    let (first, ab) = if b.0 < a.0 { (1, b.0) } else { (0, a.0) };
    let (second, cd) = if d.0 < c.0 { (3, d.0) } else { (2, c.0) };
    Some(if cd < ab { second } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn agrees_with_a_sorted_map(ops in prop::collection::vec((0u32..12, 0u64..12, 0u16..3, 0u8..3), 1..300)) {
            let phases = [Phase::Control, Phase::Tick, Phase::Segment];
            let mut queue = EventQueue::new(12);
            let mut model: BTreeMap<u32, (u64, u16, Phase, u64)> = BTreeMap::new();
            for (i, (source, time, rank, what)) in ops.into_iter().enumerate() {
                if time == 1 {
                    let first = model.iter().min_by_key(|(_, key)| **key).map(|(source, _)| *source);
                    prop_assert_eq!(queue.peek_at(u64::MAX), first);
                    prop_assert_eq!(queue.pop_at(u64::MAX), first);
                    first.map(|source| model.remove(&source));
                    prop_assert_eq!(queue.len(), model.len());
                    continue;
                }
                if time == 0 {
                    queue.cancel(source);
                    model.remove(&source);
                } else {
                    let rank = rank * ((1 << Ties::BITS) - 1) / 2;
                    queue.set(source, time, rank, phases[what as usize]);
                    model.insert(source, (time, rank, phases[what as usize], i as u64));
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.next_time(), model.values().map(|k| k.0).min().unwrap_or(u64::MAX));
            }
            while let Some(first) = model.iter().min_by_key(|(_, key)| **key).map(|(source, _)| *source) {
                prop_assert_eq!(queue.pop_at(u64::MAX), Some(first));
                model.remove(&first);
            }
            prop_assert!(queue.is_empty());
        }
    }
}
