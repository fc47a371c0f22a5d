//! Where an entity enters virtual time (`place_entity`).
//!
//! CFS 6.1.192: at min_vruntime, one virtual slice later for a fork (START_DEBIT), up to sched_latency earlier for a
//! sleeper (half of it with GENTLE_FAIR_SLEEPERS), never left of where it was.
//! EEVDF: at `V - lag`, the saved lag scaled by `(W + w) / W` because joining moves V towards the entity;
//! deadline `v + slice / w`, half a slice for a fork, or the relative deadline it left with. The 2023 series forgives a
//! shorter than average slice one slice of lag (PLACE_FUDGE) and may move a sleeper left by half a slice (PLACE_BONUS).

use super::entity::{Entity, EntityId};
use super::{CfsRq, Enqueue, Fair};
use crate::features::Feature;
use crate::weight::{calc_delta_fair, LoadWeight};
use schedlab_model::{Nanos, Vruntime};

/// A sleep longer than this (104 days) may have let min_vruntime run past the entity by half the number range.
const LONG_SLEEP: Nanos = (1 << 63) / 1024;

impl Fair {
    /// `place_entity` of EEVDF.
    #[inline]
    pub(super) fn place_entity_eevdf(&mut self, rq: usize, id: EntityId, flags: Enqueue) {
        let (v, queued) = self.avg_vruntime_moving(rq);
        let (features, base_slice) = (self.config.features, self.config.knobs.base_slice);
        let (keeps_deadline, moves_zero) = (self.rules.keeps_rel_deadline, self.rules.place_moves_zero);
        let (q, se) = (&mut self.rqs[rq], &mut self.entities[id.index()]);
        if !se.custom_slice {
            se.slice = base_slice;
        }
        let mut lag = 0;
        if features.has(Feature::PlaceLag) && q.nr_running > 0 {
            lag = if features.has(Feature::PlaceFudge) { fudged(q, se) } else { se.vlag };
            if lag != 0 {
                let joining = q.avg_weight(se.load);
                lag = inflate(lag, queued, joining);
                // Joining moves V more than half way; v0 stays near it.
                if moves_zero && joining > queued.max(1) {
                    q.move_zero(lag.wrapping_neg());
                }
            }
        }
        let stale = se.vruntime;
        se.vruntime = v.plus(lag.wrapping_neg());
        if se.rel_deadline && (features.has(Feature::PlaceRelDeadline) || keeps_deadline) {
            se.deadline = se.vruntime.plus(se.deadline.0 as i64);
            se.rel_deadline = false;
            return;
        }
        let mut vslice = calc_delta_fair(se.slice, se.load);
        if flags.initial && features.has(Feature::PlaceDeadlineInitial) {
            vslice /= 2;
        }
        se.deadline = se.vruntime.plus(vslice as i64);
        if features.has(Feature::PlaceBonus) && flags.wakeup && !flags.migrated && stale.before(se.vruntime) {
            se.vruntime = stale.max(se.vruntime.plus(-((se.slice / 2) as i64)));
        }
    }

    /// `place_entity` of CFS.
    #[inline]
    pub(super) fn place_entity_cfs(&mut self, rq: usize, id: EntityId, initial: bool, now: Nanos) {
        let mut base = self.rqs[rq].min_vruntime;
        if !initial {
            base = base.plus(-(self.sleeper_credit(id) as i64));
        } else if self.config.has(Feature::StartDebit) {
            base = base.plus(self.sched_vslice(rq, id) as i64);
        }
        let long = self.rules.long_sleeper && self.is_long_sleeper(id, now);
        let se = self.se_mut(id);
        se.vruntime = if long { base } else { se.vruntime.max(base) };
    }

    /// How far left of min_vruntime a sleeper may come back.
    fn sleeper_credit(&self, id: EntityId) -> Nanos {
        let knobs = &self.config.knobs;
        let idle = self.rules.idle_sleeper_credit && self.se(id).is_idle();
        let credit = if idle { knobs.min_granularity } else { knobs.latency };
        credit >> u32::from(self.config.has(Feature::GentleFairSleepers))
    }

    /// `entity_is_long_sleeper`.
    fn is_long_sleeper(&self, id: EntityId, now: Nanos) -> bool {
        let exec_start = self.se(id).exec_start;
        exec_start != 0 && now.saturating_sub(exec_start) > LONG_SLEEP
    }
}

/// PLACE_FUDGE: an entity whose slice is shorter than the queue's average is forgiven a slice of lag, and brings no credit.
#[cold]
fn fudged(q: &CfsRq, se: &Entity) -> i64 {
    if q.avg_slice > se.slice.wrapping_mul(q.avg_load as u64) {
        se.vlag.wrapping_add(calc_delta_fair(se.slice, se.load) as i64).min(0)
    } else {
        se.vlag
    }
}

/// The lag to place with so that `lag` remains once the entity's weight counts: `lag * (W + w) / W`, towards zero.
#[inline]
fn inflate(lag: i64, queued: i64, joining: i64) -> i64 {
    lag.wrapping_mul(queued + joining).wrapping_div(queued.max(1))
}

/// A span of virtual time that stays the same service under another weight: `span * w / w'`, towards zero.
#[inline]
pub(super) fn rescaled(span: i64, old: LoadWeight, new: LoadWeight) -> i64 {
    span.wrapping_mul(old.weight as i64).wrapping_div(new.weight.max(1) as i64)
}

/// A point in virtual time as distance from another, kept in the same field (`deadline` while `rel_deadline`).
#[inline]
pub(super) fn relative(to: Vruntime, from: Vruntime) -> Vruntime {
    Vruntime(to.since(from) as u64)
}

#[cfg(test)]
mod tests {
    use super::inflate;

    #[test]
    fn inflation_truncates_toward_zero() {
        for (lag, queued, joining, placed) in [
            (1_000_000, 2048, 1024, 1_500_000),
            (-3_000_001, 2048, 1024, -4_500_001),
            (3_000_001, 2048, 1024, 4_500_001),
            (5, 0, 1024, 5120),
        ] {
            assert_eq!(inflate(lag, queued, joining), placed);
        }
    }
}
