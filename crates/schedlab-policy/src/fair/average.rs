//! EEVDF's virtual time V, eligibility and lag (`avg_vruntime`, `vruntime_eligible`, `entity_lag`).
//!
//! # Why V is a weighted mean
//!
//! Let entity i have weight `w_i` and vruntime `v_i`, let `W` be the sum of all weights, and call `lag_i` the service
//! that an ideal scheduler, which runs every entity at once at speed `w_i / W`, would have given entity i by now, less
//! what it received. Virtual time V advances in the ideal scheduler by `1 / W` per unit of real time, so the ideal
//! service since any moment is `w_i * (change of V)`; the real service is `w_i * (change of v_i)`, because `v_i`
//! advances by `1 / w_i` per unit of time that the entity runs. Hence `lag_i = w_i * (V - v_i)`. No time is created or
//! lost: what one entity has received too much, the others miss, and the lags sum to zero. With `sum w_i * (V - v_i) =
//! 0` it follows that
//!
//! ```text
//! V = (sum of w_i * v_i) / W
//! ```
//!
//! Vruntimes are 64-bit numbers that wrap, and `w_i * v_i` would overflow. For any reference point `v0` near them, `v_i
//! = (v_i - v0) + v0`, so `V = v0 + (sum of w_i * (v_i - v0)) / W`, whose numerator stays small. A queue keeps that
//! numerator `S` and `W` for the entities in its tree ([`CfsRq::avg_vruntime_add`]); the running entity, whose vruntime
//! changes all the time, is added when V is computed ([`CfsRq::average`]). Moving `v0` by `d` changes every key by `-d`
//! and therefore `S` by `-d * W` ([`CfsRq::update_zero_vruntime`]).
//!
//! An entity is *eligible*, that is, it may be picked, if its lag is not negative: `V >= v_i`. Multiplied by W this is
//! `S >= (v_i - v0) * W`, which needs no division and loses no precision ([`Average::vruntime_eligible`]).
//!
//! # Why lag is bounded
//!
//! EEVDF never lets an entity run for longer than its request once it is picked, and picks it only while it is
//! eligible. So an entity can overrun its share by at most one request plus what accounting at ticks adds, and the same
//! holds for what the others can be ahead of it. A larger lag cannot come from competition on one queue; it comes from
//! rounding, migration, or a queue whose entities all left. A kernel therefore clamps the lag that an entity keeps over
//! a sleep to about two slices, or to the longest slice on the queue plus a tick ([`CfsRq::lag_limit`]). Virtual lag is
//! `vl_i = V - v_i = lag_i / w_i`.
//!
//! # Where kernels differ
//!
//! Weights are scaled down up to 6.18 and taken in full from 7.x. v0 is min_vruntime, or zero_vruntime, which becomes V
//! whenever V is computed. The division rounds down, except in the 2023 series, which rounds towards v0. Simplified:
//! divisors are 64 bits wide where the kernel cuts them to 32 (over 2 million nice-0 tasks on one CPU).

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use crate::features::Feature;
use crate::weight::{calc_delta_fair, LoadWeight};
use crate::{Averaging, DelayedLag, KernelConfig, LagLimit, TreeKey, ZeroPoint};
use schedlab_model::{Nanos, Vruntime};

/// The sums of one queue with the running entity added: they decide which entities are eligible now.
#[derive(Clone, Copy)]
pub(super) struct Average {
    v0: Vruntime,
    sum: i64,
    weight: i64,
    wide: bool,
    truncates: bool,
}

impl Average {
    /// V. Division rounds down, so that an entity placed exactly at V is eligible; the 2023 series truncates.
    #[inline]
    pub fn vruntime(self) -> Vruntime {
        if self.weight == 0 {
            return self.v0;
        }
        let biased = self.sum < 0 && !self.truncates;
        let sum = if biased { self.sum.wrapping_sub(self.weight - 1) } else { self.sum };
        self.v0.plus(sum.wrapping_div(self.weight))
    }

