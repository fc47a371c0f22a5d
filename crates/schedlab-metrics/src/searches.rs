//! How long the functions of the idle CPU search take, one sample per call that tested a CPU.

use schedlab_model::Nanos;
use schedlab_trace::ScanTimes;

use crate::Histogram;

/// One distribution per function, in ns.
#[derive(Clone, Default, Debug)]
pub(crate) struct Searches {
    pub(crate) sibling: Histogram,
    pub(crate) core: Histogram,
    pub(crate) cpu: Histogram,
    pub(crate) smt: Histogram,
}

impl Searches {
    /// A search that took `cost` ns in all.
    #[inline]
    pub(crate) fn record(&mut self, cost: Nanos, functions: &ScanTimes) {
        if functions.sibling {
            self.sibling.record(cost);
        }
        for (histogram, time) in
            [(&mut self.core, functions.core), (&mut self.cpu, functions.cpu), (&mut self.smt, functions.smt)]
        {
            if time > 0 {
                histogram.record(Nanos::from(time));
            }
        }
    }
}
