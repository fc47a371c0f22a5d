//! Task-level throttling (`throttle_cfs_rq_work`, `tg_unthrottle_up`) on the smallest trees that show each rule.
#![allow(clippy::unwrap_used)]

use schedlab_model::{CpuId, Nanos, TaskId, MSEC};
use schedlab_policy::fair::{Enqueue, Fair, GroupId};
use schedlab_policy::{KernelConfig, TaskAttr, Version};

const CPU: CpuId = CpuId(0);
const WAKE: Enqueue = Enqueue { wakeup: true, migrated: false, initial: false, delayed: false };
/// Longer than any test: a quota that is not filled again.
const LONG: Nanos = 1000 * MSEC;

/// The rows whose tasks leave one by one.
fn rows() -> impl Iterator<Item = &'static Version> {
    let rows = Version::all().iter().filter(|version| version.rules.throttles_tasks());
    assert!(rows.clone().count() >= 2);
    rows
}

fn fair(version: &Version) -> Fair {
    Fair::new(KernelConfig::new(Version::find(version.name).unwrap(), 1, 250))
}

fn awake(fair: &mut Fair, group: GroupId, now: Nanos) -> TaskId {
    let task = fair.add_task(&TaskAttr { group, ..TaskAttr::default() });
    fair.enqueue_task(CPU, task, WAKE, now);
    task
}

/// No other task is queued when it is picked.
fn runs(fair: &mut Fair, group: GroupId, now: Nanos) -> TaskId {
    let task = awake(fair, group, now);
    assert_eq!(fair.pick_next_task(CPU, now), Some(task));
    task
}

/// The task runs out of its group's quota and is asked to go.
fn out_of_quota(fair: &mut Fair, task: TaskId, now: Nanos) {
    fair.update_curr(CPU, now);
    if !fair.has_throttle_work(task) {
        // 6.18 finds out at the pick.
        assert_eq!(fair.pick_next_task(CPU, now), Some(task));
    }
    assert!(fair.has_throttle_work(task) && fair.view().throttled_by(task).is_none());
}

/// DEQUEUE_THROTTLE holds for the group, too, that its last task leaves: although the group owes service, it is not
/// kept in the queue as a delayed entity.
#[test]
fn a_group_that_throttling_empties_leaves_at_once() {
    for version in rows() {
        let mut fair = fair(version);
        let group = fair.sched_create_group(GroupId::ROOT);
        fair.tg_set_cfs_bandwidth(group, MSEC, LONG, 0, 0);
        let task = runs(&mut fair, group, 0);
        out_of_quota(&mut fair, task, 2 * MSEC);
        awake(&mut fair, GroupId::ROOT, 2 * MSEC);
        // A millisecond longer in the kernel, at the other's expense.
        assert!(fair.throttle_cfs_rq_work(task, 3 * MSEC), "{}", version.name);
        let entity = fair.group_entity(group, CPU).unwrap();
        assert!(!entity.sched_delayed && !entity.on_rq, "{}", version.name);
        assert_eq!(fair.view().throttled_by(task), Some(group), "{}", version.name);
    }
}

/// Two tasks wait in limbo of an inner group, a third one of the outer group runs on unaccounted. Queueing the first of
/// the two charges the third: 7.2 throttles the outer group there and then, and leaves the second where it is.
#[test]
fn unthrottling_stops_where_it_throttles_again() {
    for version in rows() {
        let mut fair = fair(version);
        let outer = fair.sched_create_group(GroupId::ROOT);
        let inner = fair.sched_create_group(outer);
        fair.tg_set_cfs_bandwidth(outer, 30 * MSEC, LONG, 0, 0);
        fair.tg_set_cfs_bandwidth(inner, 5 * MSEC, 50 * MSEC, 0, 0);
        let first = runs(&mut fair, inner, 0);
        out_of_quota(&mut fair, first, 6 * MSEC);
        let second = awake(&mut fair, inner, 6 * MSEC);
        assert!(fair.throttle_cfs_rq_work(first, 6 * MSEC));
        assert_eq!(fair.pick_next_task(CPU, 6 * MSEC), Some(second));
        assert!(fair.throttle_cfs_rq_work(second, 6 * MSEC), "{}", version.name);
        let third = runs(&mut fair, outer, 6 * MSEC);
        assert_eq!(fair.next_bandwidth_timer(), Some(50 * MSEC));
        fair.bandwidth_timers(50 * MSEC);
        let queued = [first, second].map(|task| fair.entity(task).on_rq);
        let throttled = fair.group_rq(outer, CPU).throttled;
        match version.rules.throttles_at_once() {
            // The one that came last is the first to go.
            true => assert_eq!((queued, throttled), ([false, true], true), "{}", version.name),
            false => assert_eq!((queued, throttled), ([true, true], false), "{}", version.name),
        }
        assert_eq!(fair.has_throttle_work(third), version.rules.throttles_at_once(), "{}", version.name);
    }
}