    /// `vruntime_eligible`: whether an entity at `v` is owed service, or is owed none and owes none.
    #[inline]
    pub fn vruntime_eligible(self, v: Vruntime) -> bool {
        let key = v.since(self.v0);
        if self.wide {
            return i128::from(self.sum) >= i128::from(key) * i128::from(self.weight);
        }
        self.sum >= key.wrapping_mul(self.weight)
    }
}

/// The sums behind V.
impl CfsRq {
    /// `avg_vruntime_weight`: a weight as it counts in the sums; never below 2.
    #[inline]
    pub(super) fn avg_vruntime_weight(&self, load: LoadWeight) -> i64 {
        (load.weight >> self.averaging.shift).max(2) as i64
    }

    /// The queue's sums with the running entity added, if it is still queued.
    #[inline(always)]
    pub(super) fn average(&self, entities: &Entities) -> Average {
        self.average_with(self.running_entity(entities))
    }

    /// The same where the running entity is at hand.
    #[inline(always)]
    pub(super) fn average_with(&self, running: Option<&Entity>) -> Average {
        let (mut sum, mut weight) = (self.avg_vruntime, self.avg_load);
        if let Some(curr) = running {
            let counted = self.avg_vruntime_weight(curr.h_load);
            sum = sum.wrapping_add(self.key(curr.vruntime).wrapping_mul(counted));
            weight += counted;
        }
        let Averaging { wide, truncates, .. } = self.averaging;
        Average { v0: self.min_vruntime, sum, weight, wide, truncates }
    }

    /// `avg_vruntime_add`: `S += w * (v - v0)`, `W += w` for an entity that enters the tree.
    #[inline(always)]
    pub(super) fn avg_vruntime_add(&mut self, se: &Entity) {
        let weight = self.avg_vruntime_weight(se.h_load);
        self.avg_vruntime = self.avg_vruntime.wrapping_add(self.key(se.vruntime).wrapping_mul(weight));
        if self.averaging.slices {
            self.avg_slice = self.avg_slice.wrapping_add(se.slice.wrapping_mul(weight as u64));
        }
        self.avg_load += weight;
    }

    /// `avg_vruntime_sub`: the reverse, for an entity that leaves the tree.
    #[inline(always)]
    pub(super) fn avg_vruntime_sub(&mut self, se: &Entity) {
        let weight = self.avg_vruntime_weight(se.h_load);
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(self.key(se.vruntime).wrapping_mul(weight));
        if self.averaging.slices {
            self.avg_slice = self.avg_slice.wrapping_sub(se.slice.wrapping_mul(weight as u64));
        }
        self.avg_load -= weight;
    }

    /// `update_zero_vruntime` (`avg_vruntime_update` in older kernels): moves v0 by `delta`, which changes every key
    /// and so the sum.
    #[inline]
    pub(super) fn update_zero_vruntime(&mut self, delta: i64) {
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(self.avg_load.wrapping_mul(delta));
        self.min_vruntime = self.min_vruntime.plus(delta);
    }

    /// `__update_min_vruntime`: moves v0 right to `vruntime`, never left.
    #[inline]
    fn __update_min_vruntime(&mut self, vruntime: Vruntime) {
        let delta = vruntime.since(self.min_vruntime);
        if delta > 0 {
            self.update_zero_vruntime(delta);
        }
    }

    /// `update_min_vruntime`: v0 follows the smallest vruntime of the running and the queued entities, or V where the
    /// version keeps it there.
    #[inline]
    pub(super) fn update_min_vruntime(&mut self, entities: &Entities, config: &KernelConfig) {
        if config.rules.zero == ZeroPoint::Average || config.has(Feature::MinimalVa) {
            return self.zero_to_average(entities);
        }
        let running = self.running(entities).map(|curr| entities[curr].vruntime);
        self.follow_minimum(entities, running, config.rules.tree_key);
    }

