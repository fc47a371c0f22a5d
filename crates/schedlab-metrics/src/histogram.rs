//! A log-linear histogram of 64-bit samples: memory that does not grow with them, relative error below 2^-10, exact
//! count, sum, minimum and maximum.

use schedlab_model::Table;

/// Bits of a value that are kept below its leading one.
const SUB_BITS: u32 = 10;
/// Buckets needed for every 64-bit value: one more than the bucket of `u64::MAX`.
const BUCKETS: usize = ((64 - SUB_BITS as usize) << SUB_BITS) + (1 << SUB_BITS);

/// The largest value in the bucket of [`Histogram::counts`] that has this value.
#[must_use]
pub fn bucket_end(value: u64) -> u64 {
    value | ((1u64 << (64 - value.leading_zeros()).saturating_sub(KEPT_BITS + 1)) - 1)
}

/// Counts samples per bucket. Values below 2^11 have a bucket each; above, every power of two has 1024 buckets.
#[derive(Debug)]
pub struct Histogram {
    /// Empty before the first sample: most series of a run have none.
    counts: Table<u64>,
    count: u64,
    sum: u128,
    min: u64,
    /// How far the largest sample is above the smallest.
    span: u64,
}

/// A statistic of a histogram, by its name in metric names.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Stat {
    /// The smallest recorded value that at least this share (in percent) of the samples does not exceed.
    Percentile(f64),
    /// The largest sample.
    Max,
    /// The arithmetic mean.
    Mean,
    /// The smallest sample.
    Min,
    /// How many samples.
    Count,
}

impl Stat {
    /// Every statistic reported for sampled metrics, under its name.
    pub const ALL: [(&'static str, Stat); 14] = [
        ("p20", Stat::Percentile(20.0)),
        ("p50", Stat::Percentile(50.0)),
        ("p75", Stat::Percentile(75.0)),
        ("p90", Stat::Percentile(90.0)),
        ("p95", Stat::Percentile(95.0)),
        ("p99", Stat::Percentile(99.0)),
        ("p99.5", Stat::Percentile(99.5)),
        ("p99.9", Stat::Percentile(99.9)),
        ("p99.95", Stat::Percentile(99.95)),
        ("p99.99", Stat::Percentile(99.99)),
        ("max", Stat::Max),
        ("mean", Stat::Mean),
        ("min", Stat::Min),
        ("count", Stat::Count),
    ];

    /// The statistic of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Stat> {
        Stat::ALL.iter().find(|(known, _)| *known == name).map(|(_, stat)| *stat)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: Table::default(), count: 0, sum: 0, min: u64::MAX, span: 0 }
    }
}

impl Clone for Histogram {
    /// Copies only the buckets that hold samples.
    fn clone(&self) -> Self {
        let mut copy = Histogram::default();
        copy.merge(self);
        copy
    }
}

impl Histogram {
    /// Takes one sample.
    #[inline]
    pub fn record(&mut self, value: u64) {
        // Below the smallest value the difference wraps around.
        if value.wrapping_sub(self.min) > self.span {
            self.widen(value, value);
        }
        match self.counts.get_mut(bucket(value)) {
            Some(count) => *count += 1,
            None => self.begin()[bucket(value)] += 1,
        }
        self.count += 1;
        self.sum += u128::from(value);
    }

