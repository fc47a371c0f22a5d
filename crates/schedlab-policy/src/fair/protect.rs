//! How long the running entity is safe from an earlier deadline (RUN_TO_PARITY), and what breaks that.
//!
//! 6.6 to 6.12: a marker, `vlag == deadline`, set at the pick: until parity or a new deadline. 6.18 and later: `vprot`,
//! `v + min(slice of those who wait, own slice) / w` at the pick, at most the deadline; with RUN_TO_PARITY off,
//! the unscaled base slice takes the place of the others' slices. In 6.18 `vprot` lies where the lag does: what saves
//! a lag while the entity runs, as a new weight does, ends the protection.

use super::entity::{Entity, EntityId};
use super::Fair;
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use crate::Protection;
use schedlab_model::Vruntime;

impl Fair {
    /// Whether the pick keeps the running entity while it is eligible.
    #[inline]
    pub(super) fn is_protected(&self, curr: &Entity) -> bool {
        match self.rules.protection {
            Protection::None => false,
            Protection::Marker => self.config.has(Feature::RunToParity) && curr.marked(),
            Protection::Vprot { in_vlag, .. } => curr.before_vprot(in_vlag),
        }
    }

    /// `set_protect_slice`, as the entity gets the CPU; `first`: it was picked, not merely requeued.
    #[inline]
    pub(super) fn set_protect_slice(&mut self, rq: usize, id: EntityId, first: bool) {
        match self.rules.protection {
            Protection::None => {}
            Protection::Marker => self.se_mut(id).mark(),
            Protection::Vprot { renewed_by_requeue, .. } if first || renewed_by_requeue => self.set_vprot(rq, id),
            Protection::Vprot { .. } => {}
        }
    }

    /// `vprot` of the running entity, where the row keeps it.
    #[must_use]
    pub fn vprot(&self, se: &Entity) -> Vruntime {
        se.protected_until(self.vprot_in_vlag())
    }

    #[inline]
    pub(super) fn vprot_in_vlag(&self) -> bool {
        matches!(self.rules.protection, Protection::Vprot { in_vlag: true, .. })
    }

    fn set_vprot(&mut self, rq: usize, id: EntityId) {
        let others = match self.config.has(Feature::RunToParity) {
            true => self.min_slice(rq),
            false => self.config.normalized_base_slice(),
        };
        let in_vlag = self.vprot_in_vlag();
        let se = self.se_mut(id);
        let mut end = se.deadline;
        if others < se.slice {
            end = end.min(se.vruntime.plus(calc_delta_fair(others, se.load) as i64));
        }
        se.protect_until(end, in_vlag);
    }

    /// `update_protect_slice`: a wakee was kept off; the shortest slice on the queue bounds how long.
    #[inline]
    pub(super) fn update_protect_slice(&mut self, rq: usize, curr: EntityId) {
        let (shortest, in_vlag) = (self.min_slice(rq), self.vprot_in_vlag());
        let se = self.se_mut(curr);
        let end = se.vruntime.plus(calc_delta_fair(shortest, se.load) as i64);
        se.protect_until(se.protected_until(in_vlag).min(end), in_vlag);
    }

    /// `cancel_protect_slice`.
    #[inline]
    pub(super) fn cancel_protect_slice(&mut self, curr: EntityId) {
        let (vprot, in_vlag) = (matches!(self.rules.protection, Protection::Vprot { .. }), self.vprot_in_vlag());
        let se = self.se_mut(curr);
        if vprot {
            se.protect_until(se.protected_until(in_vlag).min(se.vruntime), in_vlag);
        } else if se.marked() {
            se.vlag = se.vlag.wrapping_add(1);
        }
    }
}

impl Entity {
    #[inline]
    pub(super) fn before_vprot(&self, in_vlag: bool) -> bool {
        self.vruntime.before(self.protected_until(in_vlag))
    }

    /// `vprot`.
    #[inline]
    pub(super) fn protected_until(&self, in_vlag: bool) -> Vruntime {
        if in_vlag {
            Vruntime(self.vlag as u64)
        } else {
            self.vprot
        }
    }

    #[inline]
    pub(super) fn protect_until(&mut self, end: Vruntime, in_vlag: bool) {
        if in_vlag {
            self.vlag = end.0 as i64;
        } else {
            self.vprot = end;
        }
    }
}