    /// The part of `update_min_vruntime` after the running entity's vruntime is known.
    #[inline]
    pub(super) fn follow_minimum(&mut self, entities: &Entities, running: Option<Vruntime>, key: TreeKey) {
        let queued = match key {
            TreeKey::Deadline => self.tree.min_value(&entities.nodes),
            TreeKey::Vruntime => self.tree.first().some().map(|first| entities[first].vruntime),
        };
        match (running, queued) {
            (Some(a), Some(b)) => self.__update_min_vruntime(a.min(b)),
            (Some(v), None) | (None, Some(v)) => self.__update_min_vruntime(v),
            (None, None) => {}
        }
    }

    /// Moves v0 to V.
    #[inline(never)]
    pub(super) fn zero_to_average(&mut self, entities: &Entities) {
        let v = self.average(entities).vruntime();
        self.update_zero_vruntime(v.since(self.min_vruntime));
    }

    /// `avg_vruntime`: V and W. Moves v0 to V where the version does so whenever it computes V.
    #[inline]
    pub(super) fn avg_vruntime(&mut self, entities: &Entities, config: &KernelConfig) -> (Vruntime, i64) {
        let average = self.average(entities);
        let v = average.vruntime();
        if config.rules.zero == ZeroPoint::Average {
            self.update_zero_vruntime(v.since(self.min_vruntime));
        }
        (v, average.weight)
    }
}

/// Eligibility and lag.
impl CfsRq {
    /// `ineligible_vruntime`: where the running entity stops being eligible, just behind the average of the others.
    pub(super) fn ineligible_vruntime(&self) -> Vruntime {
        let others = match self.avg_load {
            0 => 0,
            weight => self.avg_vruntime.div_euclid(weight),
        };
        self.min_vruntime.plus(others + 1)
    }

    /// `entity_eligible`.
    #[inline(always)]
    pub(super) fn entity_eligible(&self, entities: &Entities, id: EntityId) -> bool {
        self.average(entities).vruntime_eligible(entities[id].vruntime)
    }

    /// `update_entity_lag`: saves the service that the entity is owed for its return, over the protection marker.
    /// Whether that lag differs from where the entity stands.
    #[inline(always)]
    pub(super) fn update_entity_lag(&mut self, entities: &mut Entities, config: &KernelConfig, id: EntityId) -> bool {
        let (v, _) = self.avg_vruntime(entities, config);
        let mut vlag = self.entity_lag(entities, config, id, v);
        let se = &mut entities[id];
        if config.rules.delayed_lag == DelayedLag::Heals && se.sched_delayed {
            vlag = vlag.max(se.vlag);
            if config.has(Feature::DelayZero) {
                vlag = vlag.min(0);
            }
        }
        se.vlag = vlag;
        v.plus(vlag.wrapping_neg()) != se.vruntime
    }

    /// `entity_lag`: `V - v` within its bound.
    #[inline(always)]
    pub(super) fn entity_lag(&self, entities: &Entities, config: &KernelConfig, id: EntityId, v: Vruntime) -> i64 {
        let se = &entities[id];
        let limit = self.lag_limit(entities, config, se);
        v.since(se.vruntime).clamp(-limit, limit)
    }

    /// The largest lag that an entity keeps over a sleep, in its virtual time.
    #[inline(always)]
    pub(super) fn lag_limit(&self, entities: &Entities, config: &KernelConfig, se: &Entity) -> i64 {
        let wall = match config.rules.lag_limit {
            LagLimit::OwnSlice => config.tick_nsec().max(2 * se.slice),
            LagLimit::LongestSlice => self.cfs_rq_max_slice(entities) + config.tick_nsec(),
        };
        calc_delta_fair(wall, &se.h_load).min(i64::MAX as u64) as i64
    }

    /// `cfs_rq_max_slice`.
    #[inline(never)]
    fn cfs_rq_max_slice(&self, entities: &Entities) -> Nanos {
        let running = self.running(entities).map_or(0, |curr| entities[curr].slice);
        self.tree.max_slice(&entities.nodes).max(running)
    }

    /// `cfs_rq_min_slice`.
    #[inline]
    pub(super) fn cfs_rq_min_slice(&self, entities: &Entities) -> Nanos {
        let running = self.running(entities).map_or(Nanos::MAX, |curr| entities[curr].slice);
        self.tree.min_slice(&entities.nodes).min(running)
    }
}