    /// The buckets, which have their place from now on.
    #[cold]
    fn begin(&mut self) -> &mut Table<u64> {
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS].into();
        }
        &mut self.counts
    }

    #[cold]
    fn widen(&mut self, low: u64, high: u64) {
        let high = if self.count == 0 { high } else { high.max(self.max()) };
        self.min = self.min.min(low);
        self.span = high - self.min;
    }

    /// The largest sample. Without samples the result has no meaning.
    fn max(&self) -> u64 {
        self.min + self.span
    }

    /// Adds the samples of another histogram.
    pub(crate) fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        self.widen(other.min, other.max());
        let held = bucket(other.min)..=bucket(other.max());
        self.begin()[held.clone()].iter_mut().zip(&other.counts[held]).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// The samples that came after those of `earlier`, which this histogram held before; each at the highest value of
    /// its bucket.
    pub(crate) fn since(&self, earlier: &Histogram) -> Histogram {
        let mut part = Histogram::default();
        if self.count == earlier.count {
            return part;
        }
        part.begin();
        for index in bucket(self.min)..=bucket(self.max()) {
            let more = self.counts[index] - earlier.counts.get(index).unwrap_or(&0);
            if more > 0 {
                let value = highest(index).clamp(self.min, self.max());
                part.widen(value, value);
                part.counts[index] = more;
                part.count += more;
            }
        }
        part.sum = self.sum - earlier.sum;
        part
    }

    /// Number of samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A statistic in the samples' own unit; `None` without samples (a count of 0 is a number).
    #[must_use]
    pub fn stat(&self, stat: Stat) -> Option<f64> {
        if self.count == 0 {
            return (stat == Stat::Count).then_some(0.0);
        }
        Some(match stat {
            Stat::Percentile(percent) => self.percentile(percent) as f64,
            Stat::Max => self.max() as f64,
            Stat::Mean => self.sum as f64 / self.count as f64,
            Stat::Min => self.min as f64,
            Stat::Count => self.count as f64,
        })
    }

    /// The statistics of [`Stat::ALL`] in its order, each as [`Histogram::stat`] gives it, in one walk over the
    /// buckets.
    #[must_use]
    pub fn stats(&self) -> [Option<f64>; Stat::ALL.len()] {
        let percentile =
            |(_, stat): &(_, Stat)| if let Stat::Percentile(percent) = stat { Some((*percent, 0)) } else { None };
        let mut points: Vec<(f64, u64)> = Stat::ALL.iter().filter_map(percentile).collect();
        if self.count > 0 {
            self.fill(&mut points);
        }
        let mut values = points.into_iter();
        Stat::ALL.map(|(_, stat)| match stat {
            Stat::Percentile(_) => values.next().filter(|_| self.count > 0).map(|(_, value)| value as f64),
            other => self.stat(other),
        })
    }

    /// `(percentile, value)` pairs for a percentile chart: at most 100, spaced evenly in the number of nines, from 0
    /// up to what the number of samples resolves, then 100.
    #[must_use]
    pub fn curve(&self) -> Vec<(f64, u64)> {
        if self.count == 0 {
            return Vec::new();
        }
        let resolved = |step: &f64| 10f64.powf(-step / PER_DECADE) * self.count as f64 >= 1.0;
        let steps = (0..STEPS).map(f64::from).take_while(resolved);
        let mut curve: Vec<(f64, u64)> = steps
            .map(|step| ((1e8 * (1.0 - 10f64.powf(-step / PER_DECADE))).round() / 1e6, 0))
            .filter(|(percent, _)| *percent < 100.0)
            .collect();
        curve.push((100.0, 0));
        self.fill(&mut curve);
        curve
    }

    /// `(largest value, count)` of every bucket that holds samples, ascending, with buckets of a relative width of
    /// 2^-7: counts of several runs can be added up.
    #[must_use]
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let mut merged: Vec<(u64, u64)> = Vec::new();
        if self.count == 0 {
            return merged;
        }
        // Every sample lies between these.
        let (first, last) = (bucket(self.min), bucket(self.max()));
        let rows = self.counts[first..=last].chunks(ROW).zip((first..).step_by(ROW));
        let rows = rows.filter(|(row, _)| row.iter().sum::<u64>() > 0);
        let held = rows.flat_map(|(row, first)| row.iter().zip(first..)).filter(|(count, _)| **count > 0);
        for (count, index) in held {
            let value = highest(index);
            let wide = bucket_end(value);
            match merged.last_mut() {
                Some((last, total)) if *last == wide => *total += count,
                _ => merged.push((wide, *count)),
            }
        }
        merged
    }

    /// The value at one percentile.
    fn percentile(&self, percent: f64) -> u64 {
        let mut point = [(percent, 0)];
        self.fill(&mut point);
        point[0].1
    }

    /// Sets the value of each point, whose percentiles ascend, in one walk over the buckets.
    fn fill(&self, points: &mut [(f64, u64)]) {
        let (mut seen, mut index) = (0, bucket(self.min));
        for (percent, value) in points {
            // The tiny allowance keeps 99.9 % of 1000 samples at rank 999, not 1000, whatever the rounding of the
            // product.
            let rank = (*percent / 100.0 * self.count as f64 - 1e-6).ceil().clamp(1.0, self.count as f64) as u64;
            while seen < rank && index < BUCKETS {
                // Most buckets are empty: a row of them that ends before the rank is passed in one step.
                let row = &self.counts[index..BUCKETS.min(index + ROW)];
                let samples: u64 = row.iter().sum();
                if seen + samples < rank {
                    seen += samples;
                    index += row.len();
                    continue;
                }
                for samples in row {
                    seen += samples;
                    index += 1;
                    if seen >= rank {
                        break;
                    }
                }
            }
            *value = highest(index.saturating_sub(1)).clamp(self.min, self.max());
        }
    }
}

/// Buckets that a walk adds up at once.
const ROW: usize = 64;
/// Bits below the leading one that `counts` keeps.
const KEPT_BITS: u32 = 7;
const PER_DECADE: f64 = 18.0;
const STEPS: u32 = 99;

