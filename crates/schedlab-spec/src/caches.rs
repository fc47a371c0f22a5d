//! The caches of a machine: their sizes, and how fast a program reads from them.

use schedlab_model::Nanos;

/// Which CPUs share a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedBy {
    /// The threads of a core.
    Core,
    /// The CPUs of a last-level cache's domain ([`schedlab_model::Topology::llc`]).
    Llc,
}

/// One level of cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheLevel {
    /// Its key in machine files: `l1`, `l2` or `llc`.
    pub name: &'static str,
    /// Which CPUs share it.
    pub shared_by: SharedBy,
    /// Its size in KiB; at least 1.
    pub kib: u64,
    /// Reading 1 KiB from it.
    pub read: Nanos,
}

/// The front end of a core, which its threads share: the code that its predictors and caches of instructions hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrontEnd {
    /// KiB of code; at least 1.
    pub kib: u64,
    /// Executing 1 KiB of code that it holds.
    pub warm: Nanos,
    /// Executing 1 KiB of other code; not less.
    pub cold: Nanos,
}

/// The levels, nearest first, and the memory behind them. Sizes and times do not fall from one level to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caches {
    /// At least the last-level cache.
    pub levels: Vec<CacheLevel>,
    /// Reading 1 KiB from memory.
    pub memory: Nanos,
    /// Where the machine states it.
    pub front_end: Option<FrontEnd>,
}

impl Caches {
    /// The times, with their excess over that of the nearest cache multiplied by a factor.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Caches {
        let nearest = self.levels.first().map_or(0, |level| level.read);
        let scaled = |read: Nanos| nearest + (read.saturating_sub(nearest) as f64 * factor).round() as Nanos;
        let level = |level: &CacheLevel| CacheLevel { read: scaled(level.read), ..*level };
        let front_end = self.front_end.map(|front| {
            let excess = front.cold.saturating_sub(front.warm) as f64 * factor;
            FrontEnd { cold: front.warm + excess.round() as Nanos, ..front }
        });
        Caches { levels: self.levels.iter().map(level).collect(), memory: scaled(self.memory), front_end }
    }

    /// Reading this many KiB of warm data once, in ns: the part that a level holds and no nearer level has is read from
    /// that level.
    #[must_use]
    pub fn warm_read(&self, kib: u64) -> Nanos {
        let mut nearer = 0;
        let mut time = 0;
        for level in &self.levels {
            let held = kib.min(level.kib);
            time += (held - nearer) * level.read;
            nearer = held;
        }
        time + (kib - nearer) * self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches() -> Caches {
        let level = |name, shared_by, kib, read| CacheLevel { name, shared_by, kib, read };
        Caches {
            levels: vec![level("l2", SharedBy::Core, 1024, 10), level("llc", SharedBy::Llc, 32 * 1024, 40)],
            memory: 100,
            front_end: Some(FrontEnd { kib: 128, warm: 50, cold: 110 }),
        }
    }

    #[test]
    fn warm_data_is_read_from_the_nearest_level_that_holds_it() {
        let cases = [(0, 0), (1024, 10_240), (1025, 10_280), (32 * 1024, 1_280_000), (32 * 1024 + 1, 1_280_100)];
        for (kib, time) in cases {
            assert_eq!(caches().warm_read(kib), time, "{kib}");
        }
    }

    #[test]
    fn a_factor_leaves_the_nearest_cache_alone() {
        let scaled = caches().scaled(2.0);
        assert_eq!(scaled.levels.iter().map(|level| level.read).collect::<Vec<_>>(), [10, 70]);
        assert_eq!(scaled.memory, 190);
        assert_eq!(scaled.front_end, Some(FrontEnd { kib: 128, warm: 50, cold: 170 }));
    }
}
