//! Rules of CFS.

use schedlab_model::{CpuId, Nanos, TaskId, Vruntime, MSEC};
use schedlab_policy::fair::{Dequeue, Enqueue, Fair, GroupId, SchedParams, TaskState, WakeFlags};
use schedlab_policy::{FairPolicy, KernelConfig, Resched, TaskAttr, Version};

use crate::lab::{add, at, fair, place, runner, sleeper, wake, BASE, CPU, SLEEP, WAKE};

#[test]
fn cfs_slices() {
    for (features, nices, slices) in [
        (&[][..], &[0, 0][..], &[11_999_994, 11_999_994][..]),
        (&[], &[0, 0, 5], &[10_313_049, 10_313_049, 3_373_897]),
        (&[], &[0; 10], &[3_000_000; 10]),
        (&["NO_BASE_SLICE"], &[0; 10], &[2_999_997; 10]),
        (&["NO_ALT_PERIOD"], &[0, 0], &[11_999_994, 11_999_994]),
    ] {
        let mut fair = fair("6.1", features);
        let tasks: Vec<TaskId> = nices.iter().map(|nice| add(&mut fair, *nice)).collect();
        tasks.iter().for_each(|task| fair.enqueue_task(CPU, *task, WAKE, 0));
        let got: Vec<Nanos> = tasks.iter().map(|task| fair.view().slice(*task)).collect();
        assert_eq!(got, slices, "{features:?} nice {nices:?}");
    }
}

#[test]
fn cfs_idle_task_beside_others_has_its_own_floor() {
    let mut fair = fair("6.1", &[]);
    let idle = fair.add_task(&TaskAttr { policy: FairPolicy::Idle, ..TaskAttr::default() });
    fair.enqueue_task(CPU, idle, WAKE, 0);
    assert_eq!(fair.view().slice(idle), 23_999_999, "alone, the whole period");
    let other = add(&mut fair, 0);
    fair.enqueue_task(CPU, other, WAKE, 0);
    assert_eq!(fair.view().slice(idle), 750_000);
}

#[test]
fn cfs_sleeper_credit() {
    let ms = MSEC as i64;
    for (features, slept_at, idle, placed) in [
        (&[][..], -100 * ms, false, -12 * ms),
        (&["NO_GENTLE_FAIR_SLEEPERS"], -100 * ms, false, -24 * ms),
        (&[], -5 * ms, false, -5 * ms),
        (&[], 7 * ms, false, 7 * ms),
        (&[], -100 * ms, true, -1_500_000),
    ] {
        let mut fair = fair("6.1", features);
        runner(&mut fair, 0);
        let task = sleeper(&mut fair, 0, slept_at);
        if idle {
            fair.set_policy(task, FairPolicy::Idle, 0);
        }
        fair.enqueue_task(CPU, task, WAKE, 0);
        assert_eq!(at(&fair, task), placed, "{features:?} slept at {slept_at}");
    }
}

#[test]
fn cfs_places_a_long_sleeper_without_comparing() {
    let long = (1u64 << 53) + 1;
    let mut fair = fair("6.1", &[]);
    let task = runner(&mut fair, 0);
    fair.update_curr(CPU, MSEC);
    fair.dequeue_task(CPU, task, SLEEP, MSEC);
    fair.pick_next_task(CPU, MSEC);
    place(&mut fair, task, 500);
    fair.restore().min_vruntime(GroupId::ROOT, CPU, Vruntime(BASE));
    fair.enqueue_task(CPU, task, WAKE, MSEC + long);
    assert_eq!(at(&fair, task), -12 * MSEC as i64);
}

#[test]
fn cfs_fork_is_debited_one_slice() {
    for (features, placed) in [(&[][..], 11_999_994 + 1000), (&["NO_START_DEBIT"], 1000)] {
        let mut fair = fair("6.1", features);
        let parent = runner(&mut fair, 0);
        let child = add(&mut fair, 0);
        assert_eq!(fair.task_fork(CPU, child, 1000), Resched::No);
        assert_eq!(at(&fair, parent), 1000);
        fair.enqueue_task(CPU, child, Enqueue { initial: true, ..Enqueue::default() }, 1000);
        assert_eq!(at(&fair, child), placed, "{features:?}");
    }
}

