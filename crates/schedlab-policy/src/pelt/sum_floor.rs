//! The sum of a queue after the part of an entity that left has been subtracted from its average.

use super::series::PELT_MIN_DIVIDER;

/// How a queue's sum follows when an average was reduced by what left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SumFloor {
    /// It is reduced on its own; it may reach 0 before the average does.
    None,
    /// It is computed from the average, and loses the part of a segment that it was ahead.
    Synced,
    /// It is reduced, and raised to `avg * PELT_MIN_DIVIDER` if below. The maximum is taken in 32 bits, which truncates
    /// larger sums.
    Truncated,
    /// The same in the sum's own width.
    Wide,
}

/// What an unchanged average of load does to the sums when a group's load is propagated to its parent
/// (`update_tg_cfs_load`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnchangedLoad {
    /// The sums of the entity and of the parent's queue follow all the same.
    Follows,
    /// The entity's sum follows, the sum of the parent's queue stays.
    EntityOnly,
    /// Both sums stay.
    Nothing,
}

impl SumFloor {
    /// The same, but raised to the average instead of computed from it.
    #[inline]
    pub(super) fn at_least(self) -> SumFloor {
        match self {
            SumFloor::None | SumFloor::Synced => SumFloor::Truncated,
            SumFloor::Truncated | SumFloor::Wide => self,
        }
    }

    /// The sum of utilisation or of the runnable signal to keep beside `avg` where it is propagated from a group's
    /// queue: up to 5.16 it is computed from the average there, whatever happens when load leaves.
    #[inline]
    pub(super) fn keep_propagated(self, sum: u64, avg: u64, divider: u64) -> u64 {
        match self {
            SumFloor::None => SumFloor::Synced.keep(sum, avg, divider),
            _ => self.keep(sum, avg, divider),
        }
    }

    /// The sum to keep with `avg`.
    #[inline]
    pub(super) fn keep(self, sum: u64, avg: u64, divider: u64) -> u64 {
        match self {
            SumFloor::None => sum,
            SumFloor::Synced => avg.wrapping_mul(divider),
            SumFloor::Truncated => u64::from((sum as u32).max(avg.wrapping_mul(PELT_MIN_DIVIDER) as u32)),
            SumFloor::Wide => sum.max(avg.wrapping_mul(PELT_MIN_DIVIDER)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_keeps_its_own_sum() {
        let table = [
            (SumFloor::None, 5, 5),
            (SumFloor::Synced, 5, 2 * 46_800),
            (SumFloor::Truncated, 5, 2 * 46_718),
            (SumFloor::Truncated, (1 << 32) + 100_000, 100_000),
            (SumFloor::Wide, (1 << 32) + 100_000, (1 << 32) + 100_000),
        ];
        for (floor, sum, expected) in table {
            assert_eq!(floor.keep(sum, 2, 46_800), expected, "{floor:?}");
        }
    }
}
