//! The pools of all groups, and what flows between a pool and one queue (`__assign_cfs_rq_runtime`,
//! `expire_cfs_rq_runtime`, `return_cfs_rq_runtime`).

use super::pool::{Bandwidth, BandwidthStats};
use crate::fair::cfs_rq::CfsRq;
use crate::group_id::GroupId;
use crate::KernelConfig;
use schedlab_model::{stream, Nanos, Ties, MSEC, USEC};

/// `cfs_bandwidth_slack_period`.
const SLACK_PERIOD: Nanos = 5 * MSEC;
/// `min_bandwidth_expiration`.
pub(super) const MIN_EXPIRATION: Nanos = 2 * MSEC;
/// `min_cfs_rq_runtime`: what a queue that becomes empty keeps.
const MIN_RUNTIME: i64 = MSEC as i64;

/// The pools of runtime, by group.
#[derive(Clone, Debug)]
pub(in crate::fair) struct Pools {
    pools: Vec<Option<Box<Bandwidth>>>,
    /// No timer of a pool fires before this.
    due: Nanos,
    /// Some group has a quota. Paths that every switch takes test this alone.
    pub used: bool,
    /// In which order timers of different groups fire that are due at the same time.
    pub ties: Ties,
    /// Where the periods of the quotas lie.
    pub phases: Phases,
}

/// Where the periods of quotas lie. A program may be started at any time of the period.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::fair) struct Phases {
    /// What is drawn from; `None`: every period begins at time 0.
    pub seed: Option<u64>,
}

/// `default_cfs_period`.
const DEFAULT_CFS_PERIOD: Nanos = 100 * MSEC;

impl Phases {
    /// A time at which the period timer of the group expires. Timers expire at multiples of their period since boot,
    /// and the time since boot is drawn once. From 6.4 on (`interleaves`) `init_cfs_bandwidth` adds a random part of
    /// the default period for each group.
    pub fn of(self, group: GroupId, interleaves: bool) -> Nanos {
        let Some(seed) = self.seed else { return 0 };
        let since_boot = stream(seed, "quota").below(1 << 50);
        let offset =
            if interleaves { stream(seed, &format!("quota/{}", group.0)).below(DEFAULT_CFS_PERIOD) } else { 0 };
        since_boot + offset
    }
}

impl Default for Pools {
    fn default() -> Self {
        Pools { pools: Vec::new(), due: Nanos::MAX, used: false, ties: Ties::default(), phases: Phases::default() }
    }
}

/// `sched_cfs_bandwidth_slice`.
pub(super) fn sched_cfs_bandwidth_slice(config: &KernelConfig) -> Nanos {
    config.knobs.cfs_bandwidth_slice_us * USEC
}

impl Pools {
    /// Gives a group its pool.
    pub(super) fn insert(&mut self, group: GroupId, pool: Bandwidth) {
        if self.pools.len() <= group.index() {
            self.pools.resize_with(group.index() + 1, || None);
        }
        self.pools[group.index()] = Some(Box::new(pool));
        self.used = true;
        self.find_next_timer();
    }

    /// How a group's bandwidth has been used; `None` = unlimited.
    pub fn stats(&self, group: GroupId) -> Option<BandwidthStats> {
        self.get(group).map(|pool| pool.stats)
    }

    /// When the next timer of any pool fires, or a little earlier.
    #[inline]
    pub fn next_timer(&self) -> Option<Nanos> {
        (self.due < Nanos::MAX).then_some(self.due)
    }

    /// Groups that have a pool, in the order in which their timers fire that are due now.
    pub(super) fn groups(&self, now: Nanos) -> Vec<GroupId> {
        let with_pool =
            |(group, pool): (usize, &Option<Box<Bandwidth>>)| pool.is_some().then_some(GroupId(group as u32));
        let mut groups: Vec<GroupId> = self.pools.iter().enumerate().filter_map(with_pool).collect();
        groups.sort_by_key(|group| self.ties.rank(now, group.0));
        groups
    }

    pub(super) fn find_next_timer(&mut self) {
        self.due = self.pools.iter().flatten().filter_map(|pool| pool.due()).min().unwrap_or(Nanos::MAX);
    }

    pub(super) fn get(&self, group: GroupId) -> Option<&Bandwidth> {
        self.pools.get(group.index())?.as_deref()
    }

    pub(super) fn get_mut(&mut self, group: GroupId) -> Option<&mut Bandwidth> {
        self.pools.get_mut(group.index())?.as_deref_mut()
    }

    /// Time until a group's pool is refilled; 0 for a group without one.
    pub(super) fn refill_in(&self, group: GroupId, now: Nanos) -> Nanos {
        self.get(group).map_or(0, |pool| pool.next_period.saturating_sub(now))
    }

