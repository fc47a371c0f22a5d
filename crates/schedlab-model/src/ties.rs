//! Ties that a kernel leaves to chance: which of two simultaneous events of different CPUs comes first, where a rotor
//! starts.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{stream, Nanos};

/// Breaks ties by a seed. Without one every tie is broken by number, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ties(Option<u64>);

impl Ties {
    /// Bits of a rank.
    pub const BITS: u32 = 12;

    /// The ties of a run: those of one draw under the seed of the run, or in fixed order.
    #[must_use]
    pub fn new(draw: Option<u64>, seed: u64) -> Self {
        Ties(draw.map(|draw| stream(seed, &format!("ties/{draw}")).next_u64()))
    }

    /// Whether ties are broken by number.
    #[must_use]
    pub fn is_fixed(self) -> bool {
        self.0.is_none()
    }

    /// The rank of a CPU or group among those for which something happens at `time`, from 1 up; 0 in fixed order.
    #[must_use]
    pub fn rank(self, time: Nanos, number: u32) -> u16 {
        self.0.map_or(0, |seed| {
            let hash = xxh3_64_with_seed(&number.to_le_bytes(), seed ^ time);
            1 + (hash % ((1 << Self::BITS) - 1)) as u16
        })
    }

    /// Where the rotor named by `label` starts in `0..bound`; at 0 in fixed order.
    #[must_use]
    pub fn start(self, label: &str, bound: usize) -> usize {
        self.0.map_or(0, |seed| stream(seed, label).below(bound as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn without_a_draw_everything_is_in_fixed_order() {
        let fixed = Ties::new(None, 7);
        assert!(fixed.is_fixed() && !Ties::new(Some(0), 7).is_fixed());
        assert!((0..100).all(|cpu| fixed.rank(5, cpu) == 0 && fixed.start("rotor", 100) == 0));
    }

    #[test]
    fn a_draw_orders_each_instant_anew() {
        let order = |ties: Ties, time| {
            let mut cpus: Vec<u32> = (0..4).collect();
            cpus.sort_by_key(|cpu| ties.rank(time, *cpu));
            cpus
        };
        let ties = Ties::new(Some(3), 1);
        let orders: BTreeSet<Vec<u32>> = (0..2000).map(|time| order(ties, time)).collect();
        assert_eq!(orders.len(), 24, "every order of four CPUs occurs");
        assert!((0..2000).all(|time| (1..1 << Ties::BITS).contains(&ties.rank(time, 9))));
        assert!((0..20).any(|time| order(ties, time) != order(Ties::new(Some(4), 1), time)));
        assert!((0..20).any(|time| order(ties, time) != order(Ties::new(Some(3), 2), time)));
        assert_eq!(order(ties, 11), order(Ties::new(Some(3), 1), 11));
    }
}
