//! Rules of EEVDF.

use schedlab_model::{TaskId, MSEC};
use schedlab_policy::fair::{Dequeue, Enqueue, Fair, GroupId, GroupShares, TaskState};
use schedlab_policy::{KernelConfig, Resched, TaskAttr, Version};

use crate::lab::{add, at, deadline, fair, place, runner, sleeper, wake, CPU, SLEEP, WAKE};

#[test]
fn eevdf_placement_inflates_lag() {
    for (features, vlag, placed) in
        [(&[][..], 1_000_000, -1_500_000), (&[], -3_000_001, 4_500_001), (&[], 0, 0), (&["NO_PLACE_LAG"], 1_000_000, 0)]
    {
        let mut fair = fair("6.12.0", features);
        runner(&mut fair, 0);
        let other = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, other, WAKE, 0);
        let task = sleeper(&mut fair, 0, 0);
        let state = fair.view().task_state(task);
        fair.restore().task(task, TaskState { vlag, ..state });
        fair.enqueue_task(CPU, task, WAKE, 0);
        assert_eq!(at(&fair, task), placed, "{features:?} lag {vlag}");
        assert_eq!(deadline(&fair, task), placed + 3 * MSEC as i64);
    }
}

#[test]
fn eevdf_fork_gets_half_a_deadline() {
    for (features, initial, slice) in
        [(&[][..], true, 1_500_000), (&[], false, 3_000_000), (&["NO_PLACE_DEADLINE_INITIAL"], true, 3_000_000)]
    {
        let mut fair = fair("6.12.0", features);
        let parent = runner(&mut fair, 0);
        let child = add(&mut fair, 0);
        fair.task_fork(CPU, child, 1000);
        assert_eq!(at(&fair, parent), 0, "6.12 does not account the parent at fork");
        fair.enqueue_task(CPU, child, Enqueue { initial, ..Enqueue::default() }, 1000);
        assert_eq!(deadline(&fair, child) - at(&fair, child), slice, "{features:?}");
    }
}

#[test]
fn eevdf_lag_is_clamped_to_two_slices_or_a_tick() {
    for (hz, slice, limit) in [(250, None, 6 * MSEC), (100, None, 10 * MSEC), (250, Some(100_000), 4 * MSEC)] {
        let mut fair = Fair::new(KernelConfig::new(Version::find("6.12.0").unwrap(), 8, hz));
        let tasks = [(); 2].map(|()| fair.add_task(&TaskAttr { slice, ..TaskAttr::default() }));
        tasks.iter().for_each(|task| fair.enqueue_task(CPU, *task, WAKE, 0));
        fair.pick_next_task(CPU, 0);
        fair.dequeue_task(CPU, tasks[0], Dequeue { special: true, ..SLEEP }, 50 * MSEC);
        assert_eq!(fair.entity(tasks[0]).vlag, -(limit as i64), "{hz} Hz, slice {slice:?}");
    }
}

#[test]
fn eevdf_slice_end_is_found_by_accounting() {
    let mut fair = fair("6.12.0", &[]);
    let curr = runner(&mut fair, 0);
    let other = sleeper(&mut fair, 0, 0);
    fair.enqueue_task(CPU, other, WAKE, 0);
    assert_eq!(fair.task_tick(CPU, 3 * MSEC - 1), Resched::No);
    fair.update_curr(CPU, 3 * MSEC);
    assert_eq!(fair.need_resched(CPU), Resched::Full);
    assert_eq!(deadline(&fair, curr), 6 * MSEC as i64);
}

#[test]
fn eevdf_deadline_renewed_alone_leaves_no_protection() {
    for (features, expected) in [(&[][..], Resched::Full), (&["NO_PREEMPT_SHORT"], Resched::No)] {
        let mut fair = fair("6.12.0", features);
        let curr = runner(&mut fair, 0);
        fair.update_curr(CPU, 5 * MSEC);
        assert_eq!(fair.need_resched(CPU), Resched::No, "nothing waits");
        assert_eq!(deadline(&fair, curr), 8 * MSEC as i64);
        let other = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, other, WAKE, 5 * MSEC);
        assert_eq!(fair.task_tick(CPU, 5 * MSEC + 1000), expected, "{features:?}");
    }
}

