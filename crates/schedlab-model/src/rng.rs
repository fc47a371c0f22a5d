//! One seeded random stream per subsystem and task, so that a draw added in one place changes no other draw.

use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

/// A stream of random 64-bit words. Integers only: callers build distributions on top of it.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

/// The stream named by `label` under `seed`. Equal arguments give equal streams on every machine; streams of
/// different labels are independent. The seed of the stream is the 128-bit XXH3 hash of both.
#[must_use]
pub fn stream(seed: u64, label: &str) -> Stream {
    let state = xxhash_rust::xxh3::xxh3_128_with_seed(label.as_bytes(), seed);
    Stream(Pcg64Mcg::new(state))
}

impl Stream {
    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`, by the high half of the 128-bit product (bias below 2^-64 * bound); 0 if `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A double in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Puts the slice in random order (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stream;

    #[test]
    fn streams_are_pinned_and_apart() {
        let draw = |seed, label| stream(seed, label).next_u64();
        assert_eq!(draw(1, "tick/0"), draw(1, "tick/0"));
        assert_ne!(draw(1, "tick/0"), draw(1, "tick/1"));
        assert_ne!(draw(1, "tick/0"), draw(2, "tick/0"));
    }

    #[test]
    fn below_stays_below() {
        let mut s = stream(7, "below");
        assert!((0..1000).all(|_| s.below(10) < 10));
        assert_eq!(s.below(0), 0);
    }
}
