//! Each rule of the fair class on the smallest queue that shows it, with its feature on and off.

use schedlab_model::{CpuId, Nanos, TaskId, Vruntime, MSEC};
use schedlab_policy::decision::Verdict;
use schedlab_policy::fair::{Dequeue, Enqueue, Fair, GroupId, GroupShares, SchedParams, TaskState, WakeFlags};
use schedlab_policy::{FairPolicy, KernelConfig, Resched, TaskAttr, Version};

const CPU: CpuId = CpuId(0);
const SLEEP: Dequeue =
    Dequeue { sleep: true, special: false, throttle: false, save: false, delayed: false, migrating: false };
const WAKE: Enqueue = Enqueue { wakeup: true, migrated: false, initial: false, delayed: false };
/// Where the test queues start; far from the kernel's initial value so that nothing sits at 0.
const BASE: u64 = 1 << 40;

/// A class with 8 CPUs' tunables and 250 Hz; features as "NAME" or "NO_NAME".
fn fair(version: &str, features: &[&str]) -> Fair {
    let mut config = KernelConfig::new(Version::find(version).expect("a modelled version"), 8, 250);
    for feature in features {
        let on = !feature.starts_with("NO_");
        config.set_feature(feature.trim_start_matches("NO_"), on).expect("a modelled feature");
    }
    let mut fair = Fair::new(config);
    fair.restore().min_vruntime(GroupId::ROOT, CPU, Vruntime(BASE));
    fair
}

fn add(fair: &mut Fair, nice: i8) -> TaskId {
    fair.add_task(&TaskAttr { nice, ..TaskAttr::default() })
}

/// A task asleep at a distance from [`BASE`].
fn sleeper(fair: &mut Fair, nice: i8, at: i64) -> TaskId {
    let task = add(fair, nice);
    place(fair, task, at);
    task
}

fn place(fair: &mut Fair, task: TaskId, at: i64) {
    let state = fair.view().task_state(task);
    fair.restore().task(task, TaskState { vruntime: Vruntime(BASE).plus(at), ..state });
}

/// A task that runs from time 0 at [`BASE`].
fn runner(fair: &mut Fair, nice: i8) -> TaskId {
    let task = sleeper(fair, nice, 0);
    fair.enqueue_task(CPU, task, WAKE, 0);
    assert_eq!(fair.pick_next_task(CPU, 0), Some(task));
    task
}

fn at(fair: &Fair, task: TaskId) -> i64 {
    fair.entity(task).vruntime.since(Vruntime(BASE))
}

fn deadline(fair: &Fair, task: TaskId) -> i64 {
    fair.entity(task).deadline.since(Vruntime(BASE))
}

fn wake(fair: &mut Fair, task: TaskId, now: Nanos) -> Resched {
    fair.enqueue_task(CPU, task, WAKE, now);
    fair.wakeup_preempt(CPU, task, WakeFlags::default(), false, now)
}

// CFS

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

// EEVDF

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

#[test]
fn eevdf_delayed_sleeper_leaves_when_picked() {
    for (features, lag) in [(&[][..], 0), (&["NO_DELAY_ZERO"], 500_000)] {
        let mut fair = fair("6.12.0", features);
        let curr = runner(&mut fair, 0);
        let other = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, other, WAKE, 0);
        fair.dequeue_task(CPU, curr, SLEEP, MSEC);
        fair.pick_next_task(CPU, MSEC);
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
        let mut fair = fair("6.12.0", features);
        let curr = runner(&mut fair, 0);
        let other = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, other, WAKE, 0);
        fair.dequeue_task(CPU, curr, SLEEP, MSEC);
        fair.pick_next_task(CPU, MSEC);
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

#[test]
fn own_slices_are_cut_to_their_range() {
    for (version, asked, slice) in [
        ("6.12.0", Some(1), 100_000),
        ("6.12.0", Some(5 * MSEC), 5 * MSEC),
        ("6.12.0", Some(10_000 * MSEC), 100 * MSEC),
        ("6.12.0", Some(0), 3 * MSEC),
        ("6.12.0", None, 3 * MSEC),
        ("6.1", Some(5 * MSEC), 3 * MSEC),
    ] {
        let mut fair = fair(version, &[]);
        let born = fair.add_task(&TaskAttr { slice: asked, ..TaskAttr::default() });
        let changed = add(&mut fair, 0);
        fair.set_slice(changed, asked, 0);
        for task in [born, changed] {
            let se = fair.entity(task);
            assert_eq!(se.slice, slice, "{version} asked {asked:?}");
            assert_eq!(se.custom_slice, version == "6.12.0" && asked.is_some_and(|ns| ns > 0));
        }
    }
}

#[test]
fn own_slice_of_a_queued_task_acts_on_its_next_deadline() {
    let mut fair = fair("6.12.0", &[]);
    let curr = runner(&mut fair, 0);
    let other = sleeper(&mut fair, 0, 0);
    fair.enqueue_task(CPU, other, WAKE, 0);
    fair.set_slice(curr, Some(MSEC), 1_000_000);
    assert_eq!(deadline(&fair, curr), 3 * MSEC as i64, "the running request is kept");
    assert_eq!(fair.task_tick(CPU, 3 * MSEC), Resched::Full);
    assert_eq!(deadline(&fair, curr), 4 * MSEC as i64);
}

