//! EEVDF's virtual time V, eligibility and lag (`avg_vruntime`, `vruntime_eligible`, `entity_lag`).
//!
//! Follows 6.12.0. With keys measured from v0 (`min_vruntime`) and weights scaled down:
//! `V = v0 + floor(S / W)`, S = sum of key * w, W = sum of w, both over the tree and the running entity;
//! an entity is eligible iff `S >= key * W`, which needs no division; its virtual lag is `V - v`.
//! Simplified: divisors are 64 bits wide where the kernel cuts them to 32 (over 2 million nice-0 tasks on one CPU).

use super::entity::{Entity, EntityId};
use super::{CfsRq, Fair};
use crate::weight::calc_delta_fair;
use schedlab_model::{Nanos, Vruntime};

/// The sums of one queue with the running entity added: what decides who is eligible now.
#[derive(Clone, Copy)]
pub(super) struct Average {
    v0: Vruntime,
    sum: i64,
    weight: i64,
}

impl Average {
    /// V. Division rounds down: an entity placed exactly at V is eligible.
    #[inline]
    pub fn vruntime(self) -> Vruntime {
        if self.weight == 0 {
            return self.v0;
        }
        let biased = if self.sum < 0 { self.sum.wrapping_sub(self.weight - 1) } else { self.sum };
        self.v0.plus(biased.wrapping_div(self.weight))
    }

    /// Whether an entity at `v` is owed service (`vruntime_eligible`).
    #[inline]
    pub fn eligible(self, v: Vruntime) -> bool {
        self.sum >= v.since(self.v0).wrapping_mul(self.weight)
    }

    /// W.
    #[inline]
    pub fn weight(self) -> i64 {
        self.weight
    }
}

impl CfsRq {
    /// The queue's sums with the running entity added, if it is still queued.
    #[inline]
    pub(super) fn average(&self, entities: &[Entity]) -> Average {
        let (mut sum, mut weight) = (self.avg_vruntime, self.avg_load);
        if self.curr.is_some() {
            let curr = &entities[self.curr.index()];
            if curr.on_rq {
                let scaled = curr.load.scaled() as i64;
                sum = sum.wrapping_add(self.key(curr.vruntime).wrapping_mul(scaled));
                weight += scaled;
            }
        }
        Average { v0: self.min_vruntime, sum, weight }
    }

    /// `avg_vruntime_add`.
    #[inline]
    pub(super) fn avg_vruntime_add(&mut self, se: &Entity) {
        let weight = se.load.scaled() as i64;
        self.avg_vruntime = self.avg_vruntime.wrapping_add(self.key(se.vruntime).wrapping_mul(weight));
        self.avg_load += weight;
    }

    /// `avg_vruntime_sub`.
    #[inline]
    pub(super) fn avg_vruntime_sub(&mut self, se: &Entity) {
        let weight = se.load.scaled() as i64;
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(self.key(se.vruntime).wrapping_mul(weight));
        self.avg_load -= weight;
    }

    /// Moves v0 right to `vruntime`, never left; keys shrink, so the sum does (`__update_min_vruntime`).
    #[inline]
    pub(super) fn raise_min_vruntime(&mut self, vruntime: Vruntime) {
        let delta = vruntime.since(self.min_vruntime);
        if delta > 0 {
            self.avg_vruntime = self.avg_vruntime.wrapping_sub(self.avg_load.wrapping_mul(delta));
            self.min_vruntime = vruntime;
        }
    }
}

impl Fair {
    /// [`CfsRq::average`].
    #[inline]
    pub(super) fn average(&self, rq: usize) -> Average {
        self.rqs[rq].average(&self.entities)
    }

    /// `curr`, if it is still queued.
    #[inline]
    pub(super) fn running(&self, rq: usize) -> Option<EntityId> {
        let curr = self.rqs[rq].curr;
        (curr.is_some() && self.se(curr).on_rq).then_some(curr)
    }

    #[inline]
    pub(super) fn entity_eligible(&self, rq: usize, se: EntityId) -> bool {
        self.average(rq).eligible(self.se(se).vruntime)
    }

    /// `update_entity_lag`: what the entity is owed, saved for its return. Overwrites the protection marker.
    #[inline]
    pub(super) fn update_entity_lag(&mut self, rq: usize, se: EntityId) {
        let v = self.average(rq).vruntime();
        let tick = self.tick_nsec;
        let se = self.se_mut(se);
        se.vlag = entity_lag(v, se, tick);
    }
}

/// `entity_lag`: V - v, clamped to twice the slice or one tick, whichever is longer.
#[inline]
pub(super) fn entity_lag(v: Vruntime, se: &Entity, tick: Nanos) -> i64 {
    let limit = lag_limit(se, tick);
    v.since(se.vruntime).clamp(-limit, limit)
}

/// The largest lag an entity keeps over a sleep, in its virtual time.
#[inline]
pub(super) fn lag_limit(se: &Entity, tick: Nanos) -> i64 {
    calc_delta_fair(tick.max(2 * se.slice), se.load).min(i64::MAX as u64) as i64
}
