//! The effect of time on the CPU on one queue: vruntime, deadline and v0 (the middle of `update_curr`).
//!
//! CFS: `v += delta * 1024 / w`, then min_vruntime. EEVDF: also a new deadline when the old one is reached.

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use super::protect_slice::vprot_in_vlag;
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use crate::{KernelConfig, Protection, TreeKey, ZeroPoint};
use schedlab_model::Nanos;

/// What a charge ended, as far as the running entity is concerned.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    /// The slice: the request is served and a new one begins.
    pub slice: bool,
    /// The protection.
    pub protection: bool,
}

impl CfsRq {
    /// Charges the running entity for `delta`, up to `now`.
    #[inline(always)]
    pub(super) fn charge(
        &mut self,
        entities: &mut Entities,
        config: &KernelConfig,
        curr: EntityId,
        delta: Nanos,
        now: Nanos,
    ) -> Ended {
        let se = &mut entities[curr];
        se.update_se(delta, now);
        se.vruntime = se.vruntime.plus(calc_delta_fair(delta, &se.h_load) as i64);
        let running = se.on_rq.then_some(se.vruntime);
        if !config.is_eevdf() {
            self.follow_minimum(entities, running, TreeKey::Vruntime);
            return Ended { slice: false, protection: false };
        }
        let slice = se.update_deadline(config.knobs.base_slice);
        let protection = match config.rules.protection {
            Protection::None => false,
            Protection::Marker => !se.has_marker(),
            Protection::Vprot { .. } => !se.before_vprot(vprot_in_vlag(config)),
        };
        if config.rules.zero == ZeroPoint::Minimum && !config.has(Feature::MinimalVa) {
            self.follow_minimum(entities, running, config.rules.tree_key);
        } else if config.rules.zero == ZeroPoint::Minimum || slice && config.rules.zero == ZeroPoint::Average {
            self.zero_to_average(entities);
        }
        Ended { slice, protection }
    }
}

impl Entity {
    /// `update_se`: the entity ran for `delta`, up to `now`.
    #[inline]
    pub(super) fn update_se(&mut self, delta: Nanos, now: Nanos) {
        self.exec_start = now;
        self.sum_exec_runtime += delta;
    }

    /// `update_deadline`: a new request once the old one is served. Whether it was.
    #[inline]
    pub(super) fn update_deadline(&mut self, base_slice: Nanos) -> bool {
        if self.vruntime.before(self.deadline) {
            return false;
        }
        if !self.custom_slice {
            self.slice = base_slice;
        }
        self.deadline = self.vruntime.plus(calc_delta_fair(self.slice, &self.h_load) as i64);
        true
    }
}
