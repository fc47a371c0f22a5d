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

/// The place of an event among those of its instant.
#[inline]
fn order_of(key: Key) -> u64 {
    key as u64
}

/// Children per heap node: four keep a 1,000-entry heap five levels deep and within few cache lines.
const ARITY: usize = 4;

/// The source has no entry in the heap.
const ABSENT: u32 = u32::MAX;
/// The source's event is in front of the heap.
const FRONT: u32 = u32::MAX - 1;
/// Later than every event: the key of a source that has none.
const NEVER: Key = Key::MAX;

/// The event of a source.
#[derive(Clone, Copy)]
struct Place {
    /// When it is due, unless it is in front; [`NEVER`] if none is pending.
    key: Key,
    /// The place of its heap entry among those of one time.
    order: u64,
    /// Its entry in the heap, [`FRONT`] or [`ABSENT`].
    at: u32,
}

/// An entry of the heap: 16 bytes, so that the children of a node take a cache line. What orders those of one time is in
/// the places of their sources.
#[derive(Clone, Copy)]
struct Entry {
    time: Nanos,
    source: u32,
}

/// An indexed heap: `source` is dense (`0..sources`), each with at most one pending event and at most one entry.
///
/// An entry of the heap may be earlier than its source's event, never later. An event that moves to a later time or is
/// cancelled leaves its entry where it is: ticks and timers are mostly set anew before they are due. The first entry is put
/// right before it is looked at: until then `stale` is set, and what is set next may take its place.
///
/// One event may stand in front of the heap: the latest one set, as long as it is earlier than what stood there. A
/// running task sets the end of its next segment and is usually the next to be handled, so most events never enter the
/// heap.
#[derive(Clone)]
pub struct EventQueue {
    /// The event in front and its source; [`NEVER`] if there is none.
    front: (Key, u32),
    /// Key of the heap's first event unless `stale`; [`NEVER`] if the heap is empty.
    top: Key,
    /// The heap's first entry is not its source's event.
    stale: bool,
    heap: Vec<Entry>,
    places: Vec<Place>,
    pending: usize,
    sequence: u64,
}