#[test]
fn cfs_child_runs_first_swaps_places() {
    let mut config = KernelConfig::new(Version::find("6.1").unwrap(), 8, 250);
    config.set_knob("sched_child_runs_first", 1).unwrap();
    let mut fair = Fair::new(config);
    let parent = add(&mut fair, 0);
    fair.enqueue_task(CPU, parent, WAKE, 0);
    fair.pick_next_task(CPU, 0);
    let child = add(&mut fair, 0);
    assert_eq!(fair.task_fork(CPU, child, 1000), Resched::Full);
    fair.enqueue_task(CPU, child, Enqueue::default(), 1000);
    assert_eq!(fair.pick_next_task(CPU, 1000), Some(child));
}

#[test]
fn cfs_wakeup_granularity_is_the_wakees() {
    for (nice, lead, preempts) in [
        (0, 4_000_000, false),
        (0, 4_000_001, true),
        (19, 11_000_000, false),
        (-20, 46_147, true),
        (-20, 46_146, false),
    ] {
        let mut fair = fair("6.1", &[]);
        let curr = runner(&mut fair, 0);
        let task = sleeper(&mut fair, nice, 0);
        place(&mut fair, curr, lead);
        let expected = if preempts { Resched::Full } else { Resched::No };
        assert_eq!(wake(&mut fair, task, 0), expected, "nice {nice}, {lead} ns ahead");
        assert_eq!(fair.rq(CPU).buddies()[0], preempts.then_some(task), "a preemptor becomes the next buddy");
    }
}

#[test]
fn who_preempts_whom_by_policy() {
    use FairPolicy::{Batch, Idle, Normal};
    for (version, features, curr, wakee, expected) in [
        ("6.1", &[][..], Normal, Normal, Resched::Full),
        ("6.1", &[], Normal, Batch, Resched::No),
        ("6.1", &[], Normal, Idle, Resched::No),
        ("6.1", &[], Idle, Normal, Resched::Full),
        ("6.1", &[], Idle, Batch, Resched::Full),
        ("6.1", &[], Idle, Idle, Resched::No),
        ("6.1", &["NO_WAKEUP_PREEMPTION"], Normal, Normal, Resched::No),
        ("6.1", &["NO_WAKEUP_PREEMPTION"], Idle, Normal, Resched::Full),
        ("6.12.0", &[], Normal, Normal, Resched::Full),
        ("6.12.0", &[], Normal, Batch, Resched::No),
        ("6.12.0", &[], Normal, Idle, Resched::No),
        ("6.12.0", &[], Idle, Normal, Resched::Full),
        ("6.12.0", &[], Idle, Batch, Resched::Full),
        ("6.12.0", &[], Idle, Idle, Resched::No),
        ("6.12.0", &["NO_WAKEUP_PREEMPTION"], Normal, Normal, Resched::No),
        ("6.12.0", &["NO_WAKEUP_PREEMPTION"], Idle, Normal, Resched::No),
    ] {
        let mut fair = fair(version, features);
        let running = runner(&mut fair, 0);
        fair.set_policy(running, curr, 0);
        fair.clear_resched(CPU);
        // Under CFS the sleeper is far behind; under EEVDF it comes with lag.
        let task = sleeper(&mut fair, 0, -50 * MSEC as i64);
        fair.set_policy(task, wakee, 0);
        let state = fair.view().task_state(task);
        fair.restore().task(task, TaskState { vlag: 5 * MSEC as i64, ..state });
        fair.update_curr(CPU, 2 * MSEC);
        fair.clear_resched(CPU);
        let got = wake(&mut fair, task, 2 * MSEC);
        assert_eq!(got, expected, "{version} {features:?}: {wakee:?} wakes beside {curr:?}");
    }
}

#[test]
fn a_set_flag_ends_the_check_early() {
    for version in ["6.1", "6.12.0"] {
        let mut fair = fair(version, &[]);
        let curr = runner(&mut fair, 0);
        let task = sleeper(&mut fair, 0, -50 * MSEC as i64);
        fair.enqueue_task(CPU, task, WAKE, 1000);
        let before = fair.entity(curr).vruntime;
        assert_eq!(fair.wakeup_preempt(CPU, task, WakeFlags::default(), true, 2000), Resched::No);
        assert_eq!(fair.entity(curr).vruntime, before, "{version}: no accounting");
        assert_eq!(fair.rq(CPU).buddies(), [None; 3]);
    }
}

