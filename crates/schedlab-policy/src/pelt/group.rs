//! Load across the levels of the group tree: what a group's entity takes over from its queue (`update_tg_cfs_util`,
//! `update_tg_cfs_runnable`, `update_tg_cfs_load`), and the group's share per CPU (`calc_group_shares`).
//!
//! A group entity's own history shows when the group ran here; it does not contain what moved in or out of the group
//! below, which is propagated: utilisation and runnable are copied, load is estimated from the sum that came or went.

use super::cfs_rq_load::QueueLoad;
use super::sched_avg::SchedAvg;
use super::series::{CAPACITY_SHIFT, LOAD_AVG_MAX};
use super::sum_floor::UnchangedLoad;
use crate::pelt::signals::Signals;
use crate::weight::scale_load_down;
use schedlab_model::Nanos;

/// Smallest weight of a group's entity, not scaled up (`MIN_SHARES`).
const MIN_SHARES: u64 = 2;

/// What a task group sums over its queues (`tg->load_avg`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GroupLoad {
    /// The sum of contributions, as far as the queues have reported them.
    pub load_avg: i64,
    /// The same of the runnable signal (`tg->runnable_avg`, 7.3).
    pub runnable_avg: i64,
}

impl GroupLoad {
    /// `update_tg_load_avg`: a queue reports its load once it differs by more than 1/64 from its last report, from 7.3
    /// on also once its runnable signal does. Whether it has.
    #[inline]
    pub fn update_tg_load_avg(&mut self, queue: &mut QueueLoad, now: Nanos, signals: &Signals) -> bool {
        if signals.tg_update_interval > 0
            && now.wrapping_sub(queue.last_update_tg_load_avg) < signals.tg_update_interval
        {
            return false;
        }
        let reported = queue.tg_load_avg_contrib;
        let runnable = queue.tg_runnable_avg_contrib;
        let differs = queue.avg.load_avg.abs_diff(reported) > reported / 64
            || signals.shares_by_tasks && queue.avg.runnable_avg.abs_diff(runnable) > runnable / 64;
        if differs {
            self.load_avg += queue.avg.load_avg as i64 - reported as i64;
            self.runnable_avg += queue.avg.runnable_avg as i64 - runnable as i64;
            queue.tg_load_avg_contrib = queue.avg.load_avg;
            queue.tg_runnable_avg_contrib = queue.avg.runnable_avg;
            queue.last_update_tg_load_avg = now;
        }
        differs
    }

    /// `clear_tg_load_avg`: the queue contributes nothing.
    pub fn clear_tg_load_avg(&mut self, queue: &mut QueueLoad, now: Nanos) {
        self.load_avg -= std::mem::take(&mut queue.tg_load_avg_contrib) as i64;
        self.runnable_avg -= std::mem::take(&mut queue.tg_runnable_avg_contrib) as i64;
        queue.last_update_tg_load_avg = now;
    }

    /// What a group of these shares divides among the CPUs: its shares, from 7.3 on for each task that is runnable on
    /// average, but for `cpus` tasks at most (`calc_concur_shares`; `tg_cpus`).
    #[must_use]
    pub fn shares_to_divide(&self, shares: u64, cpus: u64, signals: &Signals) -> u64 {
        let tasks = (self.runnable_avg >> CAPACITY_SHIFT).max(1) as u64;
        let by_tasks = signals.shares_by_tasks.then(|| tasks.min(cpus.max(1)));
        shares * by_tasks.unwrap_or(1)
    }
}

/// `calc_group_shares`: the weight of the group's entity on one CPU, the CPU's part of the group's load; `weight` is
/// the sum of weights on that queue, full resolution as is `shares`.
#[must_use]
pub fn calc_group_shares(shares: u64, weight: u64, queue: &QueueLoad, group: &GroupLoad) -> u64 {
    let load = scale_load_down(weight).max(queue.avg.load_avg) as i64;
    let total = group.load_avg - queue.tg_load_avg_contrib as i64 + load;
    let mut part = (shares as i64).wrapping_mul(load);
    if total != 0 {
        part /= total;
    }
    part.clamp(MIN_SHARES.min(shares) as i64, shares as i64) as u64
}

