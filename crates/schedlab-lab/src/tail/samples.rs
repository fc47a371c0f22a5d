//! The samples of one metric, added up by duration; the longest are kept one by one.

use std::collections::BTreeMap;

use schedlab_metrics::bucket_end;
use schedlab_model::{Nanos, Pid};
use serde_json::json;

use super::band::Band;
use super::names::Names;
use super::slow::Slow;

/// How many of the longest samples are kept one by one.
const SLOWEST: usize = 8;
/// How many samples are divided if no bands are given; with more, only a run that is told the bands divides them.
const MOST: u64 = 20_000;

/// What samples are added up by.
pub enum By {
    /// Bands of durations, first and last value in ns; samples outside of them count only in total.
    Bands(Vec<(Nanos, Nanos)>),
    /// The buckets of the histogram in the run's report, from which bands can be added up after the run.
    Buckets,
}

/// The samples of one metric.
pub struct Samples {
    pub metric: String,
    /// The kernel whose wakeups are the metric.
    pub wakeups_of: Option<usize>,
    /// When the last sample ended in each task of each kernel.
    pub last: BTreeMap<(usize, Pid), Nanos>,
    by: By,
    /// When the first sample may end, and when the run ends at the latest.
    during: (Nanos, Nanos),
    /// By the number of the band, or by the largest duration of the bucket.
    bands: BTreeMap<u64, Band>,
    tenths: [(u64, u128); 10],
    slowest: Vec<Slow>,
    divided: u64,
}

impl Samples {
    pub fn new(metric: &str, by: By, from: Nanos, until: Nanos) -> Self {
        Samples {
            metric: metric.to_owned(),
            wakeups_of: None,
            last: BTreeMap::new(),
            by,
            during: (from, until),
            bands: BTreeMap::new(),
            tenths: [(0, 0); 10],
            slowest: Vec::new(),
            divided: 0,
        }
    }

    /// Counts a sample; whether it is to be divided and added.
    pub fn counts(&mut self, at: Nanos, ns: Nanos) -> bool {
        let tenth = self.tenth(at);
        self.tenths[tenth].0 += 1;
        self.tenths[tenth].1 += u128::from(ns);
        let wanted = match &self.by {
            By::Bands(bands) => self.is_long(ns) || bands.iter().any(|band| contains(band, ns)),
            By::Buckets => self.divided <= MOST,
        };
        self.divided += u64::from(wanted);
        if !self.is_complete() {
            self.bands.clear();
        }
        wanted
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: Slow) {
        let (ns, tenth) = (sample.ended.ns, self.tenth(sample.ended.at));
        match &self.by {
            By::Bands(bands) => {
                for (number, _) in bands.iter().enumerate().filter(|(_, band)| contains(band, ns)) {
                    self.bands.entry(number as u64).or_default().add(&sample, tenth);
                }
            }
            By::Buckets => self.bands.entry(bucket_end(ns)).or_default().add(&sample, tenth),
        }
        if self.is_long(ns) {
            let place = self.slowest.partition_point(|known| known.ended.ns >= ns);
            self.slowest.insert(place, sample);
            self.slowest.truncate(SLOWEST);
        }
    }

    /// The samples within each of the bands as JSON (`bands, tenths, slowest`); `None` if they were not added up so
    /// that these bands can be told apart.
    pub fn json(&self, bands: &[(Nanos, Nanos)], kernels: &[String], names: &Names) -> Option<serde_json::Value> {
        let bands: Vec<_> = match &self.by {
            By::Bands(own) if own == bands => {
                let empty = Band::default();
                (0..bands.len() as u64)
                    .map(|number| self.bands.get(&number).unwrap_or(&empty).json(kernels, names))
                    .collect()
            }
            By::Buckets if self.is_complete() && bands.iter().all(is_of_buckets) => {
                let sum = |&(first, last): &(Nanos, Nanos)| {
                    let mut total = Band::default();
                    self.bands.range(first..=last.max(first)).for_each(|(_, band)| total.merge(band));
                    total.json(kernels, names)
                };
                bands.iter().map(sum).collect()
            }
            _ => return None,
        };
        let slowest: Vec<_> = self.slowest.iter().map(|slow| slow.json(kernels, names)).collect();
        let tenths: Vec<_> = self.tenths.iter().map(|(count, ns)| json!([count, *ns as f64])).collect();
        Some(json!({ "bands": bands, "tenths": tenths, "slowest": slowest }))
    }

    fn is_complete(&self) -> bool {
        matches!(self.by, By::Bands(_)) || self.divided <= MOST
    }

    fn is_long(&self, ns: Nanos) -> bool {
        self.slowest.len() < SLOWEST || self.slowest.last().is_some_and(|least| ns > least.ended.ns)
    }

    /// The tenth of the time after the warm-up.
    fn tenth(&self, at: Nanos) -> usize {
        let (from, until) = self.during;
        let measured = until.saturating_sub(from).max(1);
        ((u128::from(at.saturating_sub(from)) * 10 / u128::from(measured)) as usize).min(9)
    }
}

fn contains(band: &(Nanos, Nanos), ns: Nanos) -> bool {
    (band.0..=band.1).contains(&ns)
}

/// Whether a band begins after the end of a bucket and ends at the end of one.
fn is_of_buckets(&(first, last): &(Nanos, Nanos)) -> bool {
    let ends = |ns: Nanos| bucket_end(ns) == ns;
    first.checked_sub(1).is_none_or(ends) && ends(last)
}
