//! CFS bandwidth: a group may use `quota` of CPU time per `period`, over all CPUs (`struct cfs_bandwidth`).
//!
//! A pool per group is refilled every period: `runtime = quota` up to 5.13, `min(runtime + quota, quota + burst)` later. A
//! CPU's queue takes slices of it (`sched_cfs_bandwidth_slice_us`, 5 ms) as its tasks run, pays debts with the next refill, and is throttled
//! (`throttle`, `task`) when the pool is empty. The last to leave a queue returns all but 1 ms; the slack timer hands
//! that to throttled queues. Simplified: timers cost no CPU time and expire on a grid that starts at 0 (6.18: at
//! random), other CPUs are unthrottled at once and not by interrupt, no period is ever too short to handle (stretching
//! needs four of them to end within one timer interrupt).

mod pool;
mod task;
mod throttle;

pub use pool::{Bandwidth, BandwidthStats};

use super::Fair;
use crate::group_id::GroupId;
use schedlab_model::{CpuId, Nanos, MSEC, USEC};

/// `cfs_bandwidth_slack_period`.
const SLACK_PERIOD: Nanos = 5 * MSEC;
/// `min_bandwidth_expiration`.
const MIN_EXPIRATION: Nanos = 2 * MSEC;
/// `min_cfs_rq_runtime`: what a queue that runs empty keeps.
const MIN_RUNTIME: i64 = MSEC as i64;

impl Fair {
    /// `tg_set_cfs_bandwidth` of a group that has none yet; the root's is not limited.
    pub fn tg_set_cfs_bandwidth(&mut self, group: GroupId, quota: Nanos, period: Nanos, burst: Nanos, now: Nanos) {
        if group == GroupId::ROOT {
            return;
        }
        let burst = if self.rules.bandwidth_burst { burst } else { 0 };
        let mut pool = Bandwidth::new(quota, period, burst, now);
        pool.refill(self.rules.bandwidth_burst, now);
        self.groups[group.index()].bandwidth = Some(Box::new(pool));
        for cpu in 0..self.config.nr_cpus {
            let rq = self.group_queue(group, CpuId(cpu as u32));
            let q = &mut self.rqs[rq];
            (q.runtime_enabled, q.runtime_remaining) = (true, i64::from(self.rules.throttles_tasks()));
        }
        self.bandwidth_used = true;
        self.find_next_timer();
    }

    /// How a group's bandwidth has been used; `None` = unlimited.
    #[must_use]
    pub fn bandwidth(&self, group: GroupId) -> Option<BandwidthStats> {
        self.group(group).bandwidth.as_ref().map(|pool| pool.stats)
    }

    /// When the next timer of any pool fires, or a little earlier.
    #[inline]
    #[must_use]
    pub fn next_bandwidth_timer(&self) -> Option<Nanos> {
        (self.bandwidth_due < Nanos::MAX).then_some(self.bandwidth_due)
    }

    /// `sched_cfs_bandwidth_slice`.
    fn bandwidth_slice(&self) -> Nanos {
        self.config.knobs.cfs_bandwidth_slice_us * USEC
    }

    fn find_next_timer(&mut self) {
        let pools = self.groups.iter().filter_map(|group| group.bandwidth.as_ref());
        self.bandwidth_due = pools.filter_map(|pool| pool.due()).min().unwrap_or(Nanos::MAX);
    }

    /// Fires the timers that are due (`sched_cfs_period_timer`, `sched_cfs_slack_timer`); the CPUs that got somebody to
    /// run.
    pub fn bandwidth_timers(&mut self, now: Nanos) -> Vec<CpuId> {
        let (mut unthrottled, slice) = (Vec::new(), self.bandwidth_slice());
        for group in (0..self.groups.len() as u32).map(GroupId) {
            let Some(pool) = self.groups[group.index()].bandwidth.as_deref_mut() else { continue };
            if pool.slack_due.is_some_and(|due| due <= now) {
                pool.slack_due = None;
                if pool.runtime > slice && !pool.refreshes_within(MIN_EXPIRATION, now) {
                    self.distribute_cfs_runtime(group, now, &mut unthrottled);
                }
            }
            let pool = self.pool(group);
            if pool.active && pool.next_period <= now {
                pool.forward(now);
                self.do_sched_cfs_period_timer(group, now, &mut unthrottled);
            }
        }
        self.find_next_timer();
        unthrottled
    }

    fn do_sched_cfs_period_timer(&mut self, group: GroupId, now: Nanos, unthrottled: &mut Vec<CpuId>) {
        let carries = self.rules.bandwidth_burst;
        let pool = self.pool(group);
        let throttled = !pool.throttled.is_empty();
        pool.stats.nr_periods += 1;
        if carries {
            pool.refill(true, now);
        }
        if pool.idle && !throttled {
            pool.active = false;
            return;
        }
        if !carries {
            pool.refill(false, now);
        }
        pool.idle = !throttled;
        if throttled {
            pool.stats.nr_throttled += 1;
            self.distribute_cfs_runtime(group, now, unthrottled);
        }
    }