/// `calc_group_runnable` (5.2): the part of these shares that counts as runnable, by the ratio of runnable load to
/// load.
#[must_use]
pub fn calc_group_runnable(shares: u64, weight: u64, queue: &QueueLoad) -> u64 {
    let load = scale_load_down(weight).max(queue.avg.load_avg);
    let runnable = scale_load_down(queue.runnable_weight).max(queue.avg.runnable_avg).wrapping_mul(shares);
    runnable.checked_div(load).unwrap_or(runnable).clamp(MIN_SHARES.min(shares), shares)
}

/// A group's entity, as far as its load concerns the queue that it is on.
#[derive(Clone, Copy, Debug)]
pub struct GroupEntity {
    /// Its weight, scaled down.
    pub weight: u64,
    /// Its runnable weight, scaled down (5.2).
    pub runnable: u64,
    /// It is queued or running.
    pub on_rq: bool,
}

/// `propagate_entity_load_avg` of a group's entity with averages `se` on `queue`; `group` is the queue it stands
/// for, with the weights queued there at full resolution. Whether anything changed.
pub fn propagate_entity_load_avg(
    queue: &mut QueueLoad,
    se: &mut SchedAvg,
    entity: GroupEntity,
    group: &mut QueueLoad,
    group_weight: u64,
    signals: &Signals,
) -> bool {
    if !group.propagate {
        return false;
    }
    group.propagate = false;
    queue.add_tg_cfs_propagate(group.prop_runnable_sum);
    update_tg_cfs_util(queue, se, group, signals);
    if !signals.runnable_load {
        update_tg_cfs_runnable(queue, se, group, signals);
    }
    update_tg_cfs_load(queue, se, entity, group, group_weight, signals);
    true
}

fn update_tg_cfs_util(queue: &mut QueueLoad, se: &mut SchedAvg, group: &QueueLoad, signals: &Signals) {
    let delta_avg = i64::from(group.avg.util_avg) - i64::from(se.util_avg);
    if delta_avg == 0 {
        return;
    }
    let divider = divider(queue, signals);
    se.util_avg = group.avg.util_avg;
    let sum = u64::from(se.util_avg) * divider;
    let delta_sum = sum as i64 - i64::from(se.util_sum);
    se.util_sum = sum as u32;
    let avg = &mut queue.avg;
    avg.util_avg = add_positive(u64::from(avg.util_avg), delta_avg) as u32;
    let sum = add_positive(u64::from(avg.util_sum), delta_sum);
    avg.util_sum = signals.floor.keep_propagated(sum, u64::from(avg.util_avg), divider) as u32;
}

fn update_tg_cfs_runnable(queue: &mut QueueLoad, se: &mut SchedAvg, group: &QueueLoad, signals: &Signals) {
    let delta_avg = group.avg.runnable_avg as i64 - se.runnable_avg as i64;
    if delta_avg == 0 {
        return;
    }
    let divider = divider(queue, signals);
    se.runnable_avg = group.avg.runnable_avg;
    let sum = se.runnable_avg * divider;
    let delta_sum = sum as i64 - se.runnable_sum as i64;
    se.runnable_sum = sum;
    let avg = &mut queue.avg;
    avg.runnable_avg = add_positive(avg.runnable_avg, delta_avg);
    let sum = add_positive(avg.runnable_sum, delta_sum);
    avg.runnable_sum = signals.floor.keep_propagated(sum, avg.runnable_avg, divider);
}