/// The bucket of a value: its leading `SUB_BITS + 1` bits, numbered so that buckets ascend with values.
#[inline]
fn bucket(value: u64) -> usize {
    // A value with fewer bits than are kept is its own bucket.
    let shift = (value | 1 << SUB_BITS).ilog2() - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// The largest value of a bucket.
fn highest(bucket: usize) -> u64 {
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    let lead = (bucket - (shift << SUB_BITS)) as u64;
    (lead << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(samples: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        samples.iter().for_each(|s| histogram.record(*s));
        histogram
    }

    fn exact(sorted: &[u64], percent: f64) -> u64 {
        let rank = (percent / 100.0 * sorted.len() as f64 - 1e-6).ceil().max(1.0) as usize;
        sorted[rank - 1]
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let high = highest(bucket(value));
            prop_assert!(high >= value);
            prop_assert!(high - value <= value >> SUB_BITS);
            prop_assert_eq!(bucket(high), bucket(value));
            prop_assert!(high == u64::MAX || bucket(high + 1) == bucket(value) + 1);
        }

        #[test]
        fn percentiles_are_within_the_error_of_sorted_samples(
            mut samples in prop::collection::vec((any::<u64>(), 0u32..64).prop_map(|(v, s)| v >> s), 1..300),
            percent in 0.0..100.0f64,
        ) {
            let histogram = of(&samples);
            samples.sort_unstable();
            let (got, want) = (histogram.percentile(percent), exact(&samples, percent));
            prop_assert!(got >= want && got - want <= want >> SUB_BITS, "{} instead of {}", got, want);
        }

        #[test]
        fn curves_ascend_and_end_at_the_maximum(samples in prop::collection::vec(any::<u64>(), 1..300)) {
            let histogram = of(&samples);
            let curve = histogram.curve();
            prop_assert!(curve.len() <= 100);
            prop_assert!(curve.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
            prop_assert_eq!(*curve.last().unwrap(), (100.0, *samples.iter().max().unwrap()));
        }
    }

    proptest! {
        #[test]
        fn counts_hold_every_sample_in_a_bucket_of_known_width(
            samples in prop::collection::vec((any::<u64>(), 0u32..64).prop_map(|(v, s)| v >> s), 1..300),
        ) {
            let counts = of(&samples).counts();
            prop_assert!(counts.windows(2).all(|w| w[0].0 < w[1].0));
            prop_assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), samples.len() as u64);
            let mut below = 0;
            for (value, count) in counts {
                let lowest = value - (value >> KEPT_BITS);
                let inside = samples.iter().filter(|s| (lowest..=value).contains(*s)).count() as u64;
                prop_assert!(inside >= count, "{} samples of {} up to {}", inside, count, value);
                below += count;
                prop_assert_eq!(samples.iter().filter(|s| **s <= value).count() as u64, below);
            }
        }
    }

    proptest! {
        #[test]
        fn merged_histograms_are_those_of_all_samples(
            parts in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..20), 1..5),
        ) {
            let mut merged = Histogram::default();
            parts.iter().for_each(|part| merged.merge(&of(part)));
            let all = of(&parts.concat());
            prop_assert_eq!(merged.curve(), all.curve());
            prop_assert_eq!(Stat::ALL.map(|(_, stat)| merged.stat(stat)), Stat::ALL.map(|(_, stat)| all.stat(stat)));
        }
    }

    #[test]
    fn all_statistics_in_one_walk_are_those_of_a_walk_for_each() {
        for samples in [&[][..], &[0], &[u64::MAX], &[7, 7, 3_000_000], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1_000_000_000]] {
            let all = of(samples);
            assert_eq!(all.stats(), Stat::ALL.map(|(_, stat)| all.stat(stat)), "{samples:?}");
        }
    }

    #[test]
    fn a_later_part_has_the_samples_of_its_own() {
        let mut all = of(&[5, 3_000_000, 70]);
        let earlier = all.clone();
        assert_eq!(all.since(&earlier).count(), 0);
        [9, 40, 1_000].iter().for_each(|value| all.record(*value));
        let part = all.since(&earlier);
        let stats = [Stat::Count, Stat::Mean, Stat::Percentile(50.0), Stat::Max].map(|stat| part.stat(stat).unwrap());
        assert_eq!(stats, [3.0, 1_049.0 / 3.0, 40.0, 1_000.0]);
        assert_eq!(of(&[]).since(&of(&[])).stat(Stat::Mean), None);
    }

    #[test]
    fn the_bounds_are_those_of_the_samples() {
        for samples in [&[0][..], &[u64::MAX], &[u64::MAX, 0], &[7, 7], &[5, 3, 9], &[0, u64::MAX, 1]] {
            let (histogram, bounds) = (of(samples), [samples.iter().min(), samples.iter().max()]);
            let expected = bounds.map(|bound| bound.map(|bound| *bound as f64));
            assert_eq!([histogram.stat(Stat::Min), histogram.stat(Stat::Max)], expected, "{samples:?}");
        }
    }

    #[test]
    fn small_values_are_exact() {
        let histogram = of(&(1..=1000).collect::<Vec<_>>());
        let cases = [("p50", 500.0), ("p99", 990.0), ("p99.9", 999.0), ("max", 1000.0), ("mean", 500.5), ("min", 1.0)];
        for (name, want) in cases {
            assert_eq!(histogram.stat(Stat::named(name).unwrap()), Some(want), "{name}");
        }
    }

    #[test]
    fn no_samples_give_no_numbers() {
        let none = Histogram::default();
        assert_eq!(none.stat(Stat::Mean), None);
        assert_eq!(none.stat(Stat::Count), Some(0.0));
        assert!(none.curve().is_empty());
    }
}