#[test]
fn an_idle_cpu_reschedules() {
    for version in ["6.1", "6.12.0"] {
        let mut fair = fair(version, &[]);
        let task = add(&mut fair, 0);
        assert_eq!(wake(&mut fair, task, 5), Resched::Full);
        assert_eq!(fair.pick_next_task(CPU, 5), Some(task));
        assert_eq!(fair.need_resched(CPU), Resched::No, "the pick clears it");
        assert!(fair.dequeue_task(CPU, task, SLEEP, 9));
        assert_eq!(fair.curr(CPU), Some(task), "until the pick");
        assert_eq!(fair.pick_next_task(CPU, 9), None);
        assert_eq!(fair.curr(CPU), None);
    }
}

#[test]
fn cfs_buddies_are_honoured_within_granularity() {
    for (features, expect_last) in [(&[][..], true), (&["NO_LAST_BUDDY"], false)] {
        let mut fair = fair("6.1", features);
        let curr = runner(&mut fair, 0);
        // Eight runnable tasks: caches matter now.
        let others: Vec<TaskId> = (0..6).map(|_| sleeper(&mut fair, 0, 3 * MSEC as i64)).collect();
        others.iter().for_each(|task| fair.enqueue_task(CPU, *task, WAKE, 0));
        let wakee = sleeper(&mut fair, 0, -6 * MSEC as i64);
        assert_eq!(wake(&mut fair, wakee, 0), Resched::Full);
        assert_eq!(fair.rq(CPU).buddies(), [Some(wakee), expect_last.then_some(curr), None]);
        assert_eq!(fair.pick_next_task(CPU, 0), Some(wakee));
        assert_eq!(fair.rq(CPU).buddies()[0], None, "chosen, no longer a buddy");
        fair.restore().min_vruntime(GroupId::ROOT, CPU, Vruntime(BASE));
        fair.update_curr(CPU, 5 * MSEC + 500_000);
        place(&mut fair, curr, 2 * MSEC as i64);
        place(&mut fair, others[0], 0);
        fair.dequeue_task(CPU, wakee, SLEEP, 5 * MSEC + 500_000);
        let expected = if expect_last { curr } else { others[0] };
        assert_eq!(fair.pick_next_task(CPU, 5 * MSEC + 500_000), Some(expected), "{features:?}");
    }
}

#[test]
fn next_buddy_needs_its_feature_and_no_fork() {
    for (version, fork, marked) in [("6.12.0", false, true), ("6.12.0", true, false), ("6.1", false, false)] {
        let mut fair = fair(version, &["NEXT_BUDDY"]);
        runner(&mut fair, 0);
        let task = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, task, WAKE, 0);
        fair.wakeup_preempt(CPU, task, WakeFlags { fork, sync: false }, true, 0);
        // CFS requires a full period as well.
        assert_eq!(fair.rq(CPU).buddies()[0].is_some(), marked, "{version} fork {fork}");
    }
}

#[test]
fn cfs_tick_preempts_after_the_slice_or_a_slice_behind() {
    for (ran, lead, expected) in [
        (11_999_994, 0, Resched::No),
        (11_999_995, 0, Resched::Full),
        (2_999_999, 30 * MSEC as i64, Resched::No),
        (3_000_000, 11_999_994, Resched::No),
        (3_000_000, 11_999_995, Resched::Full),
    ] {
        let mut fair = fair("6.1", &[]);
        let curr = runner(&mut fair, 0);
        let other = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, other, WAKE, 0);
        place(&mut fair, curr, lead - ran as i64);
        assert_eq!(fair.task_tick(CPU, ran), expected, "ran {ran}, {lead} ahead");
    }
}

#[test]
fn cfs_vruntime_is_relative_between_queues() {
    let far = CpuId(3);
    let mut fair = fair("6.1", &[]);
    fair.restore().min_vruntime(GroupId::ROOT, far, Vruntime(BASE / 2));
    runner(&mut fair, 0);
    let task = sleeper(&mut fair, 0, 77);
    // Asleep: migrate_task subtracts, the enqueue adds the other queue's minimum.
    fair.enqueue_task(CPU, task, WAKE, 0);
    fair.dequeue_task(CPU, task, SLEEP, 0);
    assert_eq!(at(&fair, task), 77, "a sleeper keeps its absolute vruntime");
    fair.migrate_task_rq(task, CPU, far);
    fair.enqueue_task(far, task, Enqueue { migrated: true, ..WAKE }, 0);
    assert_eq!(fair.entity(task).vruntime, Vruntime(BASE / 2 + 77));
    // Queued: the dequeue subtracts.
    let anchor = add(&mut fair, 0);
    fair.migrate_task_rq(anchor, CPU, far);
    fair.enqueue_task(far, anchor, Enqueue { migrated: true, ..Enqueue::default() }, 0);
    fair.dequeue_task(far, task, Dequeue::default(), 0);
    assert_eq!(fair.entity(task).vruntime, Vruntime(77));
    fair.migrate_task_rq(task, far, CPU);
    fair.enqueue_task(CPU, task, Enqueue { migrated: true, ..Enqueue::default() }, 0);
    assert_eq!(at(&fair, task), 77);
}

