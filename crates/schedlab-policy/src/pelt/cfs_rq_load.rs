//! A queue's averages, and the attach and detach of tasks (`update_cfs_rq_load_avg`, `attach_entity_load_avg`,
//! `detach_entity_load_avg`, `remove_entity_load_avg`, `enqueue_load_avg`).
//!
//! A queue's averages include tasks that sleep there. If a task moves, its part is subtracted: at once if the queue's
//! lock is held (it was queued), or by a record ([`Removed`]) at the queue's next update (it slept).

use super::sched_avg::{SchedAvg, State};
use super::series::CAPACITY_SHIFT;
use super::sum_floor::SumFloor;
use crate::pelt::signals::Signals;
use crate::weight::scale_load_down;
use schedlab_model::Nanos;

/// Load of sleepers that left since the queue's last update (`cfs_rq->removed`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Removed {
    /// How many.
    pub nr: u32,
    /// Their load averages.
    pub load_avg: u64,
    /// Their runnable averages (5.2: their unweighted load sums).
    pub runnable_avg: u64,
    /// Their utilisation.
    pub util_avg: u64,
}

/// The load tracking of a `cfs_rq`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct QueueLoad {
    /// Averages.
    pub avg: SchedAvg,
    /// `runnable_weight` of the queue (5.2): the sum of its queued entities' runnable weights, at full resolution.
    pub runnable_weight: u64,
    /// Sleepers that left.
    pub removed: Removed,
    /// Something below changed by attach or detach that the group's entity must follow (`propagate`).
    pub propagate: bool,
    /// The load sum that came or went that way.
    pub prop_runnable_sum: i64,
    /// Its part of `tg->load_avg`, as last reported.
    pub tg_load_avg_contrib: u64,
    /// The same of its runnable signal.
    pub tg_runnable_avg_contrib: u64,
    /// When that was.
    pub last_update_tg_load_avg: Nanos,
    /// Its part of its CPU's load, as computed in jiffy `last_h_load_update`.
    pub h_load: u64,
    /// See `h_load`; 0: never.
    pub last_h_load_update: u64,
}

impl QueueLoad {
    /// `update_cfs_rq_load_avg`: `weight` and `runnable` are the queue's, `running` whether it has a current entity.
    /// Whether the averages changed.
    #[inline(always)]
    pub fn update_cfs_rq_load_avg(
        &mut self,
        now: Nanos,
        weight: u64,
        runnable: u64,
        running: bool,
        signals: &Signals,
    ) -> bool {
        let runnable = match signals.runnable_load {
            true => scale_load_down(self.runnable_weight),
            false => runnable << CAPACITY_SHIFT,
        };
        let state = State { load: weight, runnable, running };
        if self.removed.nr == 0 && self.avg.add_within_segment(now, state) {
            return false;
        }
        self.end_segment(now, weight, runnable, running, signals)
    }

    /// The same where load was removed or a segment ends.
    #[inline(never)]
    fn end_segment(&mut self, now: Nanos, weight: u64, runnable: u64, running: bool, signals: &Signals) -> bool {
        let removed = self.removed.nr > 0;
        if removed {
            self.take_removed(signals);
        }
        let changed = self.avg.___update_load_sum(now, State { load: weight, runnable, running });
        if changed {
            self.avg.___update_load_avg(1, 1, signals);
        }
        removed || changed
    }

    /// Whether [`QueueLoad::update_cfs_rq_load_avg`] would do anything.
    #[inline]
    #[must_use]
    pub fn is_due(&self, now: Nanos) -> bool {
        self.avg.is_due(now) || self.removed.nr > 0
    }

    /// `cfs_rq_is_decayed`: no load is left, and nothing is to be propagated.
    #[must_use]
    pub fn cfs_rq_is_decayed(&self) -> bool {
        self.avg.load_avg_is_decayed() && self.removed.nr == 0 && !self.propagate
    }

    #[inline(never)]
    fn take_removed(&mut self, signals: &Signals) {
        let removed = std::mem::take(&mut self.removed);
        let divider = self.avg.get_pelt_divider();
        self.sub_load(removed.load_avg, removed.load_avg.wrapping_mul(divider), signals.floor);
        let floor = if signals.removed_util_raised { signals.floor.at_least() } else { signals.floor };
        self.sub_util(removed.util_avg, removed.util_avg * divider, floor);
        if signals.runnable_load {
            return self.add_tg_cfs_propagate(-(removed.runnable_avg as i64));
        }
        self.sub_runnable(removed.runnable_avg, removed.runnable_avg * divider, signals.floor);
        self.add_tg_cfs_propagate((-((removed.runnable_avg * divider) as i64)) >> CAPACITY_SHIFT);
    }

