//! How long the running entity is safe from an earlier deadline (RUN_TO_PARITY), and what breaks that.
//!
//! 6.6 to 6.12: a marker, `vlag == deadline`, set at the pick: until parity or a new deadline. 6.18 and later: `vprot`,
//! `v + min(slice of those who wait, own slice) / w` at the pick, at most the deadline; with RUN_TO_PARITY off,
//! the unscaled base slice takes the place of the others' slices.

use super::entity::{Entity, EntityId};
use super::Fair;
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use crate::Protection;

impl Fair {
    /// Whether the pick keeps the running entity while it is eligible.
    #[inline]
    pub(super) fn is_protected(&self, curr: &Entity) -> bool {
        match self.rules.protection {
            Protection::None => false,
            Protection::Marker => self.config.has(Feature::RunToParity) && curr.marked(),
            Protection::Vprot { .. } => curr.before_vprot(),
        }
    }

    /// `set_protect_slice`, as the entity gets the CPU; `first`: it was picked, not merely requeued.
    #[inline]
    pub(super) fn set_protect_slice(&mut self, rq: usize, id: EntityId, first: bool) {
        match self.rules.protection {
            Protection::None => {}
            Protection::Marker => self.se_mut(id).mark(),
            Protection::Vprot { renewed_by_requeue } if first || renewed_by_requeue => self.set_vprot(rq, id),
            Protection::Vprot { .. } => {}
        }
    }

    fn set_vprot(&mut self, rq: usize, id: EntityId) {
        let others = match self.config.has(Feature::RunToParity) {
            true => self.min_slice(rq),
            false => self.config.normalized_base_slice(),
        };
        let se = self.se_mut(id);
        se.vprot = se.deadline;
        if others < se.slice {
            se.vprot = se.vprot.min(se.vruntime.plus(calc_delta_fair(others, se.load) as i64));
        }
    }

    /// `update_protect_slice`: a wakee was kept off; the shortest slice on the queue bounds how long.
    #[inline]
    pub(super) fn update_protect_slice(&mut self, rq: usize, curr: EntityId) {
        let shortest = self.min_slice(rq);
        let se = self.se_mut(curr);
        se.vprot = se.vprot.min(se.vruntime.plus(calc_delta_fair(shortest, se.load) as i64));
    }

    /// `cancel_protect_slice`.
    #[inline]
    pub(super) fn cancel_protect_slice(&mut self, curr: EntityId) {
        let vprot = matches!(self.rules.protection, Protection::Vprot { .. });
        let se = self.se_mut(curr);
        if vprot {
            se.vprot = se.vprot.min(se.vruntime);
        } else if se.marked() {
            se.vlag = se.vlag.wrapping_add(1);
        }
    }
}

impl Entity {
    #[inline]
    pub(super) fn before_vprot(&self) -> bool {
        self.vruntime.before(self.vprot)
    }
}