impl EventQueue {
    /// An empty queue for the sources `0..sources`.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        EventQueue {
            front: (NEVER, 0),
            top: NEVER,
            stale: false,
            heap: Vec::new(),
            places: vec![Place { key: NEVER, order: 0, at: ABSENT }; sources],
            pending: 0,
            sequence: 0,
        }
    }

    /// Schedules the source's event at `time`, replacing its pending one. Events of one instant are ordered by rank
    /// ([`Ties::rank`]), then by phase.
    #[inline]
    pub fn set(&mut self, source: u32, time: Nanos, rank: u16, phase: Phase) {
        self.sequence += 1;
        let key = key(time, rank, phase, self.sequence);
        let place = &mut self.places[source as usize];
        match place.at {
            FRONT => self.front.0 = key,
            ABSENT if key < self.front.0 && !self.stale => {
                place.at = FRONT;
                self.pending += 1;
                let before = std::mem::replace(&mut self.front, (key, source));
                if before.0 != NEVER {
                    self.push(before.0, before.1);
                }
            }
            ABSENT => {
                self.pending += 1;
                self.insert(key, source);
            }
            at => self.rekey(at as usize, key),
        }
    }

    /// Removes the source's pending event, if any.
    #[inline]
    pub fn cancel(&mut self, source: u32) {
        let place = &mut self.places[source as usize];
        match place.at {
            ABSENT => {}
            FRONT => {
                place.at = ABSENT;
                self.front.0 = NEVER;
                self.pending -= 1;
            }
            at => {
                self.pending -= usize::from(place.key != NEVER);
                place.key = NEVER;
                self.stale |= at == 0;
            }
        }
    }

    /// When the source's event is due.
    #[must_use]
    pub fn due(&self, source: u32) -> Option<Nanos> {
        let place = &self.places[source as usize];
        let key = if place.at == FRONT { self.front.0 } else { place.key };
        (key != NEVER).then(|| time_of(key))
    }

    /// Time of the earliest event; the end of time if nothing is pending.
    #[inline]
    #[must_use]
    pub fn next_time(&mut self) -> Nanos {
        let top = self.top();
        time_of(self.front.0).min(time_of(top))
    }

    /// The source of the earliest event if that is due at `now`.
    #[must_use]
    pub fn peek_at(&mut self, now: Nanos) -> Option<u32> {
        let top = self.top();
        let (key, source) = self.front;
        let first = if key < top { Entry { time: time_of(key), source } } else { *self.heap.first()? };
        (first.time <= now).then_some(first.source)
    }

    /// Takes the earliest event if it is due at `now`.
    #[inline]
    pub fn pop_at(&mut self, now: Nanos) -> Option<u32> {
        let top = self.top();
        let (key, source) = self.front;
        if key < top {
            if time_of(key) > now {
                return None;
            }
            self.front.0 = NEVER;
            self.pending -= 1;
            self.places[source as usize].at = ABSENT;
            return Some(source);
        }
        if time_of(top) > now {
            return None;
        }
        self.pop_heap()
    }

    /// The entry stays where it is: most often the next event that is set takes its place.
    fn pop_heap(&mut self) -> Option<u32> {
        let source = self.heap.first()?.source;
        self.cancel(source);
        Some(source)
    }

    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Key of the heap's first event.
    #[inline]
    fn top(&mut self) -> Key {
        if self.stale {
            self.settle();
        }
        self.top
    }

    /// Puts the first entry right until it is its source's event.
    #[inline(never)]
    fn settle(&mut self) {
        while self.stale {
            let source = self.heap[0].source;
            match self.places[source as usize].key {
                NEVER => self.remove_first(source),
                key => {
                    let entry = self.entry(key, source);
                    self.replace_first(entry);
                }
            }
        }
    }

    /// Takes the first entry, whose source has no event, out of the heap.
    fn remove_first(&mut self, source: u32) {
        self.places[source as usize].at = ABSENT;
        match self.heap.pop() {
            Some(last) if !self.heap.is_empty() => self.replace_first(last),
            _ => self.note_first(),
        }
    }

    /// Puts an entry in the place of the first one.
    fn replace_first(&mut self, entry: Entry) {
        self.sift_down(entry);
        self.note_first();
    }

    /// Adds an event to the heap: in the place of the first entry, if that one's source has no event.
    #[inline(never)]
    fn insert(&mut self, key: Key, source: u32) {
        if self.stale {
            let first = &mut self.places[self.heap[0].source as usize];
            if first.key == NEVER {
                first.at = ABSENT;
                let entry = self.entry(key, source);
                return self.replace_first(entry);
            }
        }
        self.push(key, source);
    }

    #[inline(never)]
    fn push(&mut self, key: Key, source: u32) {
        let entry = self.entry(key, source);
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1, entry);
        self.note_first();
    }

    /// The event of a heap entry has moved.
    #[inline(never)]
    fn rekey(&mut self, at: usize, key: Key) {
        let Entry { time, source } = self.heap[at];
        let place = &mut self.places[source as usize];
        self.pending += usize::from(place.key == NEVER);
        place.key = key;
        if (time_of(key), order_of(key)) < (time, place.order) {
            let entry = self.entry(key, source);
            self.sift_up(at, entry);
            self.note_first();
        } else if at == 0 {
            self.stale = true;
        }
    }

    /// The heap entry of an event.
    #[inline]
    fn entry(&mut self, key: Key, source: u32) -> Entry {
        let place = &mut self.places[source as usize];
        (place.key, place.order) = (key, order_of(key));
        Entry { time: time_of(key), source }
    }

    #[inline]
    fn note_first(&mut self) {
        (self.top, self.stale) = match self.heap.first() {
            Some(first) => {
                let Place { key, order, .. } = self.places[first.source as usize];
                (key, (time_of(key), order_of(key)) != (first.time, order))
            }
            None => (NEVER, false),
        };
    }

    /// Whether the entry `a` comes before `b`. Two of one time are rare: the branch costs less than to compare both orders.
    #[inline(always)]
    fn precedes(&self, a: Entry, b: Entry) -> bool {
        if a.time == b.time {
            return self.precedes_within(a, b);
        }
        a.time < b.time
    }

    #[cold]
    #[inline(never)]
    fn precedes_within(&self, a: Entry, b: Entry) -> bool {
        let order = |entry: Entry| self.places[entry.source as usize].order;
        order(a) < order(b)
    }

    /// Puts an entry at `at` or above.
    fn sift_up(&mut self, mut at: usize, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            let above = self.heap[parent];
            if !self.precedes(entry, above) {
                break;
            }
            self.put(at, above);
            at = parent;
        }
        self.put(at, entry);
    }

    /// Puts an entry in the place of the first one or below.
    fn sift_down(&mut self, entry: Entry) {
        let mut at = 0;
        while let Some((below, least)) = self.earliest_child(at) {
            if !self.precedes(least, entry) {
                break;
            }
            self.put(at, least);
            at = below;
        }
        self.put(at, entry);
    }

    /// The earliest of the children of `at`, and where it is. Nearly every node has all its children: those are compared in
    /// pairs, without a branch that depends on the outcome.
    #[inline(always)]
    fn earliest_child(&self, at: usize) -> Option<(usize, Entry)> {
        let first = at * ARITY + 1;
        let children = self.heap.get(first..)?;
        let Some(children) = children.first_chunk::<ARITY>() else {
            let earlier = |a, b| if self.precedes(children[b], children[a]) { b } else { a };
            return (0..children.len()).reduce(earlier).map(|child| (first + child, children[child]));
        };
        let [a, b, c, d] = children;
        let (ab, earlier) = (usize::from(b.time < a.time), a.time.min(b.time));
        let (cd, later) = (2 + usize::from(d.time < c.time), c.time.min(d.time));
        let mut child = if later < earlier { cd } else { ab };
        if a.time == b.time || c.time == d.time || earlier == later {
            child = self.earliest_within(children);
        }
        Some((first + child, children[child & (ARITY - 1)]))
    }

    /// The same of children of which some have the same time.
    #[cold]
    #[inline(never)]
    fn earliest_within(&self, children: &[Entry; ARITY]) -> usize {
        (1..ARITY).fold(0, |a, b| if self.precedes(children[b], children[a]) { b } else { a })
    }

    #[inline]
    fn put(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.places[entry.source as usize].at = at as u32;
    }
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