    /// `distribute_cfs_runtime`: each throttled queue gets what lifts it just above its debt, until the pool is empty.
    fn distribute_cfs_runtime(&mut self, group: GroupId, now: Nanos, unthrottled: &mut Vec<CpuId>) {
        for rq in self.pool(group).throttled.clone() {
            let rq = rq as usize;
            if !self.rqs[rq].throttled {
                continue;
            }
            if self.rules.throttles_at_once() {
                self.update_curr_rq(rq, now);
            }
            let debt = (1 - self.rqs[rq].runtime_remaining).max(0) as u64;
            let pool = self.pool(group);
            let given = debt.min(pool.runtime);
            pool.runtime -= given;
            let empty = pool.runtime == 0;
            self.rqs[rq].runtime_remaining += given as i64;
            if self.rqs[rq].runtime_remaining > 0 {
                unthrottled.push(self.rqs[rq].cpu);
                self.unthrottle_cfs_rq(rq, now);
            }
            if empty {
                return;
            }
        }
    }

    /// `__assign_cfs_rq_runtime`: takes from the pool what the queue lacks to `target`. Whether it may run.
    fn assign_cfs_rq_runtime(&mut self, rq: usize, target: Nanos, now: Nanos) -> bool {
        let q = &mut self.rqs[rq];
        let Some(pool) = self.groups[q.group.index()].bandwidth.as_deref_mut() else { return true };
        pool.start(now);
        self.bandwidth_due = self.bandwidth_due.min(pool.next_period);
        let given = (target as i64 - q.runtime_remaining).max(0).min(pool.runtime as i64);
        if pool.runtime > 0 {
            pool.runtime -= given as u64;
            pool.idle = false;
        }
        q.runtime_remaining += given;
        if self.rules.bandwidth_expires && q.expires_seq != pool.expires_seq {
            (q.expires_seq, q.runtime_expires) = (pool.expires_seq, pool.runtime_expires);
        }
        q.runtime_remaining > 0
    }

    /// `account_cfs_rq_runtime`: the queue ran so long. Whether it is throttled (7.x throttles here).
    #[inline(never)]
    pub(super) fn account_cfs_rq_runtime(&mut self, rq: usize, delta: Nanos, now: Nanos) -> bool {
        self.rqs[rq].runtime_remaining -= delta as i64;
        if self.rules.bandwidth_expires {
            self.expire_cfs_rq_runtime(rq, now);
        }
        if self.rqs[rq].runtime_remaining > 0 {
            return false;
        }
        if self.rqs[rq].throttled {
            return true;
        }
        if self.rules.throttles_at_once() {
            return self.throttle_cfs_rq(rq, now);
        }
        if !self.assign_cfs_rq_runtime(rq, self.bandwidth_slice(), now) && self.rqs[rq].curr.is_some() {
            self.resched_curr(rq);
            if self.decisions.is_some() {
                self.explain_runtime_over(rq, now);
            }
        }
        false
    }

    /// `expire_cfs_rq_runtime` (5.2): runtime of an earlier period is void.
    fn expire_cfs_rq_runtime(&mut self, rq: usize, now: Nanos) {
        let tick = self.tick_nsec;
        let q = &mut self.rqs[rq];
        let Some(pool) = self.groups[q.group.index()].bandwidth.as_deref() else { return };
        if now < q.runtime_expires || q.runtime_remaining < 0 {
            return;
        }
        if q.expires_seq == pool.expires_seq {
            q.runtime_expires += tick;
        } else {
            q.runtime_remaining = 0;
        }
    }

    /// `return_cfs_rq_runtime`: the last one has left the queue.
    #[inline(never)]
    pub(super) fn return_cfs_rq_runtime(&mut self, rq: usize, now: Nanos) {
        let slice = self.bandwidth_slice();
        let q = &mut self.rqs[rq];
        let slack = q.runtime_remaining - MIN_RUNTIME;
        if slack <= 0 {
            return;
        }
        q.runtime_remaining -= slack;
        let expired = self.rules.bandwidth_expires && {
            let pool = self.groups[q.group.index()].bandwidth.as_deref();
            pool.is_some_and(|pool| pool.expires_seq != q.expires_seq)
        };
        let Some(pool) = self.groups[q.group.index()].bandwidth.as_deref_mut().filter(|_| !expired) else { return };
        pool.runtime += slack as u64;
        if pool.runtime > slice
            && !pool.throttled.is_empty()
            && !pool.refreshes_within(SLACK_PERIOD + MIN_EXPIRATION, now)
        {
            let due = *pool.slack_due.get_or_insert(now + SLACK_PERIOD);
            self.bandwidth_due = self.bandwidth_due.min(due);
        }
    }

    /// The pool of a group that has one: queues are throttled in no other.
    fn pool(&mut self, group: GroupId) -> &mut Bandwidth {
        self.groups[group.index()].bandwidth.get_or_insert_with(Box::default)
    }
}
