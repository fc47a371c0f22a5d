//! A measured cost: the quantiles that a machine file contains, the number of samples, and how it was measured.

use schedlab_model::Nanos;
use serde::Serialize;

/// One measured cost, in ns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cost {
    /// The smallest sample.
    pub p0: Nanos,
    /// The first decile.
    pub p10: Nanos,
    /// The median.
    pub p50: Nanos,
    /// The ninth decile.
    pub p90: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The largest sample.
    pub p100: Nanos,
    /// The number of samples.
    pub n: usize,
    /// How it was measured.
    pub how: String,
}

impl Cost {
    /// The quantiles of the samples; `None` for fewer than ten samples.
    #[must_use]
    pub fn of(mut samples: Vec<Nanos>, how: impl Into<String>) -> Option<Cost> {
        const FEWEST: usize = 10;
        if samples.len() < FEWEST {
            return None;
        }
        samples.sort_unstable();
        let at = |per_mille: usize| samples[(samples.len() - 1) * per_mille / 1000];
        let [p0, p10, p50, p90, p99, p100] = [0, 100, 500, 900, 990, 1000].map(at);
        Some(Cost { p0, p10, p50, p90, p99, p100, n: samples.len(), how: how.into() })
    }

    /// The cost less a part that was measured separately.
    #[must_use]
    pub fn less(self, part: Nanos) -> Cost {
        let [p0, p10, p50, p90, p99, p100] =
            [self.p0, self.p10, self.p50, self.p90, self.p99, self.p100].map(|value| value.saturating_sub(part));
        Cost { p0, p10, p50, p90, p99, p100, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples_in_order() {
        let cost = Cost::of((0..=1000).rev().collect(), "test").unwrap();
        assert_eq!([cost.p0, cost.p10, cost.p50, cost.p90, cost.p99, cost.p100], [0, 100, 500, 900, 990, 1000]);
        assert_eq!((cost.n, cost.clone().less(600).p50, cost.less(600).p90), (1001, 0, 300));
        assert_eq!(Cost::of(vec![1; 9], "too few"), None);
    }
}
