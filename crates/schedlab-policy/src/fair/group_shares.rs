//! A group's weight in the form of each control file.
//!
//! Shares at full resolution are 1024 times `cpu.shares`; `cpu.weight` w means `round(1024 w / 100)` of those, and
//! `cpu.weight.nice` the weight of a task with that nice value.

use crate::weight::{LoadWeight, FIXEDPOINT_SHIFT};
use crate::FairPolicy;

/// Range of `cpu.shares`.
const SHARES: (u64, u64) = (2, 1 << 18);

/// A group's weight as one of its files takes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupShares {
    /// `cpu.weight`, 1..=10000.
    Weight(u64),
    /// `cpu.weight.nice`, -20..=19.
    Nice(i8),
    /// `cpu.shares`, 2..=262144.
    Shares(u64),
}

impl GroupShares {
    /// Shares at full resolution.
    #[must_use]
    pub fn full(self) -> u64 {
        let shares = match self {
            GroupShares::Weight(weight) => (weight.saturating_mul(1024) + 50) / 100,
            GroupShares::Nice(nice) => LoadWeight::of_task(nice, FairPolicy::Normal).scaled(),
            GroupShares::Shares(shares) => shares,
        };
        shares.clamp(SHARES.0, SHARES.1) << FIXEDPOINT_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::GroupShares;

    #[test]
    fn every_file_means_shares() {
        let table = [
            (GroupShares::Weight(100), 1024),
            (GroupShares::Weight(1), 10),
            (GroupShares::Weight(10_000), 102_400),
            (GroupShares::Weight(33), 338),
            (GroupShares::Nice(0), 1024),
            (GroupShares::Nice(19), 15),
            (GroupShares::Nice(-20), 88_761),
            (GroupShares::Shares(0), 2),
            (GroupShares::Shares(1 << 40), 1 << 18),
        ];
        for (written, shares) in table {
            assert_eq!(written.full(), shares << 10, "{written:?}");
        }
    }
}
