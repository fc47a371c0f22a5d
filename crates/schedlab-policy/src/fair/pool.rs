//! The pool of a group: the runtime that is left in this period.

use schedlab_model::Nanos;

/// How a group's bandwidth has been used (`cpu.stat`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BandwidthStats {
    /// Periods that have passed while the group ran.
    pub nr_periods: u64,
    /// Periods at whose end a queue was throttled.
    pub nr_throttled: u64,
    /// Time that queues spent throttled, summed over CPUs, up to the last unthrottling.
    pub throttled_time: Nanos,
    /// Periods in which more than the quota was used.
    pub nr_bursts: u64,
    /// Time used beyond the quota.
    pub burst_time: Nanos,
}

/// The pool of a group (`struct cfs_bandwidth`).
#[derive(Clone, Debug, Default)]
pub struct Bandwidth {
    pub(super) quota: Nanos,
    pub(super) period: Nanos,
    pub(super) burst: Nanos,
    pub(super) runtime: Nanos,
    /// Runtime after the last refill (`runtime_snap`).
    filled: Nanos,
    /// No queue has received runtime since the last refill.
    pub(super) idle: bool,
    /// The period timer runs.
    pub(super) active: bool,
    /// When it expires next, whether it runs or not.
    pub(super) next_period: Nanos,
    /// It expires at this time and whole periods later.
    phase: Nanos,
    /// When the slack timer expires, if it runs.
    pub(super) slack_due: Option<Nanos>,
    /// Throttled queues, the longest first.
    pub(super) throttled: Vec<u32>,
    pub(super) expires_seq: u32,
    pub(super) runtime_expires: Nanos,
    pub(super) stats: BandwidthStats,
}

impl Bandwidth {
    /// A pool whose period timer expires at `phase`, taken modulo the period, and whole periods later.
    pub(super) fn new(quota: Nanos, period: Nanos, burst: Nanos, phase: Nanos, now: Nanos) -> Self {
        let period = period.max(1);
        let mut pool = Bandwidth { quota, period, burst, phase: phase % period, ..Bandwidth::default() };
        pool.start_cfs_bandwidth(now);
        pool
    }

    /// `start_cfs_bandwidth`.
    pub(super) fn start_cfs_bandwidth(&mut self, now: Nanos) {
        if !self.active {
            self.active = true;
            self.hrtimer_forward_now(now);
        }
    }

    /// `hrtimer_forward_now`: the next point of the grid after now.
    pub(super) fn hrtimer_forward_now(&mut self, now: Nanos) {
        let passed = (now + self.period - self.phase) / self.period.max(1);
        self.next_period = self.phase + passed * self.period;
    }

    /// `__refill_cfs_bandwidth_runtime`; `carries`: what is left over is kept, up to `burst`.
    pub(super) fn __refill_cfs_bandwidth_runtime(&mut self, carries: bool, now: Nanos) {
        if carries {
            self.count_burst();
        }
        self.runtime = if carries { (self.runtime + self.quota).min(self.quota + self.burst) } else { self.quota };
        self.filled = self.runtime;
        self.runtime_expires = now + self.period;
        self.expires_seq = self.expires_seq.wrapping_add(1);
    }

    /// Use beyond one quota since the last refill came from runtime saved before.
    fn count_burst(&mut self) {
        let beyond = self.filled.saturating_sub(self.runtime + self.quota);
        self.stats.nr_bursts += u64::from(beyond > 0);
        self.stats.burst_time += beyond;
    }

    /// `runtime_refresh_within`.
    pub(super) fn runtime_refresh_within(&self, span: Nanos, now: Nanos) -> bool {
        self.next_period.saturating_sub(now) < span
    }

    /// When its next timer fires, if one runs.
    pub(super) fn due(&self) -> Option<Nanos> {
        let period = self.active.then_some(self.next_period);
        period.into_iter().chain(self.slack_due).min()
    }
}