#[test]
fn a_nice_change_keeps_real_lag() {
    let mut fair = fair("6.12.0", &[]);
    let task = sleeper(&mut fair, 0, 0);
    let state = fair.view().task_state(task);
    fair.restore().task(task, TaskState { vlag: -1_000_000, ..state });
    fair.set_user_nice(task, 5, 0);
    assert_eq!(fair.entity(task).vlag, -1_000_000 * 1024 / 335);
    fair.set_user_nice(task, 99, 0);
    assert_eq!(fair.entity(task).nice, 5, "no such nice value");
}

#[test]
fn a_nice_change_reschedules_by_direction() {
    for version in ["6.1", "6.12.0"] {
        for (nice, expected) in [(5, Resched::Full), (-5, Resched::No)] {
            let mut fair = fair(version, &[]);
            let curr = runner(&mut fair, 0);
            assert_eq!(fair.set_user_nice(curr, nice, 10), Resched::No, "{version}: alone");
            fair.set_user_nice(curr, 0, 10);
            let other = sleeper(&mut fair, 0, 0);
            fair.enqueue_task(CPU, other, WAKE, 10);
            assert_eq!(fair.set_user_nice(curr, nice, 10), expected, "{version}: to nice {nice}");
            assert_eq!(fair.curr(CPU), Some(curr));
            assert_eq!(fair.view().sums(GroupId::ROOT, CPU), fair.view().recomputed_sums(GroupId::ROOT, CPU));
        }
    }
}

#[test]
fn alone_means_alone_on_the_cpu_and_not_in_a_group() {
    for version in ["6.1", "6.12.0", "7.2"] {
        let mut fair = fair(version, &[]);
        let group = fair.sched_create_group(GroupId::ROOT);
        let curr = runner(&mut fair, 0);
        fair.sched_move_task(curr, group, 10);
        assert_eq!(fair.pick_next_task(CPU, 10), Some(curr));
        let other = sleeper(&mut fair, 0, 0);
        fair.enqueue_task(CPU, other, WAKE, 10);
        fair.clear_resched(CPU);
        assert_eq!(fair.set_user_nice(curr, 5, 10), Resched::Full, "{version}");
    }
}

#[test]
fn an_exact_runtime_is_charged_whatever_the_clock() {
    for version in ["6.1", "6.12.0"] {
        let mut fair = fair(version, &[]);
        let curr = runner(&mut fair, 5);
        fair.update_curr_by(CPU, 1_000_000, false);
        assert_eq!(at(&fair, curr), 3_056_716);
        assert_eq!(fair.entity(curr).sum_exec_runtime, 1_000_000);
        fair.update_curr(CPU, 500_000);
        assert_eq!(at(&fair, curr), 3_056_716, "time does not go back");
    }
}

#[test]
fn decisions_carry_rule_feature_and_numbers() {
    let mut fair = fair("6.12.0", &[]);
    let curr = runner(&mut fair, 0);
    fair.log_mut().decisions = Some(Vec::new());
    let other = sleeper(&mut fair, 0, 0);
    assert_eq!(wake(&mut fair, other, 0), Resched::No);
    fair.dequeue_task(CPU, curr, SLEEP, MSEC);
    fair.pick_next_task(CPU, MSEC);
    fair.task_tick(CPU, 5 * MSEC);
    let log = fair.log_mut().decisions.take().unwrap();
    let recorded: Vec<(Verdict, &str)> = log.iter().map(|d| (d.verdict, d.rule)).collect();
    assert_eq!(
        recorded,
        [
            (Verdict::Keep(other), "protected until parity or slice end"),
            (Verdict::Delay(curr), "sleeps while not eligible"),
            (Verdict::Pick(other), "earliest eligible deadline"),
            (Verdict::Expire(other), "slice used up"),
        ]
    );
    assert_eq!(log[1].compared, [("vruntime", MSEC as i64), ("V", MSEC as i64 / 2)]);
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

/// 6.18 keeps `vprot` where the lag is: a new weight, which saves the lag of a running group, leaves it unprotected. 7.2
/// has a field for each.
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

/// SCHED_IDLE is no `fair_policy()`: `__setscheduler_params` leaves nice value and slice as they were, and they are back with
/// the next change of the nice value.
#[test]
fn sched_idle_takes_neither_nice_value_nor_slice() {
    for version in ["6.1", "6.12.107", "7.2"] {
        let mut fair = fair(version, &[]);
        let task = runner(&mut fair, -9);
        fair.__sched_setscheduler(task, SchedParams { policy: FairPolicy::Normal, nice: -9, slice: Some(5 * MSEC) }, 0);
        let slice = fair.view().slice(task);
        fair.__sched_setscheduler(task, SchedParams { policy: FairPolicy::Idle, nice: 4, slice: Some(MSEC) }, MSEC);
        let se = fair.entity(task);
        assert_eq!((se.nice, se.load.weight), (-9, fair_weight_of_idle()), "{version}");
        assert_eq!(fair.view().slice(task), slice, "{version}");
        // Again: nothing changes. A nice value is kept for later, and weighs nothing now.
        fair.__sched_setscheduler(task, SchedParams { policy: FairPolicy::Idle, nice: 7, slice: None }, 2 * MSEC);
        fair.set_user_nice(task, 7, 2 * MSEC);
        assert_eq!((fair.entity(task).nice, fair.entity(task).load.weight), (7, fair_weight_of_idle()), "{version}");
    }
}

fn fair_weight_of_idle() -> u64 {
    schedlab_policy::weight::LoadWeight::of_task(0, FairPolicy::Idle).weight
}
