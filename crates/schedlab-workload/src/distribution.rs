//! Seeded distributions of durations, drawn with integers and `libm` only: the same draw on every machine.

use schedlab_model::{Nanos, Stream, SEC};
use serde::{Deserialize, Serialize};

/// No draw is longer: the long tails are cut here, a day, which is also the longest time that a file may name.
pub const LONGEST_DRAW: Nanos = 24 * 3600 * SEC;

/// A distribution of non-negative durations in ns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Dist {
    /// Always the same.
    Constant(Nanos),
    /// Uniform over `low..=high`.
    Uniform {
        /// Smallest value.
        low: Nanos,
        /// Largest value.
        high: Nanos,
    },
    /// Exponential with this mean (Poisson arrivals).
    Exponential {
        /// Mean.
        mean: Nanos,
    },
    /// Lognormal with this median and shape.
    Lognormal {
        /// Median, exp(mu).
        median: Nanos,
        /// Standard deviation of the logarithm, above 0 and up to 10.
        sigma: f64,
    },
    /// Normal, cut at 0.
    Normal {
        /// Mean.
        mean: Nanos,
        /// Standard deviation.
        sd: Nanos,
    },
    /// Piecewise linear between measured quantiles: `(per mille, value)`, ascending in both.
    Quantiles(Vec<(u16, Nanos)>),
    /// A recorded sequence: each execution takes the next value, and the first again after the last.
    Recorded(Vec<Nanos>),
}

/// Why a distribution is impossible.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DistError {
    /// `low` above `high`.
    #[error("low {low} ns is above high {high} ns")]
    Reversed {
        /// Smallest value given.
        low: Nanos,
        /// Largest value given.
        high: Nanos,
    },
    /// sigma out of range.
    #[error("sigma must be above 0 and at most 10")]
    Sigma,
    /// Quantiles not ascending, not within 0..=1000, or fewer than two.
    #[error("quantiles need at least two (per mille, value) pairs, ascending in both, per mille within 0..=1000")]
    Quantiles,
    /// A recorded sequence without a value.
    #[error("a recorded sequence needs at least one value")]
    Empty,
}

impl Dist {
    /// Checks the parameters.
    pub fn validate(&self) -> Result<(), DistError> {
        match self {
            Dist::Uniform { low, high } if low > high => Err(DistError::Reversed { low: *low, high: *high }),
            Dist::Lognormal { sigma, .. } if !(*sigma > 0.0 && *sigma <= 10.0) => Err(DistError::Sigma),
            Dist::Quantiles(points) => {
                let ascending = points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1);
                let inside = points.last().is_some_and(|p| p.0 <= 1000);
                (points.len() >= 2 && ascending && inside).then_some(()).ok_or(DistError::Quantiles)
            }
            Dist::Recorded(values) if values.is_empty() => Err(DistError::Empty),
            _ => Ok(()),
        }
    }

    /// The distribution of `factor` times a draw, each parameter cut at `longest`.
    #[must_use]
    pub fn scaled(&self, factor: f64, longest: Nanos) -> Dist {
        let times = |ns: Nanos| ((ns as f64 * factor).round() as Nanos).min(longest);
        match self {
            Dist::Constant(ns) => Dist::Constant(times(*ns)),
            Dist::Uniform { low, high } => Dist::Uniform { low: times(*low), high: times(*high) },
            Dist::Exponential { mean } => Dist::Exponential { mean: times(*mean) },
            Dist::Lognormal { median, sigma } => Dist::Lognormal { median: times(*median), sigma: *sigma },
            Dist::Normal { mean, sd } => Dist::Normal { mean: times(*mean), sd: times(*sd) },
            Dist::Quantiles(points) => Dist::Quantiles(points.iter().map(|(rank, ns)| (*rank, times(*ns))).collect()),
            Dist::Recorded(values) => Dist::Recorded(values.iter().map(|ns| times(*ns)).collect()),
        }
    }

    /// The length of the next execution: the next value of a recorded sequence, of which `taken` were taken before,
    /// whether or not there is noise; otherwise a draw, or without noise the typical value.
    pub fn next(&self, taken: &mut u64, noise: bool, rng: &mut Stream) -> Nanos {
        match self {
            Dist::Recorded(values) => {
                let at = *taken % values.len().max(1) as u64;
                *taken += 1;
                values.get(at as usize).copied().unwrap_or(0)
            }
            dist if noise => dist.draw(rng),
            dist => dist.typical(),
        }
    }

    /// One draw, in ns; the kinds without a largest value are cut at [`LONGEST_DRAW`]. Of a recorded sequence it is a
    /// value at random; [`Dist::next`] takes them in order.
    pub fn draw(&self, rng: &mut Stream) -> Nanos {
        match self {
            Dist::Constant(value) => *value,
            Dist::Uniform { low, high } => low + rng.below((high - low).saturating_add(1)),
            Dist::Exponential { mean } => cut(-libm::log(1.0 - rng.unit()) * *mean as f64),
            Dist::Lognormal { median, sigma } => cut(*median as f64 * libm::exp(sigma * gauss(rng))),
            Dist::Normal { mean, sd } => cut(*mean as f64 + *sd as f64 * gauss(rng)),
            Dist::Quantiles(points) => interpolate(points, rng.below(1_000_000)),
            Dist::Recorded(values) => values.get(rng.below(values.len().max(1) as u64) as usize).copied().unwrap_or(0),
        }
    }

    /// The value at `rank` millionths, for the bounded kinds; the typical value for the others.
    #[must_use]
    pub fn quantile(&self, rank: u64) -> Nanos {
        match self {
            Dist::Quantiles(points) => interpolate(points, rank),
            Dist::Uniform { low, high } => low + ((u128::from(high - low) * u128::from(rank)) / 1_000_000) as u64,
            _ => self.typical(),
        }
    }

    /// The value that stands for the distribution where noise is off: its median (mean for `Exponential`).
    #[must_use]
    pub fn typical(&self) -> Nanos {
        match self {
            Dist::Constant(value) | Dist::Lognormal { median: value, .. } => *value,
            Dist::Exponential { mean } | Dist::Normal { mean, .. } => *mean,
            Dist::Uniform { low, high } => low + (high - low) / 2,
            Dist::Quantiles(points) => interpolate(points, 500_000),
            Dist::Recorded(values) => median(values),
        }
    }
}

