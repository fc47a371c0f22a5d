//! The per-CPU state of schedutil: the last request, and the boost of tasks that wait for a disk.
//!
//! Follows kernel/sched/cpufreq_schedutil.c of 6.12.117.

use schedlab_model::Nanos;

/// SCHED_CAPACITY_SCALE.
pub const SCALE: u64 = 1024;
/// IOWAIT_BOOST_MIN.
const IOWAIT_BOOST_MIN: u64 = SCALE / 8;

/// The governor of one CPU (`sugov_cpu` and its `sugov_policy`).
#[derive(Clone, Default, Debug)]
pub struct Sugov {
    pub next_freq: u32,
    pub last_freq_update_time: Option<Nanos>,
    pub last_update: Nanos,
    iowait_boost: u64,
    iowait_boost_pending: bool,
    saved_idle_calls: u32,
}

impl Sugov {
    /// `sugov_iowait_boost`: doubled by each wait for a disk within a tick.
    pub fn sugov_iowait_boost(&mut self, now: Nanos, tick: Nanos, iowait: bool) {
        if self.iowait_boost > 0 && self.sugov_iowait_reset(now, tick, iowait) || !iowait || self.iowait_boost_pending {
            return;
        }
        self.iowait_boost_pending = true;
        self.iowait_boost = (self.iowait_boost * 2).clamp(IOWAIT_BOOST_MIN, SCALE);
    }

    /// `sugov_iowait_reset`
    fn sugov_iowait_reset(&mut self, now: Nanos, tick: Nanos, iowait: bool) -> bool {
        let over = now - self.last_update > tick;
        if over {
            self.iowait_boost = if iowait { IOWAIT_BOOST_MIN } else { 0 };
            self.iowait_boost_pending = iowait;
        }
        over
    }

    /// `sugov_iowait_apply`: halved when no wait was added since.
    pub fn sugov_iowait_apply(&mut self, now: Nanos, tick: Nanos) -> u64 {
        if self.iowait_boost == 0 || self.sugov_iowait_reset(now, tick, false) {
            return 0;
        }
        if !self.iowait_boost_pending {
            self.iowait_boost /= 2;
            if self.iowait_boost < IOWAIT_BOOST_MIN {
                self.iowait_boost = 0;
            }
        }
        self.iowait_boost_pending = false;
        self.iowait_boost
    }

    /// `sugov_hold_freq`: a CPU that has not been idle since the last call does not lower its frequency.
    pub fn sugov_hold_freq(&mut self, idle_calls: u32) -> bool {
        let saved = std::mem::replace(&mut self.saved_idle_calls, idle_calls);
        saved == idle_calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Nanos = 4_000_000;

    #[test]
    fn waits_for_a_disk_double_the_boost_within_a_tick_and_its_lack_halves_it() {
        let mut sugov = Sugov::default();
        let mut wait = |now, iowait| {
            sugov.sugov_iowait_boost(now, TICK, iowait);
            sugov.last_update = now;
            sugov.sugov_iowait_apply(now, TICK)
        };
        let waits = [1, 2, 3, 4, 5].map(|ms| wait(ms * 1_000_000, true));
        assert_eq!(waits, [128, 256, 512, 1024, 1024]);
        let without = [6, 7, 8, 9].map(|ms| wait(ms * 1_000_000, false));
        assert_eq!(without, [512, 256, 128, 0]);
        assert_eq!(wait(10_000_000, true), 128);
        assert_eq!(wait(15_000_000, true), 128, "more than a tick later it begins again");
    }

    #[test]
    fn a_cpu_that_was_not_idle_keeps_its_frequency() {
        let mut sugov = Sugov::default();
        assert_eq!([0, 0, 1, 1].map(|calls| sugov.sugov_hold_freq(calls)), [true, true, false, true]);
    }
}
