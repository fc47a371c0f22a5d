//! Where an entity enters virtual time (`place_entity`).
//!
//! # CFS (6.1.192)
//!
//! An entity is placed at min_vruntime; after a fork one virtual slice later (START_DEBIT); after a sleep up to
//! sched_latency earlier, or half of that with GENTLE_FAIR_SLEEPERS. Its vruntime never decreases.
//!
//! # EEVDF
//!
//! The entity should have the lag `l` with which it left (PLACE_LAG), that is, be at `V - l`. But its arrival moves V:
//! with the sum of weights `W` before and its own weight `w`, placing it at `V - x` gives the new mean
//! `V' = V - x * w / (W + w)`, so what remains of `x` is
//!
//! ```text
//! l = V' - (V - x) = x - x * w / (W + w) = x * W / (W + w)
//! ```
//!
//! It is therefore placed with `x = l * (W + w) / W` ([`inflate_lag`]). On an empty queue V is the entity's own
//! vruntime, and no lag is kept. The deadline is `v + slice / w`, half a slice for a fork, or the relative deadline
//! that the entity left with. The 2023 series adds one slice to a negative lag if the slice is shorter than average
//! (PLACE_FUDGE), and may place a sleeper half a slice earlier (PLACE_BONUS).

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use crate::features::Feature;
use crate::flags::Enqueue;
use crate::weight::{calc_delta_fair, LoadWeight};
use crate::KernelConfig;
use schedlab_model::{Nanos, Vruntime};

/// A sleep longer than this (104 days) may have let min_vruntime run past the entity by half the number range.
const LONG_SLEEP: Nanos = (1 << 63) / 1024;

impl CfsRq {
    /// `place_entity` of EEVDF; `others` compete here already.
    #[inline]
    pub(super) fn place_entity(
        &mut self,
        entities: &mut Entities,
        config: &KernelConfig,
        id: EntityId,
        flags: Enqueue,
        others: u32,
    ) {
        let (v, queued) = self.avg_vruntime(entities, config);
        let se = &mut entities[id];
        if !se.custom_slice {
            se.slice = config.knobs.base_slice;
        }
        let mut lag = 0;
        if config.has(Feature::PlaceLag) && others > 0 {
            lag = if config.has(Feature::PlaceFudge) { self.fudged_lag(se) } else { se.vlag };
            if lag != 0 {
                let joining = self.avg_vruntime_weight(se.h_load);
                lag = inflate_lag(lag, queued, joining, config.rules.lag_as_sum);
                // The arrival moves V more than half way to the entity; v0 stays near V.
                if config.rules.place_moves_zero && joining > queued.max(1) {
                    self.update_zero_vruntime(lag.wrapping_neg());
                }
            }
        }
        let stale = se.vruntime;
        se.vruntime = v.plus(lag.wrapping_neg());
        if se.rel_deadline && (config.has(Feature::PlaceRelDeadline) || config.rules.keeps_rel_deadline) {
            se.deadline = se.vruntime.plus(se.deadline.0 as i64);
            se.rel_deadline = false;
            return;
        }
        let mut vslice = calc_delta_fair(se.slice, &se.h_load);
        if flags.initial && config.has(Feature::PlaceDeadlineInitial) {
            vslice /= 2;
        }
        se.deadline = se.vruntime.plus(vslice as i64);
        if config.has(Feature::PlaceBonus) && flags.wakeup && !flags.migrated && stale.before(se.vruntime) {
            se.vruntime = stale.max(se.vruntime.plus(-((se.slice / 2) as i64)));
        }
    }

    /// PLACE_FUDGE: an entity whose slice is shorter than the queue's average is forgiven a slice of lag, and keeps no
    /// positive lag.
    #[cold]
    fn fudged_lag(&self, se: &Entity) -> i64 {
        if self.avg_slice > se.slice.wrapping_mul(self.avg_load as u64) {
            se.vlag.wrapping_add(calc_delta_fair(se.slice, &se.h_load) as i64).min(0)
        } else {
            se.vlag
        }
    }

    /// `place_entity` of CFS. `initial`: the entity is a new task, which starts with this debit.
    #[inline]
    pub(super) fn place_entity_cfs(&self, se: &mut Entity, config: &KernelConfig, initial: Option<u64>, now: Nanos) {
        let base = match initial {
            Some(debit) => self.min_vruntime.plus(debit as i64),
            None => self.min_vruntime.plus(-(se.sleeper_credit(config) as i64)),
        };
        let long = config.rules.long_sleeper && se.is_long_sleeper(now);
        se.vruntime = if long { base } else { se.vruntime.max(base) };
    }

    /// CFS: from the scale of this queue to a distance from its minimum, for the time between two queues.
    pub(super) fn make_relative(&self, se: &mut Entity) {
        se.vruntime = relative(se.vruntime, self.min_vruntime);
    }

    /// CFS: from a distance to the scale of this queue.
    #[inline]
    pub(super) fn make_absolute(&self, se: &mut Entity) {
        se.vruntime = self.min_vruntime.plus(se.vruntime.0 as i64);
    }
}

impl Entity {
    /// How far left of min_vruntime a sleeper may come back.
    fn sleeper_credit(&self, config: &KernelConfig) -> Nanos {
        let idle = config.rules.idle_sleeper_credit && self.is_idle();
        let credit = if idle { config.knobs.min_granularity } else { config.knobs.latency };
        credit >> u32::from(config.has(Feature::GentleFairSleepers))
    }

    /// Whether vruntimes can no longer be compared after this sleep (`entity_is_long_sleeper`).
    fn is_long_sleeper(&self, now: Nanos) -> bool {
        self.exec_start != 0 && now.saturating_sub(self.exec_start) > LONG_SLEEP
    }
}

/// The lag to place with so that `lag` remains once the entity's weight counts: `lag * (W + w) / W`, towards zero. The
/// product can overflow with full weights, that of `lag + lag * w / W` (`as_sum`) far later.
#[inline]
fn inflate_lag(lag: i64, queued: i64, joining: i64, as_sum: bool) -> i64 {
    let divided = |product: i64| product.wrapping_div(queued.max(1));
    if as_sum {
        lag.wrapping_add(divided(lag.wrapping_mul(joining)))
    } else {
        divided(lag.wrapping_mul(queued + joining))
    }
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
    use super::inflate_lag;

    #[test]
    fn inflation_truncates_toward_zero() {
        for (lag, queued, joining, placed) in [
            (1_000_000, 2048, 1024, 1_500_000),
            (-3_000_001, 2048, 1024, -4_500_001),
            (3_000_001, 2048, 1024, 4_500_001),
            (5, 0, 1024, 5120),
        ] {
            assert_eq!(inflate_lag(lag, queued, joining, false), placed);
            assert!(queued == 0 || inflate_lag(lag, queued, joining, true) == placed);
        }
        // Sixteen tasks of nice -20 are queued, one of nice 19 joins with the lag of a slice of 100 ms.
        let (lag, queued, joining) = (6_826_666_666, 16 * (88761 << 10), 15 << 10);
        assert_eq!(inflate_lag(lag, queued, joining, true), lag + 72_103);
        assert_ne!(inflate_lag(lag, queued, joining, false), lag + 72_103);
    }
}
