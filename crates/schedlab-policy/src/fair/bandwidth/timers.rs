//! Refills and the distribution of runtime (`sched_cfs_period_timer`, `sched_cfs_slack_timer`,
//! `distribute_cfs_runtime`).

use crate::fair::pool::Bandwidth;
use crate::fair::pools::{sched_cfs_bandwidth_slice, MIN_EXPIRATION};
use crate::fair::queues::Queues;
use crate::group_id::GroupId;
use schedlab_model::{CpuId, Nanos};

impl Queues {
    /// `tg_set_cfs_bandwidth` of a group that has no quota yet; the root is never limited.
    pub fn tg_set_cfs_bandwidth(&mut self, group: GroupId, quota: Nanos, period: Nanos, burst: Nanos, now: Nanos) {
        if group == GroupId::ROOT {
            return;
        }
        let rules = &self.config.rules;
        let burst = if rules.bandwidth_burst { burst } else { 0 };
        let phase = self.pools.phases.of(group, rules.bandwidth_interleaves);
        let mut pool = Bandwidth::new(quota, period, burst, phase, now);
        pool.__refill_cfs_bandwidth_runtime(rules.bandwidth_burst, now);
        for cpu in 0..self.arena.nr_cpus() {
            let rq = self.arena.group_queue(group, CpuId(cpu as u32));
            let q = &mut self.arena.rqs[rq];
            (q.runtime_enabled, q.runtime_remaining) = (true, i64::from(rules.throttles_tasks()));
        }
        self.pools.insert(group, pool);
    }

    /// Fires the timers that are due (`sched_cfs_period_timer`, `sched_cfs_slack_timer`); the CPUs whose queues were
    /// unthrottled.
    pub fn bandwidth_timers(&mut self, now: Nanos) -> Vec<CpuId> {
        let (mut unthrottled, slice) = (Vec::new(), sched_cfs_bandwidth_slice(&self.config));
        for group in self.pools.groups(now) {
            let Some(pool) = self.pools.get_mut(group) else { continue };
            if pool.slack_due.is_some_and(|due| due <= now) {
                pool.slack_due = None;
                if pool.runtime > slice && !pool.runtime_refresh_within(MIN_EXPIRATION, now) {
                    self.distribute_cfs_runtime(group, now, &mut unthrottled);
                }
            }
            let Some(pool) = self.pools.get_mut(group) else { continue };
            if pool.active && pool.next_period <= now {
                pool.hrtimer_forward_now(now);
                if pool.begin_period(self.config.rules.bandwidth_burst, now) {
                    self.distribute_cfs_runtime(group, now, &mut unthrottled);
                }
            }
        }
        self.pools.find_next_timer();
        unthrottled
    }

    /// `distribute_cfs_runtime`: each throttled queue gets what lifts it just above its debt, until the pool is empty.
    fn distribute_cfs_runtime(&mut self, group: GroupId, now: Nanos, unthrottled: &mut Vec<CpuId>) {
        let throttled = self.pools.get(group).map_or(Vec::new(), |pool| pool.throttled.clone());
        for rq in throttled.into_iter().map(|rq| rq as usize) {
            if !self.arena.rqs[rq].throttled {
                continue;
            }
            if self.config.rules.throttles_at_once() {
                self.update_curr(rq, now);
            }
            let q = &mut self.arena.rqs[rq];
            let debt = (1 - q.runtime_remaining).max(0) as u64;
            let Some(pool) = self.pools.get_mut(group) else { return };
            let given = debt.min(pool.runtime);
            pool.runtime -= given;
            let empty = pool.runtime == 0;
            q.runtime_remaining += given as i64;
            if q.runtime_remaining > 0 {
                unthrottled.push(q.cpu);
                self.unthrottle_cfs_rq(rq, now);
            }
            if empty {
                return;
            }
        }
    }
}

impl Bandwidth {
    /// `do_sched_cfs_period_timer` up to the distribution: whether throttled queues are to be served.
    fn begin_period(&mut self, carries: bool, now: Nanos) -> bool {
        let throttled = !self.throttled.is_empty();
        self.stats.nr_periods += 1;
        if carries {
            self.__refill_cfs_bandwidth_runtime(true, now);
        }
        if self.idle && !throttled {
            self.active = false;
            return false;
        }
        if !carries {
            self.__refill_cfs_bandwidth_runtime(false, now);
        }
        self.idle = !throttled;
        self.stats.nr_throttled += u64::from(throttled);
        throttled
    }
}