    /// `attach_entity_load_avg`: the entity, of this weight, joins with the averages it brings; its sums are made from
    /// them for this queue's position in the segment. An entity whose weight differs from attach to attach may get a
    /// load that exceeds 64 bits; it wraps, as in the kernel.
    pub fn attach_entity_load_avg(&mut self, se: &mut SchedAvg, weight: u64, signals: &Signals) {
        let divider = self.avg.get_pelt_divider();
        se.last_update_time = self.avg.last_update_time;
        se.period_contrib = self.avg.period_contrib;
        se.util_sum = (u64::from(se.util_avg) * divider) as u32;
        let load_sum = se.load_avg.wrapping_mul(divider);
        se.load_sum = match signals.attach_keeps_load_sum && weight >= load_sum {
            true => 1,
            false => load_sum / weight.max(1),
        };
        if signals.runnable_load {
            se.runnable_sum = se.load_sum;
        } else {
            se.runnable_sum = se.runnable_avg.wrapping_mul(divider);
            self.avg.runnable_avg += se.runnable_avg;
            self.avg.runnable_sum = self.avg.runnable_sum.wrapping_add(se.runnable_sum);
        }
        self.enqueue_load_avg(se, weight);
        self.avg.util_avg += se.util_avg;
        // 32 bits, as in the kernel: some ninety busy tasks that come at once wrap it around.
        self.avg.util_sum = self.avg.util_sum.wrapping_add(se.util_sum);
        self.add_tg_cfs_propagate(se.load_sum as i64);
    }

    /// `detach_entity_load_avg`: an entity whose averages are up to date leaves.
    pub fn detach_entity_load_avg(&mut self, se: &SchedAvg, weight: u64, signals: &Signals) {
        self.dequeue_load_avg(se, weight, signals);
        self.sub_util(u64::from(se.util_avg), u64::from(se.util_sum), signals.floor);
        if !signals.runnable_load {
            self.sub_runnable(se.runnable_avg, se.runnable_sum, signals.floor);
        }
        self.add_tg_cfs_propagate(-(se.load_sum as i64));
    }

    /// `remove_entity_load_avg` of an entity that sleeps: it decays up to the last update of the queue, and is added to
    /// what the queue has to remove.
    pub fn remove_entity_load_avg(&mut self, se: &mut SchedAvg, weight: u64, signals: &Signals) {
        se.__update_load_avg_blocked_se(self.avg.last_update_time, weight, signals);
        let removed = &mut self.removed;
        removed.nr += 1;
        removed.util_avg += u64::from(se.util_avg);
        removed.load_avg = removed.load_avg.wrapping_add(se.load_avg);
        removed.runnable_avg += if signals.runnable_load { se.load_sum } else { se.runnable_avg };
    }

    /// `enqueue_load_avg`: around a change of weight, after it.
    pub fn enqueue_load_avg(&mut self, se: &SchedAvg, weight: u64) {
        self.avg.load_avg = self.avg.load_avg.wrapping_add(se.load_avg);
        self.avg.load_sum = self.avg.load_sum.wrapping_add(weight.wrapping_mul(se.load_sum));
    }

    /// `dequeue_load_avg`: around a change of weight, before it.
    pub fn dequeue_load_avg(&mut self, se: &SchedAvg, weight: u64, signals: &Signals) {
        let floor = if signals.dequeue_keeps_load_sum { signals.floor } else { SumFloor::None };
        self.sub_load(se.load_avg, weight.wrapping_mul(se.load_sum), floor);
    }

    /// `enqueue_runnable_load_avg` (5.2) of an entity with this runnable weight.
    #[inline]
    pub fn enqueue_runnable_load_avg(&mut self, se: &SchedAvg, runnable_weight: u64) {
        self.runnable_weight += runnable_weight;
        let sum = scale_load_down(runnable_weight).wrapping_mul(se.runnable_sum);
        self.avg.runnable_avg += se.runnable_avg;
        self.avg.runnable_sum = self.avg.runnable_sum.wrapping_add(sum);
    }

    /// `dequeue_runnable_load_avg` (5.2).
    #[inline]
    pub fn dequeue_runnable_load_avg(&mut self, se: &SchedAvg, runnable_weight: u64) {
        self.runnable_weight = self.runnable_weight.saturating_sub(runnable_weight);
        let sum = scale_load_down(runnable_weight).wrapping_mul(se.runnable_sum);
        let avg = &mut self.avg;
        avg.runnable_avg = avg.runnable_avg.saturating_sub(se.runnable_avg);
        avg.runnable_sum = avg.runnable_sum.saturating_sub(sum);
    }

    /// `add_tg_cfs_propagate`.
    #[inline]
    pub fn add_tg_cfs_propagate(&mut self, runnable_sum: i64) {
        self.propagate = true;
        self.prop_runnable_sum = self.prop_runnable_sum.wrapping_add(runnable_sum);
    }

    fn sub_load(&mut self, avg: u64, sum: u64, floor: SumFloor) {
        let divider = self.avg.get_pelt_divider();
        let to = &mut self.avg;
        to.load_avg = to.load_avg.saturating_sub(avg);
        to.load_sum = floor.keep(to.load_sum.saturating_sub(sum), to.load_avg, divider);
    }

