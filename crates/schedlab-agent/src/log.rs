//! The application events of each task, written to shared memory while the program runs and read when it is over.
//!
//! Chunks are allocated from one pool by one atomic addition, so that the events of a killed task are not lost. Counts
//! of one metric within 10 ms and on the same side of the end of the warm-up are merged into one event, which does not
//! change the metrics.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use schedlab_model::{CpuId, Nanos, MSEC};
use schedlab_trace::{Event, Kind};

use crate::sys::shared;

/// The number of entries in one chunk of 12 KiB.
const ENTRIES: usize = 511;
/// Counts within the same span may be merged. One second, the unit of rates, is a multiple of the span.
const SPAN: Nanos = 10 * MSEC;

shared! {
    /// The log of one task.
    #[derive(Debug)]
    pub struct Log {
        first: AtomicU32,
        current: AtomicU32,
    }
}

shared! {
    #[derive(Debug)]
    struct Entry {
        time: AtomicU64,
        value: AtomicU64,
        /// `cpu << 32 | is_count << 16 | metric`.
        what: AtomicU64,
    }
}

shared! {
    /// A block of events of one task.
    #[derive(Debug)]
    pub struct Chunk {
        next: AtomicU32,
        used: AtomicU32,
        entries: [Entry; ENTRIES],
    }
}

shared! {
    /// The counters of the pool.
    #[derive(Debug)]
    pub struct PoolState {
        used: AtomicU32,
        lost: AtomicU64,
    }
}

/// The pool of chunks.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// The chunks; index 0 is never allocated.
    pub chunks: &'static [Chunk],
    /// The pool's counters.
    pub state: &'static PoolState,
    /// The end of the warm-up, in run time.
    pub warmup: Nanos,
}

/// An application event: sample or count of a metric of the run's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppEvent {
    /// Run time.
    pub time: Nanos,
    /// The CPU of the event.
    pub cpu: u32,
    /// Whether `value` is a count of operations rather than a sample.
    pub is_count: bool,
    /// Index into the run's metric table.
    pub metric: u16,
    /// The value.
    pub value: u64,
}

impl Pool {
    /// Appends an event to a task's log.
    pub fn write(&self, log: &Log, note: AppEvent) {
        let index = log.current.load(Relaxed);
        let chunk = &self.chunks[index as usize];
        let used = chunk.used.load(Relaxed) as usize;
        if index != 0 && note.is_count && used > 0 && self.merge(&chunk.entries[used - 1], note) {
            return;
        }
        let chunk = if index == 0 || used == ENTRIES { self.grow(log, index) } else { Some(chunk) };
        let Some(chunk) = chunk else {
            self.state.lost.fetch_add(1, Relaxed);
            return;
        };
        let used = chunk.used.load(Relaxed);
        let entry = &chunk.entries[used as usize];
        entry.time.store(note.time, Relaxed);
        entry.value.store(note.value, Relaxed);
        entry.what.store(u64::from(note.cpu) << 32 | u64::from(note.is_count) << 16 | u64::from(note.metric), Relaxed);
        chunk.used.store(used + 1, Release);
    }

    fn merge(&self, last: &Entry, note: AppEvent) -> bool {
        let before = last.read();
        let fits = before.is_count
            && before.metric == note.metric
            && before.time / SPAN == note.time / SPAN
            && (before.time < self.warmup) == (note.time < self.warmup);
        if fits {
            last.value.store(before.value.saturating_add(note.value), Relaxed);
        }
        fits
    }

    fn grow(&self, log: &Log, index: u32) -> Option<&Chunk> {
        let fresh = self.state.used.fetch_add(1, Relaxed) + 1;
        let Some(chunk) = self.chunks.get(fresh as usize) else {
            self.state.used.fetch_sub(1, Relaxed);
            return None;
        };
        if index == 0 {
            log.first.store(fresh, Release);
        } else {
            self.chunks[index as usize].next.store(fresh, Release);
        }
        log.current.store(fresh, Relaxed);
        Some(chunk)
    }

    /// All events of a task, in order.
    pub fn read(&self, log: &Log) -> impl Iterator<Item = AppEvent> + '_ {
        let mut next = log.first.load(Acquire);
        let chunks = std::iter::from_fn(move || {
            let chunk = self.chunks.get(next as usize).filter(|_| next != 0)?;
            next = chunk.next.load(Acquire);
            Some(chunk)
        });
        chunks.flat_map(|chunk| chunk.entries.iter().take(chunk.used.load(Acquire) as usize).map(Entry::read))
    }

    /// The number of events that were lost because the pool was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.state.lost.load(Relaxed)
    }
}

impl Entry {
    fn read(&self) -> AppEvent {
        let what = self.what.load(Relaxed);
        AppEvent {
            time: self.time.load(Relaxed),
            cpu: (what >> 32) as u32,
            is_count: what >> 16 & 1 == 1,
            metric: what as u16,
            value: self.value.load(Relaxed),
        }
    }
}

impl AppEvent {
    /// The event as a trace event of the task `pid`.
    #[must_use]
    pub fn event(&self, pid: i32) -> Event {
        let AppEvent { metric, value, .. } = *self;
        let kind =
            if self.is_count { Kind::Count { pid, metric, count: value } } else { Kind::Sample { pid, metric, value } };
        Event::new(self.time, CpuId(self.cpu), kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Arena;

    #[test]
    fn events_are_read_in_order_and_lost_events_are_counted() {
        let mut arena = Arena::new(1 << 20).unwrap();
        let pool = Pool { chunks: arena.slice(3).unwrap(), state: arena.one().unwrap(), warmup: 5 };
        let log: &Log = arena.one().unwrap();
        let note = |time| AppEvent { time, cpu: 3, is_count: false, metric: 9, value: time * 2 };
        (0..ENTRIES as u64 * 2 + 10).for_each(|time| pool.write(log, note(time)));
        let read: Vec<AppEvent> = pool.read(log).collect();
        assert_eq!(read.len(), ENTRIES * 2);
        assert!(read.iter().enumerate().all(|(i, read)| *read == note(i as u64)));
        assert_eq!(pool.lost(), 10);
    }

    #[test]
    fn counts_are_merged_within_a_span_but_not_across_the_warmup() {
        let mut arena = Arena::new(1 << 20).unwrap();
        let pool = Pool { chunks: arena.slice(3).unwrap(), state: arena.one().unwrap(), warmup: 5 };
        let log: &Log = arena.one().unwrap();
        for (time, metric) in [(1, 0), (4, 0), (5, 0), (6, 0), (7, 1), (SPAN - 1, 1), (SPAN, 1)] {
            pool.write(log, AppEvent { time, cpu: 0, is_count: true, metric, value: 10 });
        }
        let read: Vec<_> = pool.read(log).map(|note| (note.time, note.metric, note.value)).collect();
        assert_eq!(read, [(1, 0, 20), (5, 0, 20), (7, 1, 20), (SPAN, 1, 10)]);
    }
}