#[test]
fn eevdf_parity_protects_the_runner() {
    // A wakee with credit and an earlier deadline arrives while the runner is eligible.
    for (features, slice, expected) in [
        (&[][..], None, Resched::No),
        (&["NO_RUN_TO_PARITY"], None, Resched::Full),
        (&[], Some(200_000), Resched::Full),
        (&["NO_PREEMPT_SHORT"], Some(200_000), Resched::No),
    ] {
        let mut fair = fair("6.12.0", features);
        let curr = runner(&mut fair, 0);
        let behind = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, behind, WAKE, 0);
        place(&mut fair, behind, 40 * MSEC as i64);
        let task = fair.add_task(&TaskAttr { slice, ..TaskAttr::default() });
        let state = fair.view().task_state(task);
        fair.restore().task(task, TaskState { vlag: 25 * MSEC as i64, ..state });
        fair.update_curr(CPU, 1000);
        let got = wake(&mut fair, task, 1000);
        assert!(fair.view().eligible(curr) && fair.view().eligible(task));
        assert_eq!(got, expected, "{features:?}, wakee's slice {slice:?}");
    }
}

#[test]
fn eevdf_sleeper_that_owes_stays_queued() {
    for (features, special, ran, stays) in [
        (&[][..], false, MSEC, true),
        (&[], true, MSEC, false),
        (&["NO_DELAY_DEQUEUE"], false, MSEC, false),
        (&[], false, 0, false),
    ] {
        let mut fair = fair("6.12.0", features);
        let curr = runner(&mut fair, 0);
        let other = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, other, WAKE, 0);
        let dequeued = fair.dequeue_task(CPU, curr, Dequeue { special, ..SLEEP }, ran);
        assert_eq!(dequeued, !stays, "{features:?} special {special} ran {ran}");
        assert_eq!(fair.entity(curr).sched_delayed, stays);
        assert_eq!(fair.rq(CPU).nr_running, if stays { 2 } else { 1 });
        assert_eq!(fair.pick_next_task(CPU, ran), Some(other));
    }
}

/// A task that has run 1 ms and sleeps, with its dequeue delayed, and another one that runs since.
fn delayed_sleeper(features: &[&str]) -> (Fair, TaskId, TaskId) {
    let mut fair = fair("6.12.0", features);
    let curr = runner(&mut fair, 0);
    let other = sleeper(&mut fair, 0, 0);
    fair.enqueue_task(CPU, other, WAKE, 0);
    fair.dequeue_task(CPU, curr, SLEEP, MSEC);
    fair.pick_next_task(CPU, MSEC);
    (fair, curr, other)
}

#[test]
fn eevdf_delayed_sleeper_leaves_when_picked() {
    for (features, lag) in [(&[][..], 0), (&["NO_DELAY_ZERO"], 500_000)] {
        let (mut fair, curr, other) = delayed_sleeper(features);
        // The other runs 2 ms: now the sleeper is half a ms left of V, its deadline the earlier one.
        let now = 3 * MSEC;
        fair.update_curr(CPU, now);
        assert!(fair.view().eligible(curr) && !fair.view().eligible(other));
        assert_eq!(fair.pick_next_task(CPU, now), Some(other), "{features:?}");
        let se = fair.entity(curr);
        assert!(!se.on_rq && !se.sched_delayed);
        assert_eq!(se.vlag, lag, "{features:?}");
    }
}

#[test]
fn eevdf_delayed_sleeper_woken_early_keeps_its_place() {
    // Woken while it still owes: nothing moves. Woken with credit: placed anew at V, unless DELAY_ZERO is off.
    for (features, other_ran, moves) in
        [(&[][..], 500_000, false), (&[], 2_000_000, true), (&["NO_DELAY_ZERO"], 2_000_000, false)]
    {
        let (mut fair, curr, _) = delayed_sleeper(features);
        let now = MSEC + other_ran;
        fair.update_curr(CPU, now);
        let before = fair.view().task_state(curr);
        fair.enqueue_task(CPU, curr, Enqueue { delayed: true, ..WAKE }, now);
        let after = fair.view().task_state(curr);
        assert!(!fair.entity(curr).sched_delayed);
        assert_eq!(before.vruntime != after.vruntime, moves, "{features:?} after {other_ran}");
        if moves {
            assert_eq!(at(&fair, curr), 2_000_000, "at the others' V");
            assert_eq!(deadline(&fair, curr), 5_000_000, "with a fresh slice");
        }
    }
}

