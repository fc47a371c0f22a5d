//! The event queue: at most one pending event per source, ordered by (time, rank, phase, sequence).

use schedlab_model::Nanos;

use super::order::{key, time_of, Key, Phase, NEVER};
use super::wheel::{Wheel, NIL};

/// The events of the sources `0..sources`, each with at most one pending.
///
/// One event may stand in front of the timer wheel: the event set last, if it is earlier than the one in front. A
/// running task sets the end of its next segment and is usually the next to be handled, so where few events are pending
/// most of them never enter the wheel.
#[derive(Clone)]
pub struct EventQueue {
    /// The event in front and its source; [`NEVER`] and [`NIL`] if there is none.
    front: (Key, u32),
    wheel: Wheel,
    sequence: u64,
}

impl EventQueue {
    /// An empty queue for the sources `0..sources`, of which each CPU has 32. The slots of the wheel are 8 us wide,
    /// divided by the number of CPUs, so that they hold about one event of CPUs that have one every few us.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        let shift = 18_u32.saturating_sub(sources.max(1).ilog2());
        EventQueue { front: (NEVER, NIL), wheel: Wheel::new(sources, shift), sequence: 0 }
    }

    /// Schedules the source's event at `time`, replacing its pending one. Events of one instant are ordered by rank
    /// ([`Ties::rank`](schedlab_model::Ties::rank)), then by phase.
    #[inline]
    pub fn set(&mut self, source: u32, time: Nanos, rank: u16, phase: Phase) {
        self.sequence += 1;
        let key = key(time, rank, phase, self.sequence);
        if source == self.front.1 {
            self.front.0 = key;
            return;
        }
        self.wheel.remove(source);
        if key > self.front.0 {
            return self.wheel.insert(key, source);
        }
        let before = std::mem::replace(&mut self.front, (key, source));
        if before.1 != NIL {
            self.wheel.insert(before.0, before.1);
        }
    }

    /// Removes the source's pending event, if any.
    #[inline]
    pub fn cancel(&mut self, source: u32) {
        if source == self.front.1 {
            self.front = (NEVER, NIL);
        } else {
            self.wheel.remove(source);
        }
    }

    /// When the source's event is due.
    #[must_use]
    pub fn due(&self, source: u32) -> Option<Nanos> {
        let key = if source == self.front.1 { Some(self.front.0) } else { self.wheel.get(source) };
        key.map(time_of)
    }

    /// Time of the earliest event; the end of time if nothing is pending.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Nanos {
        time_of(self.front.0).min(time_of(self.wheel.first().0))
    }

    /// The source of the earliest event if that is due at `now`.
    #[must_use]
    pub fn peek_at(&self, now: Nanos) -> Option<u32> {
        let (key, source) = self.front.min(self.wheel.first());
        (source != NIL && time_of(key) <= now).then_some(source)
    }

    /// Takes the earliest event if it is due at `now`.
    #[inline]
    pub fn pop_at(&mut self, now: Nanos) -> Option<u32> {
        let ((front, source), (top, first)) = (self.front, self.wheel.first());
        if time_of(front) > now && time_of(top) > now {
            return None;
        }
        if front < top {
            self.front = (NEVER, NIL);
            return Some(source);
        }
        if first == NIL {
            return None;
        }
        self.wheel.take_first();
        Some(first)
    }

    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.wheel.len() + usize::from(self.front.1 != NIL)
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use schedlab_model::Ties;
    use std::collections::BTreeMap;

    /// What happens to a queue: the event of a source is set, early or late (`time << far`, the end of time if `far` is
    /// 64) and after the one taken last or at any time, or cancelled, or the first one is taken.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Set { source: u32, time: u64, far: u32, from_now: bool, rank: u16, phase: usize },
        Cancel(u32),
        Take,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let far = prop::sample::select(vec![0, 0, 0, 12, 20, 28, 40, 50, 64]);
        let set = (0u32..12, 0u64..12, far, any::<bool>(), 0u16..3, 0usize..3).prop_map(
            |(source, time, far, from_now, rank, phase)| Step::Set { source, time, far, from_now, rank, phase },
        );
        let step = prop_oneof![6 => set, 1 => (0u32..12).prop_map(Step::Cancel), 4 => Just(Step::Take)];
        prop::collection::vec(step, 1..300)
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_map(steps in steps(), sources in prop::sample::select(vec![12, 4_096, 1 << 17])) {
            let phases = [Phase::Control, Phase::Tick, Phase::Segment];
            let mut queue = EventQueue::new(sources);
            let mut model: BTreeMap<u32, (u64, u16, Phase, u64)> = BTreeMap::new();
            let mut now = 0;
            let first_of = |model: &BTreeMap<u32, (u64, u16, Phase, u64)>| {
                model.iter().min_by_key(|(_, key)| **key).map(|(source, key)| (*source, key.0))
            };
            for (i, step) in steps.into_iter().chain([Step::Take; 13]).enumerate() {
                match step {
                    Step::Take => {
                        let first = first_of(&model);
                        prop_assert_eq!(queue.peek_at(u64::MAX), first.map(|(source, _)| source));
                        prop_assert_eq!(queue.pop_at(u64::MAX), first.map(|(source, _)| source));
                        if let Some((source, time)) = first {
                            now = time;
                            model.remove(&source);
                        }
                    }
                    Step::Cancel(source) => {
                        queue.cancel(source);
                        model.remove(&source);
                    }
                    Step::Set { source, time, far, from_now, rank, phase } => {
                        let from = if from_now { now } else { 0 };
                        let time = time.checked_shl(far).map_or(u64::MAX, |after| from.saturating_add(after));
                        let rank = rank * ((1 << Ties::BITS) - 1) / 2;
                        queue.set(source, time, rank, phases[phase]);
                        model.insert(source, (time, rank, phases[phase], i as u64));
                        prop_assert_eq!(queue.due(source), Some(time));
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                let next = first_of(&model).map_or(u64::MAX, |(_, time)| time);
                prop_assert_eq!(queue.next_time(), next);
                if next > 0 {
                    prop_assert_eq!(queue.pop_at(next - 1), None);
                }
            }
            prop_assert!(queue.is_empty());
        }
    }
}