fn update_tg_cfs_load(
    queue: &mut QueueLoad,
    se: &mut SchedAvg,
    entity: GroupEntity,
    group: &mut QueueLoad,
    group_weight: u64,
    signals: &Signals,
) {
    let weight = entity.weight;
    let moved = std::mem::take(&mut group.prop_runnable_sum);
    if moved == 0 {
        return;
    }
    let divider = divider(queue, signals);
    let sum = if moved > 0 {
        // Until the CPU is saturated, running and runnable are the same.
        se.load_sum.saturating_add(moved as u64).min(divider)
    } else {
        // All remaining entities count as equally runnable; the sum never grows when one leaves.
        let each = group.avg.load_sum.checked_div(scale_load_down(group_weight)).unwrap_or(0);
        se.load_sum.min(each)
    };
    let sum = sum.max(u64::from(se.util_sum >> CAPACITY_SHIFT));
    let load_avg = weight * sum / divider;
    let delta_avg = load_avg as i64 - se.load_avg as i64;
    if delta_avg == 0 {
        match signals.unchanged_load {
            UnchangedLoad::Follows => {}
            UnchangedLoad::EntityOnly => {
                se.load_sum = sum;
                return;
            }
            UnchangedLoad::Nothing => return,
        }
    }
    let delta_sum = (weight * sum) as i64 - (weight * se.load_sum) as i64;
    se.load_sum = sum;
    se.load_avg = load_avg;
    let avg = &mut queue.avg;
    avg.load_avg = add_positive(avg.load_avg, delta_avg);
    avg.load_sum = signals.floor.keep(add_positive(avg.load_sum, delta_sum), avg.load_avg, divider);
    if signals.runnable_load {
        propagate_runnable_load(avg, se, entity, sum, divider);
    }
}

/// The part of `update_tg_cfs_runnable` that concerns the runnable load (5.2). The queue's sum loses the entity's old
/// sum by its weight, though it was added by its runnable weight.
fn propagate_runnable_load(avg: &mut SchedAvg, se: &mut SchedAvg, entity: GroupEntity, sum: u64, divider: u64) {
    let weighted = entity.runnable.wrapping_mul(sum);
    let runnable_avg = weighted / divider;
    let delta_sum = (weighted as i64).wrapping_sub(entity.weight.wrapping_mul(se.runnable_sum) as i64);
    let delta_avg = runnable_avg as i64 - se.runnable_avg as i64;
    (se.runnable_sum, se.runnable_avg) = (sum, runnable_avg);
    if entity.on_rq {
        avg.runnable_avg = add_positive(avg.runnable_avg, delta_avg);
        avg.runnable_sum = add_positive(avg.runnable_sum, delta_sum);
    }
}

/// What the sums of propagated averages are divided by.
fn divider(queue: &QueueLoad, signals: &Signals) -> u64 {
    match signals.propagates_by_max {
        true => LOAD_AVG_MAX,
        false => queue.avg.get_pelt_divider(),
    }
}

