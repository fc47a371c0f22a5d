//! Rules of both: attributes of tasks and their changes, charges, recorded decisions.

use schedlab_model::MSEC;
use schedlab_policy::decision::Action;
use schedlab_policy::fair::{GroupId, SchedParams, TaskState};
use schedlab_policy::{FairPolicy, Resched, TaskAttr};

use crate::lab::{add, at, deadline, fair, runner, sleeper, wake, CPU, SLEEP, WAKE};

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
    let recorded: Vec<(Action, &str)> = log.iter().map(|d| (d.action, d.rule)).collect();
    assert_eq!(
        recorded,
        [
            (Action::Keep(other), "protected until parity or slice end"),
            (Action::Delay(curr), "sleeps while not eligible"),
            (Action::Pick(other), "earliest eligible deadline"),
            (Action::Expire(other), "slice used up"),
        ]
    );
    assert_eq!(log[1].compared, [("vruntime", MSEC as i64), ("V", MSEC as i64 / 2)]);
}

/// SCHED_IDLE is no `fair_policy()`: `__setscheduler_params` leaves nice value and slice as they were, and they are
/// back with the next change of the nice value.
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