    fn sub_runnable(&mut self, avg: u64, sum: u64, floor: SumFloor) {
        let divider = self.avg.get_pelt_divider();
        let to = &mut self.avg;
        to.runnable_avg = to.runnable_avg.saturating_sub(avg);
        to.runnable_sum = floor.keep(to.runnable_sum.saturating_sub(sum), to.runnable_avg, divider);
    }

    fn sub_util(&mut self, avg: u64, sum: u64, floor: SumFloor) {
        let divider = self.avg.get_pelt_divider();
        let to = &mut self.avg;
        to.util_avg = u64::from(to.util_avg).saturating_sub(avg) as u32;
        let sum = u64::from(to.util_sum).saturating_sub(sum);
        to.util_sum = floor.keep(sum, u64::from(to.util_avg), divider) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weight::LoadWeight;

    fn aged(weight: u64, ms: u64, signals: &Signals) -> SchedAvg {
        let mut se = SchedAvg { last_update_time: 1, ..SchedAvg::default() };
        (1..=ms).for_each(|ms| {
            _ = se.__update_load_avg_se(ms * 1_000_000, LoadWeight::of_sum(weight << 10), true, 1, true, signals)
        });
        se
    }

    /// Attached with the weight of SCHED_IDLE and reweighted to nice 0, a load average grows by a factor of 341. A task
    /// that does so again and again exceeds 64 bits, where the kernel's product wraps; found by random programs on rows
    /// 5.13 and 5.15.
    #[test]
    fn a_load_average_that_grows_without_bound_wraps() {
        for row in ["5.13", "5.15"] {
            let signals = Signals::of(row);
            let (mut queue, mut twin) = (QueueLoad::default(), aged(1024, 50, &signals));
            queue.update_cfs_rq_load_avg(77_777_777, 0, 0, false, &signals);
            let mut se = aged(1024, 50, &signals);
            for round in 1..=40 {
                let now = 77_777_777 + round * 1_000_000;
                for se in [&mut se, &mut twin] {
                    queue.attach_entity_load_avg(se, 3, &signals);
                    queue.dequeue_load_avg(se, 3, &signals);
                    se.load_avg = 1024_u64.wrapping_mul(se.load_sum) / se.get_pelt_divider();
                    queue.enqueue_load_avg(se, 1024);
                    _ = se.__update_load_avg_se(now, LoadWeight::of_sum(1024 << 10), true, 1, true, &signals);
                }
                queue.detach_entity_load_avg(&se, 1024, &signals);
                queue.remove_entity_load_avg(&mut twin, 1024, &signals);
                queue.update_cfs_rq_load_avg(now + 500_000, 0, 0, false, &signals);
            }
        }
    }

    #[test]
    fn what_is_attached_and_detached_again_leaves_nothing() {
        for signals in
            [Signals::of("5.2"), Signals::of("5.7"), Signals::of("5.14"), Signals::of("6.1"), Signals::of("7.2")]
        {
            let mut queue = QueueLoad::default();
            queue.update_cfs_rq_load_avg(77_777_777, 0, 0, false, &signals);
            let mut se = aged(1024, 50, &signals);
            let before = se;
            queue.attach_entity_load_avg(&mut se, 1024, &signals);
            assert_eq!((se.load_avg, se.util_avg), (before.load_avg, before.util_avg));
            assert_eq!((queue.avg.load_avg, queue.avg.util_avg), (se.load_avg, se.util_avg));
            assert_eq!(se.last_update_time, queue.avg.last_update_time);
            queue.detach_entity_load_avg(&se, 1024, &signals);
            assert_eq!((queue.avg.load_avg, queue.avg.util_avg, queue.avg.load_sum), (0, 0, 0), "{signals:?}");
            assert_eq!(queue.prop_runnable_sum, 0);
        }
    }

    #[test]
    fn a_sleeper_that_left_is_subtracted_at_the_next_update() {
        for signals in
            [Signals::of("5.2"), Signals::of("5.7"), Signals::of("5.14"), Signals::of("6.1"), Signals::of("7.2")]
        {
            let mut queue = QueueLoad::default();
            let (mut a, mut b) = (aged(1024, 50, &signals), aged(1024, 90, &signals));
            queue.attach_entity_load_avg(&mut a, 1024, &signals);
            queue.attach_entity_load_avg(&mut b, 1024, &signals);
            queue.remove_entity_load_avg(&mut a, 1024, &signals);
            assert_eq!(queue.avg.util_avg, a.util_avg + b.util_avg);
            assert!(queue.update_cfs_rq_load_avg(queue.avg.last_update_time, 0, 0, false, &signals));
            assert_eq!((queue.avg.util_avg, queue.avg.load_avg), (b.util_avg, b.load_avg));
            assert_eq!(queue.removed, Removed::default());
        }
    }
}