/// A queue is throttled as its task is put back, too, though nothing was picked from it: 6.18's `put_prev_entity` still
/// asks for its runtime. No task has to leave for that until the queue is picked from; 7.2 throttled in the accounting.
#[test]
fn a_queue_is_throttled_as_its_task_is_put_back() {
    for version in rows() {
        let mut fair = fair(version);
        let group = fair.sched_create_group(GroupId::ROOT);
        fair.tg_set_cfs_bandwidth(group, MSEC, LONG, 0, 0);
        let task = runs(&mut fair, group, 0);
        let other = awake(&mut fair, GroupId::ROOT, 0);
        fair.update_curr(CPU, 2 * MSEC);
        assert_eq!(fair.pick_next_task(CPU, 2 * MSEC), Some(other), "{}", version.name);
        assert!(fair.group_rq(group, CPU).throttled, "{}", version.name);
        assert_eq!(fair.has_throttle_work(task), version.rules.throttles_at_once(), "{}", version.name);
    }
}

/// `enqueue_throttled_task`: from one throttled group's limbo into another's.
#[test]
fn a_throttled_task_moves_from_limbo_to_limbo() {
    for version in rows() {
        let mut fair = fair(version);
        let groups = [0, 1].map(|_| fair.sched_create_group(GroupId::ROOT));
        let tasks = groups.map(|group| {
            fair.tg_set_cfs_bandwidth(group, MSEC, LONG, 0, 0);
            let task = runs(&mut fair, group, 0);
            out_of_quota(&mut fair, task, 2 * MSEC);
            assert!(fair.throttle_cfs_rq_work(task, 2 * MSEC));
            assert_eq!(fair.pick_next_task(CPU, 2 * MSEC), None);
            task
        });
        fair.sched_move_task(tasks[0], groups[1], 3 * MSEC);
        assert!(!fair.entity(tasks[0]).on_rq && fair.rq(CPU).h_nr_running == 0, "{}", version.name);
        assert_eq!(fair.view().throttled_by(tasks[0]), Some(groups[1]), "{}", version.name);
        fair.sched_move_task(tasks[0], GroupId::ROOT, 4 * MSEC);
        assert!(fair.entity(tasks[0]).on_rq && fair.view().throttled_by(tasks[0]).is_none(), "{}", version.name);
        fair.set_user_nice(tasks[1], 5, 4 * MSEC);
        assert_eq!(fair.view().throttled_by(tasks[1]), Some(groups[1]), "{}", version.name);
    }
}

/// A running task that comes into a throttled group is marked to leave: `set_next_task_fair` asks for runtime at every
/// level.
#[test]
fn a_running_task_moved_into_a_throttled_group_has_to_leave() {
    for version in rows().filter(|version| version.rules.throttles_at_once()) {
        let mut fair = fair(version);
        let group = fair.sched_create_group(GroupId::ROOT);
        fair.tg_set_cfs_bandwidth(group, MSEC, LONG, 0, 0);
        let task = runs(&mut fair, group, 0);
        out_of_quota(&mut fair, task, 2 * MSEC);
        assert!(fair.throttle_cfs_rq_work(task, 2 * MSEC));
        assert_eq!(fair.pick_next_task(CPU, 2 * MSEC), None);
        let other = runs(&mut fair, GroupId::ROOT, 3 * MSEC);
        fair.sched_move_task(other, group, 4 * MSEC);
        assert!(fair.has_throttle_work(other), "{}", version.name);
    }
}

/// 7.2's `set_next_task_fair` stops at the first level whose current entity stays. So a task that follows another one
/// of the same group does not find that a group above theirs has run out, until the group itself had to wait. That of
/// 7.3 checks every level.
#[test]
fn a_sibling_does_not_notice_the_quota_above() {
    for version in rows().filter(|version| version.rules.throttles_at_once()) {
        let mut fair = fair(version);
        let outer = fair.sched_create_group(GroupId::ROOT);
        let inner = fair.sched_create_group(outer);
        fair.tg_set_cfs_bandwidth(outer, MSEC, LONG, 0, 0);
        let first = runs(&mut fair, inner, 0);
        let second = awake(&mut fair, inner, 0);
        out_of_quota(&mut fair, first, 2 * MSEC);
        assert!(fair.throttle_cfs_rq_work(first, 2 * MSEC));
        assert_eq!(fair.pick_next_task(CPU, 2 * MSEC), Some(second));
        assert_eq!(fair.has_throttle_work(second), version.rules.flat_hierarchy, "{}", version.name);
        fair.put_prev_task(CPU, 3 * MSEC);
        assert_eq!(fair.pick_next_task(CPU, 3 * MSEC), Some(second));
        assert!(fair.has_throttle_work(second), "{}", version.name);
    }
}
