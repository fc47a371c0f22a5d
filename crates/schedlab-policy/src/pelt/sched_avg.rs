//! One entity's or queue's sums and averages (`struct sched_avg`).

use super::series::PELT_MIN_DIVIDER;
use schedlab_model::Nanos;

/// Sums and averages of the three signals: one cache line.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SchedAvg {
    /// Up to when time is accounted; 0 = not attached to a queue.
    pub last_update_time: Nanos,
    /// Time on the queue, decayed; a queue's is weighted.
    pub load_sum: u64,
    /// Runnable time times 1024, decayed; a queue's counts each task (5.2: as `load_sum`, runnable tasks only).
    pub runnable_sum: u64,
    /// Load average: weight times the part of the time it was on the queue.
    pub load_avg: u64,
    /// Runnable average, 1024 per task that always waits or runs (5.2: `runnable_load_avg`).
    pub runnable_avg: u64,
    /// Running time times 1024, decayed.
    pub util_sum: u32,
    /// Position in the current segment, in 1024 ns.
    pub period_contrib: u32,
    /// Utilisation, 0..=1024 of this CPU's capacity.
    pub util_avg: u32,
    /// `util_est.enqueued`, or from 6.8 on the whole `util_est`; a flag in it says that util_avg has not changed since.
    pub util_est: u32,
    /// `util_est.ewma` (up to 6.7).
    pub util_est_ewma: u32,
}

/// What an entity or queue is doing while the time passes that is being accounted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct State {
    /// 1 per entity on its queue; a queue's weight.
    pub load: u64,
    /// 1024 per runnable task (5.2: an entity is runnable or not, and a queue has its runnable weight).
    pub runnable: u64,
    /// It runs.
    pub running: bool,
}

impl SchedAvg {
    /// `get_pelt_divider`: the largest sum that an always-on signal can have at this point of the segment.
    #[inline]
    #[must_use]
    pub fn get_pelt_divider(&self) -> u64 {
        PELT_MIN_DIVIDER + u64::from(self.period_contrib)
    }

    /// Whether an update at `now` would do anything.
    #[inline]
    #[must_use]
    pub fn is_due(&self, now: Nanos) -> bool {
        now.wrapping_sub(self.last_update_time) >= 1024
    }

    /// `load_avg_is_decayed`: nothing is left to decay.
    #[must_use]
    pub fn load_avg_is_decayed(&self) -> bool {
        self.load_sum == 0 && self.util_sum == 0 && self.runnable_sum == 0
    }
}