#[test]
fn eevdf_requeue_keeps_the_relative_deadline() {
    for (features, kept) in [(&[][..], true), (&["NO_PLACE_REL_DEADLINE"], false)] {
        let mut fair = fair("6.12.0", features);
        runner(&mut fair, 0);
        let task = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, task, WAKE, 0);
        let state = fair.view().task_state(task);
        fair.restore().task(task, TaskState { deadline: state.deadline.plus(-(MSEC as i64)), ..state });
        fair.requeue_task(task, 0);
        assert_eq!(deadline(&fair, task) - at(&fair, task) == 2 * MSEC as i64, kept, "{features:?}");
        assert!(!fair.entity(task).rel_deadline);
    }
}

#[test]
fn eevdf_yield_moves_the_deadline() {
    let mut fair = fair("6.12.0", &[]);
    let curr = runner(&mut fair, 0);
    fair.yield_task(CPU, 1000);
    assert_eq!(deadline(&fair, curr), 3 * MSEC as i64, "alone: nothing to yield to");
    let other = sleeper(&mut fair, 0, 0);
    fair.enqueue_task(CPU, other, WAKE, 1000);
    fair.yield_task(CPU, 2000);
    assert_eq!(deadline(&fair, curr), 6 * MSEC as i64);
    assert_eq!(fair.pick_next_task(CPU, 2000), Some(other));
}

/// A delayed sleeper whose nice value changes is checked like a wakee (`prio_changed_fair`), but neither preempts nor
/// becomes a buddy; in 7.x the check does not pick, so it does not take the sleeper off the queue either.
#[test]
fn eevdf_delayed_sleeper_does_not_preempt() {
    for version in ["6.12.0", "6.12.107", "6.18.2", "7.2"] {
        for features in [&[][..], &["NEXT_BUDDY"]] {
            let mut fair = fair(version, features);
            let curr = runner(&mut fair, 0);
            let other = sleeper(&mut fair, 0, 0);
            fair.enqueue_task(CPU, other, WAKE, 0);
            assert!(!fair.dequeue_task(CPU, curr, SLEEP, MSEC));
            assert_eq!(fair.pick_next_task(CPU, MSEC), Some(other));
            fair.update_curr(CPU, 3 * MSEC);
            assert!(fair.view().eligible(curr) && !fair.view().eligible(other), "{version}");
            fair.clear_resched(CPU);
            fair.set_user_nice(curr, -5, 3 * MSEC);
            assert_eq!(fair.view().buddies(GroupId::ROOT, CPU)[0], None, "{version} {features:?}");
            if version == "7.2" {
                let se = fair.entity(curr);
                assert!(se.on_rq && se.sched_delayed, "{version} {features:?}");
                assert_eq!(fair.need_resched(CPU), Resched::No, "{version} {features:?}");
            }
        }
    }
}

/// 6.18 keeps `vprot` where the lag is: a new weight, which saves the lag of a running group, leaves it unprotected.
/// 7.2 has a field for each.
#[test]
fn a_new_weight_ends_the_protection_of_a_running_group() {
    for (version, protected) in [("6.18.2", false), ("7.2", true)] {
        let mut fair = fair(version, &[]);
        let group = fair.sched_create_group(GroupId::ROOT);
        let inside = fair.add_task(&TaskAttr { group, ..TaskAttr::default() });
        fair.enqueue_task(CPU, inside, WAKE, 0);
        assert_eq!(fair.pick_next_task(CPU, 0), Some(inside));
        let other = add(&mut fair, 0);
        fair.enqueue_task(CPU, other, WAKE, 0);
        let is_protected = |fair: &Fair| {
            let entity = fair.group_entity(group, CPU).expect("a group's entity");
            entity.vruntime.before(fair.view().vprot(entity))
        };
        assert!(is_protected(&fair), "{version}");
        fair.sched_group_set_shares(group, GroupShares::Weight(200), 1000);
        assert_eq!(is_protected(&fair), protected, "{version}");
    }
}
