//! A hierarchical timer wheel of the events that do not come next at once.
//!
//! A slot of level `n` is `2^(shift + 10 n)` ns wide. An event is in the lowest level in which it is in the same turn
//! of the wheel as `base`, the time of the event taken last:
//!
//! ```text
//! level = 0 if (time ^ base) >> shift < 1024, else floor(log2((time ^ base) >> shift) / 10), at most 3
//! slot  = (time >> (shift + 10 level)) mod 1024; in level 3 min(time >> (shift + 30), 1023)
//! ```
//!
//! So every event of a slot is earlier than those of the slots after it, and those of a level are earlier than those of
//! the levels above. The events of a slot are linked in no order; a long list that is searched a second time is sorted,
//! as many events may be due at once. Setting many events of one instant takes time that grows with their square if
//! their slot is sorted. When the first event of a slot above level 0 is taken, the others of that slot move down.

use schedlab_model::{Nanos, Table};

use super::order::{time_of, Key, NEVER};

const LEVELS: usize = 4;
const SLOT_BITS: u32 = 10;
const SLOTS: usize = 1 << SLOT_BITS;
const WORDS: usize = LEVELS * SLOTS / 64;

/// A list of more events is sorted rather than searched again (estimate; 4 to 32 are reasonable).
///
/// A search reads each of n events once. Sorting compares some n log2(n) pairs and writes each event twice, which
/// pays after about log2(n) further searches; a list that has grown beyond a few events is taken event by event. The
/// order of events does not depend on it.
const LONG: usize = 8;

/// No source.
pub(super) const NIL: u32 = u32::MAX;
/// The slot of a source without an event.
const ABSENT: u32 = u32::MAX;
/// No slot.
const NONE: usize = usize::MAX;

/// The event of a source.
#[derive(Clone, Copy)]
struct Place {
    key: Key,
    next: u32,
    previous: u32,
    slot: u32,
}

/// Events by time, at most one of each source.
#[derive(Clone)]
pub(super) struct Wheel {
    /// The first event and its source; [`NEVER`] and [`NIL`] if there is none.
    first: (Key, u32),
    /// How many events there are.
    length: usize,
    /// The time of the event taken last. An event that is earlier than it goes into the slot of `base`.
    base: Nanos,
    shift: u32,
    /// Which words of `used` are not 0.
    summary: u64,
    /// Which slots hold events: one bit each, level by level.
    used: [u64; WORDS],
    /// The slot whose long list was searched last.
    searched: usize,
    /// The slot whose list is sorted.
    sorted: usize,
    /// The first source of each slot's list.
    heads: Box<[u32; LEVELS * SLOTS]>,
    places: Table<Place>,
}

impl Wheel {
    /// An empty wheel for the sources `0..sources` whose narrowest slots are `2^shift` ns wide.
    pub fn new(sources: usize, shift: u32) -> Wheel {
        Wheel {
            first: (NEVER, NIL),
            length: 0,
            base: 0,
            shift,
            summary: 0,
            used: [0; WORDS],
            searched: NONE,
            sorted: NONE,
            heads: Box::new([NIL; LEVELS * SLOTS]),
            places: vec![Place { key: NEVER, next: NIL, previous: NIL, slot: ABSENT }; sources].into(),
        }
    }

    /// The first event and its source; [`NEVER`] and [`NIL`] if there is none.
    #[inline]
    pub fn first(&self) -> (Key, u32) {
        self.first
    }

    /// How many events there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// The event of a source.
    #[inline]
    pub fn get(&self, source: u32) -> Option<Key> {
        let place = &self.places[source as usize];
        (place.slot != ABSENT).then_some(place.key)
    }

    /// Adds the event of a source that has none.
    #[inline(never)]
    pub fn insert(&mut self, key: Key, source: u32) {
        if key < self.first.0 {
            self.first = (key, source);
        }
        self.length += 1;
        self.link(key, source);
    }

    /// Removes the event of a source, if it has one.
    #[inline]
    pub fn remove(&mut self, source: u32) {
        if self.places[source as usize].slot != ABSENT {
            self.remove_present(source);
        }
    }

    #[inline(never)]
    fn remove_present(&mut self, source: u32) {
        self.unlink(source);
        if source == self.first.1 {
            self.find_first();
        }
    }

    /// Removes the first event. There must be one.
    #[inline(never)]
    pub fn take_first(&mut self) {
        let (key, source) = self.first;
        let slot = self.unlink(source);
        self.base = self.base.max(time_of(key));
        if slot as usize >= SLOTS {
            self.move_down(slot);
        }
        self.find_first();
    }

    /// Finds the first event when the one before has been removed.
    #[inline]
    fn find_first(&mut self) {
        let word = self.summary.trailing_zeros() as usize % WORDS;
        let slot = (word * 64 + self.used[word].trailing_zeros() as usize) % (LEVELS * SLOTS);
        let source = self.heads[slot];
        let Some(place) = self.places.get(source as usize) else {
            self.first = (NEVER, NIL);
            return;
        };
        self.first = (place.key, source);
        if place.next != NIL && slot != self.sorted {
            self.search(slot, place.next);
        }
    }