/// The lower median.
fn median(values: &[Nanos]) -> Nanos {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// A draw as a duration: conversion stops at 0 and at the largest number.
fn cut(value: f64) -> Nanos {
    (value as Nanos).min(LONGEST_DRAW)
}

/// A standard normal deviate (Box-Muller, cosine branch).
fn gauss(rng: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.unit()));
    radius * libm::cos(2.0 * std::f64::consts::PI * rng.unit())
}

/// Quantile function at `rank` millionths; flat outside the given points.
fn interpolate(points: &[(u16, Nanos)], rank: u64) -> Nanos {
    let at = |p: &(u16, Nanos)| u64::from(p.0) * 1000;
    let above = points.partition_point(|p| at(p) <= rank);
    if above == 0 {
        return points.first().map_or(0, |p| p.1);
    }
    if above == points.len() {
        return points[above - 1].1;
    }
    let (a, b) = (&points[above - 1], &points[above]);
    let share = u128::from(b.1 - a.1) * u128::from(rank - at(a)) / u128::from(at(b) - at(a));
    a.1 + share as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::stream;

    fn mean_of(dist: &Dist) -> f64 {
        dist.validate().unwrap();
        let mut rng = stream(1, "test");
        (0..20_000).map(|_| dist.draw(&mut rng) as f64).sum::<f64>() / 20_000.0
    }

    #[test]
    fn means_are_those_of_the_distributions() {
        let cases = [
            (Dist::Constant(1000), 1000.0),
            (Dist::Uniform { low: 500, high: 1500 }, 1000.0),
            (Dist::Exponential { mean: 1000 }, 1000.0),
            (Dist::Lognormal { median: 1000, sigma: 0.5 }, 1000.0 * (0.125f64).exp()),
            (Dist::Normal { mean: 1000, sd: 100 }, 1000.0),
            (Dist::Quantiles(vec![(0, 500), (500, 1000), (1000, 1500)]), 1000.0),
        ];
        for (dist, want) in cases {
            let got = mean_of(&dist);
            assert!((got / want - 1.0).abs() < 0.03, "{dist:?}: {got} instead of {want}");
        }
    }

    #[test]
    fn long_tails_are_cut_at_a_day() {
        let day = LONGEST_DRAW;
        let cases = [
            Dist::Exponential { mean: day },
            Dist::Lognormal { median: day, sigma: 10.0 },
            Dist::Normal { mean: day, sd: day },
        ];
        for dist in cases {
            let mut rng = stream(1, "test");
            let draws: Vec<_> = (0..1000).map(|_| dist.draw(&mut rng)).collect();
            assert_eq!(draws.iter().max(), Some(&day), "{dist:?}");
            assert!(draws.iter().min() < Some(&day), "{dist:?}");
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        assert!(Dist::Uniform { low: 2, high: 1 }.validate().is_err());
        assert!(Dist::Lognormal { median: 1, sigma: 0.0 }.validate().is_err());
        assert!(Dist::Lognormal { median: 1, sigma: f64::NAN }.validate().is_err());
        assert!(Dist::Quantiles(vec![(0, 5), (10, 4)]).validate().is_err());
        assert!(Dist::Recorded(Vec::new()).validate().is_err());
    }

    #[test]
    fn a_recorded_sequence_is_taken_in_order() {
        let recorded = Dist::Recorded(vec![30, 10, 20]);
        let (mut rng, mut taken) = (stream(1, "test"), 0);
        for noise in [true, false] {
            let lengths: Vec<_> = (0..3).map(|_| recorded.next(&mut taken, noise, &mut rng)).collect();
            assert_eq!(lengths, [30, 10, 20]);
        }
        assert_eq!((recorded.typical(), recorded.scaled(2.0, 50)), (20, Dist::Recorded(vec![50, 20, 40])));
    }
}
