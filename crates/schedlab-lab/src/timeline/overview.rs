//! How busy a CPU was over the whole run, in a bounded number of bins.

use schedlab_model::Nanos;

/// There are never more bins than this; the finished overview has more than half as many, or bins of [`FINEST`].
const MOST: usize = 2048;
/// The first width of a bin, in ns.
const FINEST: Nanos = 1024;

/// Busy time by bin. Whenever there are not enough bins, each pair is merged into one.
pub struct Overview {
    width: Nanos,
    bins: Vec<Nanos>,
}

impl Default for Overview {
    fn default() -> Self {
        Overview { width: FINEST, bins: Vec::new() }
    }
}

impl Overview {
    /// The CPU was busy from `from` until `until`.
    pub fn add(&mut self, from: Nanos, until: Nanos) {
        while until > self.width * MOST as Nanos {
            self.bins = self.bins.chunks(2).map(|two| two.iter().sum()).collect();
            self.width *= 2;
        }
        let mut at = from;
        while at < until {
            let bin = (at / self.width) as usize;
            let end = until.min((bin as Nanos + 1) * self.width);
            if self.bins.len() <= bin {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += end - at;
            at = end;
        }
    }

    /// The width of a bin in ns, and the busy ns of each from time 0 on.
    pub fn finish(self) -> (Nanos, Vec<Nanos>) {
        (self.width, self.bins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_bins_are_joined() {
        let mut overview = Overview::default();
        let mut busy = 0;
        for i in 0..10_000u64 {
            overview.add(700 * i, 700 * i + 300);
            busy += 300;
        }
        let (width, bins) = overview.finish();
        assert_eq!(width, 4096);
        assert_eq!(bins.iter().sum::<Nanos>(), busy);
        assert!(bins.len() <= MOST && bins.len() > MOST / 2);
        assert!(bins[..1000].iter().all(|ns| (1500..2100).contains(ns)));
    }
}