    /// Looks for an earlier event than the first one of a slot, from the second one on.
    #[inline(never)]
    fn search(&mut self, slot: usize, second: u32) {
        let (mut source, mut length) = (second, 1);
        while let Some(place) = self.places.get(source as usize) {
            if place.key < self.first.0 {
                self.first = (place.key, source);
            }
            (source, length) = (place.next, length + 1);
        }
        if length > LONG && std::mem::replace(&mut self.searched, slot) == slot {
            self.sort(slot);
        }
    }

    #[inline(never)]
    fn sort(&mut self, slot: usize) {
        let mut source = self.heads[slot];
        let events = std::iter::from_fn(|| {
            let place = self.places.get(source as usize)?;
            Some((place.key, std::mem::replace(&mut source, place.next)))
        });
        let mut events: Vec<(Key, u32)> = events.collect();
        events.sort_unstable();
        let mut previous = NIL;
        for (_, source) in events {
            self.place_after(slot, previous, source);
            previous = source;
        }
        self.place_after(slot, previous, NIL);
        self.sorted = slot;
    }

    /// In the list of a slot, `source` comes after `previous`; either may be [`NIL`].
    fn place_after(&mut self, slot: usize, previous: u32, source: u32) {
        match self.places.get_mut(previous as usize) {
            Some(previous) => previous.next = source,
            None => self.heads[slot] = source,
        }
        if let Some(place) = self.places.get_mut(source as usize) {
            place.previous = previous;
        }
    }

    /// The slot of an event.
    #[inline]
    fn slot(&self, time: Nanos) -> usize {
        let time = time.max(self.base);
        let apart = (time ^ self.base) >> self.shift;
        if apart < SLOTS as u64 {
            return (time >> self.shift) as usize % SLOTS;
        }
        let level = (1..LEVELS as u32).map(|level| u32::from(apart >> (SLOT_BITS * level) != 0)).sum::<u32>();
        let index = (time >> self.shift) >> (SLOT_BITS * level);
        // The last slot of the highest level has everything later.
        let turn = if level as usize == LEVELS - 1 { index.min(SLOTS as u64 - 1) } else { index % SLOTS as u64 };
        level as usize * SLOTS + turn as usize
    }

    #[inline]
    fn link(&mut self, key: Key, source: u32) {
        let slot = self.slot(time_of(key)) % (LEVELS * SLOTS);
        let next = std::mem::replace(&mut self.heads[slot], source);
        self.places[source as usize] = Place { key, next, previous: NIL, slot: slot as u32 };
        match self.places.get_mut(next as usize) {
            Some(next) => next.previous = source,
            None => {
                self.used[slot / 64] |= 1 << (slot % 64);
                self.summary |= 1 << (slot / 64);
            }
        }
        if slot == self.sorted {
            self.move_to_place(slot, source);
        }
    }

    /// The first of a list that was sorted before goes to its place.
    #[inline(never)]
    fn move_to_place(&mut self, slot: usize, source: u32) {
        let Place { key, next, .. } = self.places[source as usize];
        let (mut previous, mut at) = (NIL, next);
        while let Some(place) = self.places.get(at as usize).filter(|place| place.key < key) {
            (previous, at) = (at, place.next);
        }
        if previous != NIL {
            self.place_after(slot, NIL, next);
            self.place_after(slot, previous, source);
            self.place_after(slot, source, at);
        }
    }

    /// Takes an event out of its slot, which is returned.
    #[inline]
    fn unlink(&mut self, source: u32) -> u32 {
        let place = &mut self.places[source as usize];
        let Place { next, previous, slot, .. } = *place;
        place.slot = ABSENT;
        if let Some(next) = self.places.get_mut(next as usize) {
            next.previous = previous;
        }
        match self.places.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => {
                self.heads[slot as usize % (LEVELS * SLOTS)] = next;
                if next == NIL {
                    self.clear(slot as usize % (LEVELS * SLOTS));
                }
            }
        }
        self.length -= 1;
        slot
    }

    /// A slot has become empty.
    #[inline]
    fn clear(&mut self, slot: usize) {
        if slot == self.sorted {
            self.sorted = NONE;
        }
        let word = &mut self.used[slot / 64];
        *word &= !(1 << (slot % 64));
        if *word == 0 {
            self.summary &= !(1 << (slot / 64));
        }
    }

    /// The turn of a slot has come: its events move to the levels below.
    #[inline(never)]
    fn move_down(&mut self, slot: u32) {
        let slot = slot as usize % (LEVELS * SLOTS);
        let mut source = std::mem::replace(&mut self.heads[slot], NIL);
        self.clear(slot);
        while let Some(&Place { key, next, .. }) = self.places.get(source as usize) {
            self.link(key, source);
            source = next;
        }
    }
}
