//! EEVDF's virtual time V, eligibility and lag (`avg_vruntime`, `vruntime_eligible`, `entity_lag`).
//!
//! With keys measured from v0 and weights as the version takes them (scaled down up to 6.18, in full from 7.x):
//! `V = v0 + floor(S / W)`, S = sum of key * w, W = sum of w, both over the tree and the running entity;
//! an entity is eligible iff `S >= key * W`, which needs no division; its virtual lag is `V - v`. v0 is min_vruntime, or
//! zero_vruntime, which becomes V whenever V is computed. The 2023 series rounds V towards v0.
//! Simplified: divisors are 64 bits wide where the kernel cuts them to 32 (over 2 million nice-0 tasks on one CPU).

use super::entity::{Entity, EntityId};
use super::{CfsRq, Fair};
use crate::features::Feature;
use crate::weight::{calc_delta_fair, LoadWeight};
use crate::{Averaging, DelayedLag, LagLimit, ZeroPoint};
use schedlab_model::{CpuId, Nanos, TaskId, Vruntime};

/// The sums of one queue with the running entity added: what decides who is eligible now.
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

    /// Whether an entity at `v` is owed service (`vruntime_eligible`).
    #[inline]
    pub fn eligible(self, v: Vruntime) -> bool {
        let key = v.since(self.v0);
        if self.wide {
            return i128::from(self.sum) >= i128::from(key) * i128::from(self.weight);
        }
        self.sum >= key.wrapping_mul(self.weight)
    }
}

impl CfsRq {
    /// A weight as it counts in the sums (`avg_vruntime_weight`); never below 2.
    #[inline]
    pub(super) fn avg_weight(&self, load: LoadWeight) -> i64 {
        (load.weight >> self.averaging.shift).max(2) as i64
    }

    /// The queue's sums with the running entity added, if it is still queued.
    #[inline]
    pub(super) fn average(&self, entities: &[Entity]) -> Average {
        let (mut sum, mut weight) = (self.avg_vruntime, self.avg_load);
        if self.curr.is_some() {
            let curr = &entities[self.curr.index()];
            if curr.on_rq {
                let counted = self.avg_weight(curr.load);
                sum = sum.wrapping_add(self.key(curr.vruntime).wrapping_mul(counted));
                weight += counted;
            }
        }
        let Averaging { wide, truncates, .. } = self.averaging;
        Average { v0: self.min_vruntime, sum, weight, wide, truncates }
    }

    /// `avg_vruntime_add`.
    #[inline]
    pub(super) fn avg_vruntime_add(&mut self, se: &Entity) {
        let weight = self.avg_weight(se.load);
        self.avg_vruntime = self.avg_vruntime.wrapping_add(self.key(se.vruntime).wrapping_mul(weight));
        if self.averaging.slices {
            self.avg_slice = self.avg_slice.wrapping_add(se.slice.wrapping_mul(weight as u64));
        }
        self.avg_load += weight;
    }

    /// `avg_vruntime_sub`.
    #[inline]
    pub(super) fn avg_vruntime_sub(&mut self, se: &Entity) {
        let weight = self.avg_weight(se.load);
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(self.key(se.vruntime).wrapping_mul(weight));
        if self.averaging.slices {
            self.avg_slice = self.avg_slice.wrapping_sub(se.slice.wrapping_mul(weight as u64));
        }
        self.avg_load -= weight;
    }

    /// Moves v0 by `delta`; keys change, so the sum does (`avg_vruntime_update`, `update_zero_vruntime`).
    #[inline]
    pub(super) fn move_zero(&mut self, delta: i64) {
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(self.avg_load.wrapping_mul(delta));
        self.min_vruntime = self.min_vruntime.plus(delta);
    }

    /// Moves v0 right to `vruntime`, never left (`__update_min_vruntime`).
    #[inline]
    pub(super) fn raise_min_vruntime(&mut self, vruntime: Vruntime) {
        let delta = vruntime.since(self.min_vruntime);
        if delta > 0 {
            self.move_zero(delta);
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

    #[inline(always)]
    pub(super) fn entity_eligible(&self, rq: usize, se: EntityId) -> bool {
        self.average(rq).eligible(self.se(se).vruntime)
    }

    /// `task_is_ineligible_on_dst_cpu`: somebody is in the task's group there already, and the task owes service here.
    pub fn task_is_ineligible_on_dst_cpu(&self, task: TaskId, cpu: CpuId) -> bool {
        let there = self.group_rq(self.group_of(task), cpu);
        let id = EntityId::of(task);
        self.config.has(Feature::PlaceLag)
            && there.nr_running > 0
            && !self.entity_eligible(self.se(id).cfs_rq as usize, id)
    }

    /// V and W, and v0 moved to V where the version does so whenever it computes V (`avg_vruntime`).
    #[inline]
    pub(super) fn avg_vruntime_moving(&mut self, rq: usize) -> (Vruntime, i64) {
        let average = self.average(rq);
        let v = average.vruntime();
        if self.rules.zero == ZeroPoint::Average {
            let q = &mut self.rqs[rq];
            q.move_zero(v.since(q.min_vruntime));
        }
        (v, average.weight)
    }

    /// `update_entity_lag`: what the entity is owed, saved for its return. Overwrites the protection marker. Whether the
    /// entity stands elsewhere than that lag says.
    #[inline(always)]
    pub(super) fn update_entity_lag(&mut self, rq: usize, id: EntityId) -> bool {
        let (v, _) = self.avg_vruntime_moving(rq);
        let mut vlag = self.entity_lag(rq, id, v);
        if self.rules.delayed_lag == DelayedLag::Heals && self.se(id).sched_delayed {
            vlag = vlag.max(self.se(id).vlag);
            if self.config.has(Feature::DelayZero) {
                vlag = vlag.min(0);
            }
        }
        let se = self.se_mut(id);
        se.vlag = vlag;
        v.plus(vlag.wrapping_neg()) != se.vruntime
    }

    /// `entity_lag`: V - v within its bound.
    #[inline]
    pub(super) fn entity_lag(&self, rq: usize, id: EntityId, v: Vruntime) -> i64 {
        let limit = self.entity_lag_limit(rq, id);
        v.since(self.se(id).vruntime).clamp(-limit, limit)
    }

    /// The largest lag an entity keeps over a sleep, in its virtual time.
    #[inline(always)]
    pub(super) fn entity_lag_limit(&self, rq: usize, id: EntityId) -> i64 {
        let se = self.se(id);
        let wall = match self.rules.lag_limit {
            LagLimit::OwnSlice => self.tick_nsec.max(2 * se.slice),
            LagLimit::LongestSlice => self.max_slice(rq) + self.tick_nsec,
        };
        calc_delta_fair(wall, se.load).min(i64::MAX as u64) as i64
    }

    /// `cfs_rq_max_slice`.
    #[inline(never)]
    fn max_slice(&self, rq: usize) -> Nanos {
        let running = self.running(rq).map_or(0, |curr| self.se(curr).slice);
        self.rqs[rq].tree.max_slice(&self.nodes).max(running)
    }

    /// `cfs_rq_min_slice`.
    #[inline]
    pub(super) fn min_slice(&self, rq: usize) -> Nanos {
        let running = self.running(rq).map_or(Nanos::MAX, |curr| self.se(curr).slice);
        self.rqs[rq].tree.min_slice(&self.nodes).min(running)
    }
}