    /// `__assign_cfs_rq_runtime`: takes from the pool what the queue lacks to `target`. Whether the queue may run.
    pub(super) fn __assign_cfs_rq_runtime(
        &mut self,
        q: &mut CfsRq,
        config: &KernelConfig,
        target: Nanos,
        now: Nanos,
    ) -> bool {
        let Some(pool) = self.get_mut(q.group) else { return true };
        pool.start_cfs_bandwidth(now);
        let given = (target as i64 - q.runtime_remaining).max(0).min(pool.runtime as i64);
        if pool.runtime > 0 {
            pool.runtime -= given as u64;
            pool.idle = false;
        }
        q.runtime_remaining += given;
        if config.rules.bandwidth_expires && q.expires_seq != pool.expires_seq {
            (q.expires_seq, q.runtime_expires) = (pool.expires_seq, pool.runtime_expires);
        }
        let due = pool.next_period;
        self.due = self.due.min(due);
        q.runtime_remaining > 0
    }

    /// `expire_cfs_rq_runtime` (5.2): runtime of an earlier period is void.
    pub(super) fn expire_cfs_rq_runtime(&self, q: &mut CfsRq, config: &KernelConfig, now: Nanos) {
        let Some(pool) = self.get(q.group) else { return };
        if now < q.runtime_expires || q.runtime_remaining < 0 {
            return;
        }
        if q.expires_seq == pool.expires_seq {
            q.runtime_expires += config.tick_nsec();
        } else {
            q.runtime_remaining = 0;
        }
    }

    /// `return_cfs_rq_runtime`: the last entity has left the queue.
    #[inline(never)]
    pub fn return_cfs_rq_runtime(&mut self, q: &mut CfsRq, config: &KernelConfig, now: Nanos) {
        let slack = q.runtime_remaining - MIN_RUNTIME;
        if slack <= 0 {
            return;
        }
        q.runtime_remaining -= slack;
        let expires = config.rules.bandwidth_expires;
        let valid = |pool: &&mut Bandwidth| !expires || pool.expires_seq == q.expires_seq;
        let Some(pool) = self.get_mut(q.group).filter(valid) else { return };
        pool.runtime += slack as u64;
        if pool.runtime > sched_cfs_bandwidth_slice(config)
            && !pool.throttled.is_empty()
            && !pool.runtime_refresh_within(SLACK_PERIOD + MIN_EXPIRATION, now)
        {
            let due = *pool.slack_due.get_or_insert(now + SLACK_PERIOD);
            self.due = self.due.min(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn timers_of_different_groups_fire_in_the_order_of_the_ties() {
        let mut pools = Pools::default();
        (1..4).for_each(|group| pools.insert(GroupId(group), Bandwidth::new(MSEC, 10 * MSEC, 0, 0, 0)));
        let orders = |pools: &Pools| (0..100).map(|now| pools.groups(now)).collect::<BTreeSet<_>>();
        assert_eq!(orders(&pools), BTreeSet::from([vec![GroupId(1), GroupId(2), GroupId(3)]]));
        pools.ties = Ties::new(Some(1), 1);
        assert_eq!(orders(&pools).len(), 6);
    }

    /// The timers of groups expire together up to 6.3, at times of their own from 6.4 on, and without a seed at
    /// multiples of the period.
    #[test]
    fn periods_lie_where_the_seed_puts_them() {
        let expiries = |seed: Option<u64>, interleaves: bool| -> Vec<Nanos> {
            let phases = Phases { seed };
            let expiry =
                |group| Bandwidth::new(MSEC, 10 * MSEC, 0, phases.of(GroupId(group), interleaves), 0).next_period;
            (1..4).map(expiry).collect()
        };
        assert_eq!(expiries(None, true), [10 * MSEC; 3]);
        for seed in 1..9 {
            let (together, apart) = (expiries(Some(seed), false), expiries(Some(seed), true));
            assert!(together.iter().all(|expiry| *expiry == together[0] && *expiry <= 10 * MSEC), "{together:?}");
            assert_eq!(apart.iter().collect::<BTreeSet<_>>().len(), 3, "{apart:?}");
        }
        let firsts: BTreeSet<Nanos> = (1..9).map(|seed| expiries(Some(seed), false)[0] / MSEC).collect();
        assert!(firsts.len() > 4, "{firsts:?}");
    }

    #[test]
    fn a_timer_expires_after_now() {
        for (phase, now, expected) in
            [(0, 0, 10), (0, 10, 20), (3, 0, 3), (3, 3, 13), (3, 12, 13), (3, 13, 23), (13, 0, 3), (9, 8, 9)]
        {
            assert_eq!(Bandwidth::new(1, 10, 0, phase, now).next_period, expected, "phase {phase}, at {now}");
        }
    }
}
