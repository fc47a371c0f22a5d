//! How long the running entity is protected from an earlier deadline (RUN_TO_PARITY), and what ends the protection
//! (`set_protect_slice`, `update_protect_slice`, `cancel_protect_slice`).
//!
//! 6.6 to 6.12: a marker, `vlag == deadline`, set at the pick: until parity or a new deadline. 6.18 and later: `vprot`,
//! `v + min(slices of the waiting entities, own slice) / w` at the pick, at most the deadline; with RUN_TO_PARITY off,
//! the unscaled base slice takes the place of the other entities' slices. In 6.18 `vprot` shares its storage with the
//! lag: saving a lag while the entity runs, as a new weight does, ends the protection. 7.3 with PREEMPT_SHORT: if a
//! shorter slice waits, until the entity is no longer eligible.

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use crate::{KernelConfig, Protection};
use schedlab_model::Vruntime;

impl CfsRq {
    /// `set_protect_slice`, as the entity gets the CPU; `first`: it was picked, not merely requeued.
    #[inline]
    pub(super) fn set_protect_slice(&self, entities: &mut Entities, config: &KernelConfig, id: EntityId, first: bool) {
        match config.rules.protection {
            Protection::None => {}
            Protection::Marker => entities[id].set_marker(),
            Protection::Vprot { renewed_by_requeue, .. } if first || renewed_by_requeue => {
                self.set_vprot(entities, config, id);
            }
            Protection::Vprot { .. } => {}
        }
    }

    fn set_vprot(&self, entities: &mut Entities, config: &KernelConfig, id: EntityId) {
        let others = match config.has(Feature::RunToParity) {
            true => self.cfs_rq_min_slice(entities),
            false => config.normalized_base_slice(),
        };
        let until_ineligible = config.rules.protects_until_ineligible && config.has(Feature::PreemptShort);
        let se = &mut entities[id];
        let mut end = se.deadline;
        if others < se.slice {
            let shorter = match until_ineligible {
                true => self.ineligible_vruntime(),
                false => se.vruntime.plus(calc_delta_fair(others, &se.h_load) as i64),
            };
            end = end.min(shorter);
        }
        se.set_vprot(end, vprot_in_vlag(config));
    }

    /// `update_protect_slice`: a woken entity did not preempt; the shortest slice on the queue bounds the protection.
    #[inline]
    pub(super) fn update_protect_slice(&mut self, entities: &mut Entities, config: &KernelConfig, curr: EntityId) {
        let (shortest, in_vlag) = (self.cfs_rq_min_slice(entities), vprot_in_vlag(config));
        let mut begin = entities[curr].vruntime;
        if config.rules.protection_from_average {
            begin = begin.min(self.avg_vruntime(entities, config).0);
        }
        let se = &mut entities[curr];
        let end = begin.plus(calc_delta_fair(shortest, &se.h_load) as i64);
        se.set_vprot(se.vprot_in(in_vlag).min(end), in_vlag);
    }
}

/// Whether `vprot` is kept in the field of the lag.
#[inline]
pub(super) fn vprot_in_vlag(config: &KernelConfig) -> bool {
    matches!(config.rules.protection, Protection::Vprot { in_vlag: true, .. })
}

impl Entity {
    /// `protect_slice`: whether the pick keeps the running entity while it is eligible.
    #[inline(always)]
    pub(super) fn protect_slice(&self, config: &KernelConfig) -> bool {
        match config.rules.protection {
            Protection::None => false,
            Protection::Marker => config.has(Feature::RunToParity) && self.has_marker(),
            Protection::Vprot { in_vlag, .. } => self.before_vprot(in_vlag),
        }
    }

    /// `cancel_protect_slice`.
    #[inline]
    pub(super) fn cancel_protect_slice(&mut self, config: &KernelConfig) {
        let (vprot, in_vlag) = (matches!(config.rules.protection, Protection::Vprot { .. }), vprot_in_vlag(config));
        if vprot {
            self.set_vprot(self.vprot_in(in_vlag).min(self.vruntime), in_vlag);
        } else if self.has_marker() {
            self.vlag = self.vlag.wrapping_add(1);
        }
    }

    /// Whether the marker of the running entity is intact (up to 6.12).
    #[inline]
    pub(super) fn has_marker(&self) -> bool {
        self.vlag as u64 == self.deadline.0
    }

    #[inline]
    fn set_marker(&mut self) {
        self.vlag = self.deadline.0 as i64;
    }

    #[inline]
    pub(super) fn before_vprot(&self, in_vlag: bool) -> bool {
        self.vruntime.before(self.vprot_in(in_vlag))
    }

    /// The end of the protection (`vprot`), wherever the version keeps it.
    #[inline]
    pub(super) fn vprot_in(&self, in_vlag: bool) -> Vruntime {
        if in_vlag {
            Vruntime(self.vlag as u64)
        } else {
            self.vprot
        }
    }

    #[inline]
    pub(super) fn set_vprot(&mut self, end: Vruntime, in_vlag: bool) {
        if in_vlag {
            self.vlag = end.0 as i64;
        } else {
            self.vprot = end;
        }
    }
}
