//! Estimated utilisation: what a task used in its last activations, kept over sleep (`util_est_update`, UTIL_EST).
//!
//! Up to 6.7 two numbers, the last activation's and their moving average (weight 1/4); since 6.8 one. The estimate of a
//! task is the larger. Whether util_avg has changed since the last update is a flag inside the number.

use super::sched_avg::SchedAvg;

/// Differences below this change nothing (`UTIL_EST_MARGIN`).
const MARGIN: i64 = 1024 / 100;

/// A version's way to estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UtilEst {
    /// `UTIL_AVG_UNCHANGED`; as bit 0 it costs the estimate its lowest bit.
    unchanged: u32,
    /// One number.
    single: bool,
    /// The last activation is stored although the average is not touched.
    keeps_last: bool,
}

impl UtilEst {
    /// The last activation and the average; nothing is stored while the average stays.
    pub const PAIR: UtilEst = UtilEst { unchanged: 1, single: false, keeps_last: false };
    /// The last activation is stored even if the average stays, and the flag has a bit of its own.
    pub const PAIR_KEEPS_LAST: UtilEst = UtilEst { unchanged: 1 << 31, single: false, keeps_last: true };
    /// One number.
    pub const SINGLE: UtilEst = UtilEst { single: true, ..UtilEst::PAIR_KEEPS_LAST };

    /// The estimate is updated before the last stretch of running is accounted (`single`).
    #[inline]
    #[must_use]
    pub fn updates_first(&self) -> bool {
        self.single
    }

    /// `cfs_se_util_change`: util_avg has a new value.
    #[inline]
    pub fn cfs_se_util_change(&self, avg: &mut SchedAvg) {
        avg.util_est &= !self.unchanged;
    }

    /// `_task_util_est`.
    #[inline]
    #[must_use]
    pub fn _task_util_est(&self, avg: &SchedAvg) -> u32 {
        (avg.util_est & !self.unchanged).max(avg.util_est_ewma) | (self.unchanged & 1)
    }

    /// `util_est_enqueue`.
    #[inline]
    pub fn util_est_enqueue(&self, cfs_rq: &mut SchedAvg, task: &SchedAvg) {
        cfs_rq.util_est += self._task_util_est(task);
    }

    /// `util_est_dequeue` of the queue's part.
    #[inline]
    pub fn util_est_dequeue(&self, cfs_rq: &mut SchedAvg, task: &SchedAvg) {
        cfs_rq.util_est = cfs_rq.util_est.saturating_sub(self._task_util_est(task));
    }

    /// `util_est_update` of a task that goes to sleep on a CPU of this capacity; `fastup`: UTIL_EST_FASTUP.
    #[inline]
    pub fn util_est_update(&self, avg: &mut SchedAvg, capacity: u64, fastup: bool) {
        if avg.util_est & self.unchanged != 0 {
            return;
        }
        if self.single {
            self.update_single(avg, capacity);
        } else {
            self.update_pair(avg, capacity, fastup);
        }
    }

    fn update_single(&self, avg: &mut SchedAvg, capacity: u64) {
        let util = avg.util_avg;
        let mut estimate = avg.util_est;
        if estimate <= util {
            estimate = util;
        } else if i64::from(estimate - util) >= MARGIN {
            if u64::from(util) > capacity {
                return;
            }
            let contended = u64::from(util) + (MARGIN as u64) < avg.runnable_avg;
            if !contended {
                estimate = (4 * estimate - (estimate - util)) >> 2;
            }
        }
        avg.util_est = estimate | self.unchanged;
    }

    fn update_pair(&self, avg: &mut SchedAvg, capacity: u64, fastup: bool) {
        let (util, last) = (avg.util_avg, avg.util_est);
        // Where the flag is bit 0 the sample carries it.
        let sample = if self.unchanged == 1 { util | 1 } else { util };
        if fastup && avg.util_est_ewma < sample {
            avg.util_est_ewma = sample;
        } else {
            let diff = i64::from(sample) - i64::from(avg.util_est_ewma);
            if diff.abs() < MARGIN {
                let moved = (i64::from(last) - i64::from(sample)).abs() >= MARGIN;
                if !self.keeps_last || !moved {
                    return;
                }
            } else if u64::from(util) > capacity {
                return;
            } else {
                avg.util_est_ewma = ((4 * i64::from(avg.util_est_ewma) + diff) >> 2) as u32;
            }
        }
        avg.util_est = sample | self.unchanged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds activations that ended with these utilisations; the estimates after each.
    fn estimates(util_est: UtilEst, fastup: bool, utils: &[u32]) -> Vec<u32> {
        let mut avg = SchedAvg::default();
        let estimate = |util: &u32| {
            (avg.util_avg, avg.runnable_avg) = (*util, u64::from(*util));
            util_est.cfs_se_util_change(&mut avg);
            util_est.util_est_update(&mut avg, 1024, fastup);
            util_est._task_util_est(&avg)
        };
        utils.iter().map(estimate).collect()
    }

    #[test]
    fn estimates_rise_and_fall_as_the_version_says() {
        let utils = [400, 400, 200, 200, 195, 600, 0];
        // 5.2: ewma 100, 175, 181, 186, kept, 289, 217.
        assert_eq!(estimates(UtilEst::PAIR, false, &utils), [401, 401, 201, 201, 201, 601, 217]);
        // ewma 400, 400, 350, 312, 282, 600, 450.
        assert_eq!(estimates(UtilEst::PAIR_KEEPS_LAST, true, &utils), [400, 400, 350, 312, 282, 600, 450]);
        assert_eq!(estimates(UtilEst::SINGLE, true, &utils), [400, 400, 350, 312, 282, 600, 450]);
    }

    #[test]
    fn a_change_within_the_margin_and_a_contended_task_keep_the_estimate() {
        assert_eq!(estimates(UtilEst::SINGLE, true, &[400, 391, 390]), [400, 400, 397]);
        let mut avg = SchedAvg { util_est: 400, util_avg: 200, runnable_avg: 211, ..SchedAvg::default() };
        UtilEst::SINGLE.util_est_update(&mut avg, 1024, true);
        assert_eq!(UtilEst::SINGLE._task_util_est(&avg), 400);
    }

    #[test]
    fn nothing_new_nothing_done() {
        for util_est in [UtilEst::PAIR, UtilEst::PAIR_KEEPS_LAST, UtilEst::SINGLE] {
            let mut avg = SchedAvg { util_avg: 300, ..SchedAvg::default() };
            util_est.util_est_update(&mut avg, 1024, true);
            let after = avg;
            avg.util_avg = 100;
            util_est.util_est_update(&mut avg, 1024, true);
            assert_eq!(avg, SchedAvg { util_avg: 100, ..after });
        }
    }

    #[test]
    fn queues_sum_their_tasks() {
        let (mut cfs_rq, util_est) = (SchedAvg::default(), UtilEst::SINGLE);
        let task = SchedAvg { util_est: 300 | 1 << 31, ..SchedAvg::default() };
        util_est.util_est_enqueue(&mut cfs_rq, &task);
        util_est.util_est_enqueue(&mut cfs_rq, &task);
        util_est.util_est_dequeue(&mut cfs_rq, &task);
        assert_eq!(cfs_rq.util_est, 300);
    }
}