/// `add_positive`: never below zero.
fn add_positive(value: u64, delta: i64) -> u64 {
    value.checked_add_signed(delta).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNALS: &Signals = &Signals::of("6.1");
    const NICE_0: u64 = 1 << 20;
    const GE: GroupEntity = GroupEntity { weight: 512, runnable: 512, on_rq: true };

    fn queue(load_avg: u64, reported: u64) -> QueueLoad {
        let avg = SchedAvg { load_avg, ..SchedAvg::default() };
        QueueLoad { avg, tg_load_avg_contrib: reported, ..QueueLoad::default() }
    }

    #[test]
    fn shares_follow_the_part_of_the_load() {
        // (shares, queued weight, load_avg here, reported, group's sum) -> weight here
        let table = [
            (NICE_0, NICE_0, 1024, 1024, 1024, NICE_0),
            (NICE_0, NICE_0, 1024, 1024, 4096, NICE_0 / 4),
            (NICE_0, 3 * NICE_0, 1024, 1024, 2048, NICE_0 * 3 / 4),
            (NICE_0, 0, 0, 0, 4096, 2),
            (NICE_0, 0, 0, 0, 0, 2),
            (3 << 10, NICE_0, 1024, 1024, 1024 * 1024, 3),
        ];
        for (shares, weight, load_avg, reported, sum, expected) in table {
            let group = GroupLoad { load_avg: sum, ..GroupLoad::default() };
            assert_eq!(calc_group_shares(shares, weight, &queue(load_avg, reported), &group), expected);
        }
    }

    #[test]
    fn a_queue_reports_changes_above_a_64th_and_not_too_often() {
        let mut group = GroupLoad { load_avg: 6400, ..GroupLoad::default() };
        let mut here = queue(6500, 6400);
        group.update_tg_load_avg(&mut here, 5_000_000, &Signals::of("6.12.107"));
        assert_eq!((group.load_avg, here.tg_load_avg_contrib), (6400, 6400), "exactly a 64th is not enough");
        here.avg.load_avg = 6501;
        group.update_tg_load_avg(&mut here, 5_000_000, &Signals::of("6.12.107"));
        assert_eq!((group.load_avg, here.tg_load_avg_contrib), (6501, 6501));
        here.avg.load_avg = 0;
        group.update_tg_load_avg(&mut here, 5_900_000, &Signals::of("6.12.107"));
        assert_eq!(group.load_avg, 6501, "within a millisecond");
        group.update_tg_load_avg(&mut here, 5_900_000, SIGNALS);
        assert_eq!(group.load_avg, 0, "older kernels do not wait");
    }

    #[test]
    fn a_task_that_moves_in_shows_in_the_parent_queue() {
        let (mut root, mut child, mut ge) = (QueueLoad::default(), QueueLoad::default(), SchedAvg::default());
        let mut task = SchedAvg { load_avg: 1024, util_avg: 300, runnable_avg: 500, ..SchedAvg::default() };
        child.attach_entity_load_avg(&mut task, 1024, SIGNALS);
        assert!(propagate_entity_load_avg(&mut root, &mut ge, GE, &mut child, NICE_0, SIGNALS));
        assert_eq!((ge.util_avg, ge.runnable_avg, ge.load_avg), (300, 500, 512));
        assert_eq!((root.avg.util_avg, root.avg.runnable_avg, root.avg.load_avg), (300, 500, 512));
        assert!(root.propagate && !child.propagate);
        assert!(!propagate_entity_load_avg(&mut root, &mut ge, GE, &mut child, NICE_0, SIGNALS));
        child.detach_entity_load_avg(&task, 1024, SIGNALS);
        propagate_entity_load_avg(&mut root, &mut ge, GE, &mut child, 0, SIGNALS);
        assert_eq!((root.avg.util_avg, root.avg.runnable_avg, root.avg.load_avg), (0, 0, 0));
    }

    #[test]
    fn the_runnable_load_of_old_kernels_counts_what_does_not_sleep() {
        // (queued weight, load_avg, runnable weight, runnable_load_avg) -> runnable weight of the entity with weight
        // NICE_0
        let table = [
            (NICE_0, 1024, NICE_0, 1024, NICE_0),
            (NICE_0, 2048, NICE_0, 1000, NICE_0 / 2),
            (2 * NICE_0, 1024, NICE_0, 1024, NICE_0 / 2),
            (0, 2048, 0, 512, NICE_0 / 4),
            (0, 2048, 0, 0, 2),
            (0, 0, 0, 0, 2),
        ];
        for (weight, load_avg, runnable_weight, runnable_avg, expected) in table {
            let avg = SchedAvg { load_avg, runnable_avg, ..SchedAvg::default() };
            let queue = QueueLoad { avg, runnable_weight, ..QueueLoad::default() };
            assert_eq!(calc_group_runnable(NICE_0, weight, &queue), expected, "{queue:?}");
        }
    }

    #[test]
    fn a_task_that_joins_adds_to_the_runnable_load_of_a_queued_group() {
        let signals = Signals::of("5.2");
        for (on_rq, queued) in [(true, 250), (false, 0)] {
            let (mut root, mut child) = (QueueLoad::default(), QueueLoad::default());
            let (mut task, mut ge) = (SchedAvg { load_avg: 1024, ..SchedAvg::default() }, SchedAvg::default());
            child.attach_entity_load_avg(&mut task, 1024, &signals);
            let entity = GroupEntity { weight: 512, runnable: 256, on_rq };
            assert!(propagate_entity_load_avg(&mut root, &mut ge, entity, &mut child, NICE_0, &signals));
            // 512 and 256 times (LOAD_AVG_MAX - 1024) / LOAD_AVG_MAX.
            assert_eq!((ge.load_avg, ge.runnable_avg), (501, 250));
            assert_eq!((root.avg.load_avg, root.avg.runnable_avg), (501, queued));
        }
    }
}