#[test]
fn cfs_yield_skips_unless_too_unfair() {
    for (behind, batch, picks_other) in [(0, false, true), (5 * MSEC as i64, false, false), (0, true, true)] {
        let mut fair = fair("6.1", &[]);
        let curr = runner(&mut fair, 0);
        if batch {
            fair.set_policy(curr, FairPolicy::Batch, 0);
        }
        let other = sleeper(&mut fair, 0, behind + 1000);
        fair.enqueue_task(CPU, other, WAKE, 0);
        fair.yield_task(CPU, 500);
        assert_eq!(at(&fair, curr), if batch { 0 } else { 500 }, "a batch task's clock is left alone");
        assert_eq!(fair.pick_next_task(CPU, 500), Some(if picks_other { other } else { curr }));
    }
}

/// `__sched_setscheduler` dequeued with DEQUEUE_MOVE before 5.14, and the queue's minimum moved on to the others.
#[test]
fn a_running_task_whose_policy_changes_loses_its_lead_up_to_5_7() {
    let rows = [("5.2", true), ("5.7", true), ("5.10", false), ("5.13", false), ("5.15", false), ("6.3", false)];
    for (version, moves) in rows {
        for whole in [false, true] {
            let mut fair = fair(version, &[]);
            let curr = runner(&mut fair, 0);
            let other = sleeper(&mut fair, 0, 5 * MSEC as i64);
            fair.enqueue_task(CPU, other, WAKE, 0);
            let waits = at(&fair, other);
            assert!(waits > 0);
            let params = SchedParams { policy: FairPolicy::Batch, nice: 0, slice: None };
            match whole {
                true => fair.__sched_setscheduler(curr, params, 0),
                false => fair.set_policy(curr, FairPolicy::Batch, 0),
            };
            assert_eq!(at(&fair, curr), if moves { waits } else { 0 }, "{version}");
        }
    }
}

/// Whether the class picks or is put on a recorded kernel's pick.
#[test]
fn cfs_up_to_5_11_forgets_a_buddy_that_is_picked_again() {
    for (version, forgets) in [("5.2", true), ("5.7", true), ("5.13", false), ("6.1", false), ("6.3", false)] {
        for replayed in [false, true] {
            let mut fair = fair(version, &[]);
            let curr = runner(&mut fair, 0);
            let other = sleeper(&mut fair, 0, 5 * MSEC as i64);
            fair.enqueue_task(CPU, other, WAKE, 0);
            fair.yield_task(CPU, 500);
            match replayed {
                true => fair.switch_to(CPU, Some(curr), 500),
                false => assert_eq!(fair.pick_next_task(CPU, 500), Some(curr), "the other is too far"),
            }
            // Now it is near.
            let picked = fair.pick_next_task(CPU, 2 * MSEC);
            assert_eq!(picked, Some(if forgets { curr } else { other }), "{version} {replayed}");
        }
    }
}

/// `sched_move_task`, as when a task exits: the running one reschedules even if it stays in its group.
#[test]
fn a_running_task_that_changes_its_group_gives_way_from_5_6_on() {
    for (version, resched) in
        [("5.2", Resched::No), ("5.7", Resched::Full), ("5.13", Resched::Full), ("6.3", Resched::Full)]
    {
        let mut fair = fair(version, &[]);
        let curr = runner(&mut fair, 0);
        let other = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, other, WAKE, 0);
        assert_eq!(fair.requeue_task(other, 0), Resched::No, "{version}");
        assert_eq!(fair.requeue_task(curr, 0), resched, "{version}");
        assert_eq!(fair.sched_move_task(curr, GroupId::ROOT, 0), resched, "{version}");
    }
}
