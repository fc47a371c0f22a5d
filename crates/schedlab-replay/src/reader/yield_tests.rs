//! Tests of `sched_yield`: which records are those of its `schedule()`.

use super::testing::words;
use super::tests::{check, read, REMOTE_WAKEUP, TICK_LATER};
use crate::operation::Operation;

const YIELD: &str = "
    a-1 [000] ..... 0.004000: sys_sched_yield()
    a-1 [000] d.... 0.004001: ck: (update_curr+0x0/0x1b0) cpu=0 c=4000000
    a-1 [000] d.... 0.004002: sched_stat_runtime: comm=a pid=1 runtime=3900000 [ns] vruntime=5000000 [ns]
";
const SCHEDULES: &str = "a-1 [000] d.... 0.004010: ck: (update_curr+0x0/0x1b0) cpu=0 c=4000000\n";
const LATE_TICK: &str = "
    a-1 [000] d.h.. 0.009000: ck: (update_curr+0x0/0x1b0) cpu=0 c=9000000
    a-1 [000] d.h.. 0.009001: sched_stat_runtime: comm=a pid=1 runtime=5000000 [ns] vruntime=10000000 [ns]
";
const SWITCHES: &str = "
    a-1 [000] dN... 0.009010: ck: (update_curr+0x0/0x1b0) cpu=0 c=9000000
    a-1 [000] d.... 0.009020: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=c next_pid=3 next_prio=120
";

/// `schedule()` charges: an interrupt that comes before that charge comes before the pick, however late it is.
#[test]
fn a_yield_picks_before_an_interrupt_only_if_it_charges_before_it() {
    let before = ["charge 1", "yield cpu0", "repick cpu0", "charge 1", "tick", "switch 1 to 3"];
    check("5.10.262", &[YIELD, SCHEDULES, LATE_TICK, SWITCHES], &before);
    check("5.10.262", &[YIELD, LATE_TICK, SWITCHES], &["charge 1", "yield cpu0", "charge 1", "tick", "switch 1 to 3"]);
}

/// The system call is recorded before the yield: a task that is preempted in between yields when it runs again.
#[test]
fn a_task_that_is_preempted_before_it_yields_does_so_later() {
    let preempted = "
        a-1 [000] ..... 0.004000: sys_sched_yield()
        a-1 [000] dNh1. 0.004100: sched_stat_runtime: comm=a pid=1 runtime=3900000 [ns]
        a-1 [000] dN.2. 0.004105: sched_stat_runtime: comm=a pid=1 runtime=5000 [ns]
        a-1 [000] d..2. 0.004110: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R+ ==> next_comm=c next_pid=3 next_prio=120
        c-3 [000] d..2. 0.005110: sched_stat_runtime: comm=c pid=3 runtime=1000000 [ns]
        c-3 [000] d..2. 0.005115: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120
    ";
    let yields = "
        a-1 [000] d..1. 0.005200: sched_stat_runtime: comm=a pid=1 runtime=90000 [ns]
        a-1 [000] d..2. 0.005210: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=d next_pid=5 next_prio=120
    ";
    let wanted = [
        "charge 1",
        "tick",
        "charge 1",
        "switch 1 to 3",
        "charge 3",
        "block",
        "switch 3 to 1",
        "charge 1",
        "yield cpu0",
        "switch 1 to 5",
    ];
    check("7.3.4", &[preempted, yields], &wanted);
}

/// An interrupt comes between the yield and its `schedule()`, and preempts. That uses the skipped update of the clock
/// up (RQCF_REQ_SKIP), so nothing is charged there, and the `schedule()` of the yield comes when the task runs again.
#[test]
fn a_task_that_is_preempted_in_its_yield_schedules_when_it_runs_again() {
    let flagged = "a-1 [000] dNh1. 0.004100: sched_stat_runtime: comm=a pid=1 runtime=90000 [ns]\n";
    let preempted = TO_C_AT_ONCE.replace("prev_state=R", "prev_state=R+");
    let back = "
        c-3 [000] d..2. 0.010110: sched_stat_runtime: comm=c pid=3 runtime=1000000 [ns]
        c-3 [000] d..2. 0.010115: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120
    ";
    let schedules = "a-1 [000] d..2. 0.010200: sched_stat_runtime: comm=a pid=1 runtime=80000 [ns]\n";
    let [to_d, call] = ["0.010210", "0.010211"].map(|time| TO_C_AT_ONCE.replace("0.009020", time).replace("=3", "=5"));
    let call = call.split_once("sched_switch").unwrap().0.replace("d..2.", ".....") + "sys_getppid()\n";
    let late = to_d.replace("0.010210", "0.014210");
    let begin = ["charge 1", "yield cpu0", "charge 1", "tick", "switch 1 to 3", "charge 3", "block", "switch 3 to 1"];
    for (rest, wanted) in [
        (&[schedules, &to_d][..], &["charge 1", "switch 1 to 5"][..]),
        (&[&to_d], &["switch 1 to 5"]),
        (&[schedules, &call, TICK_LATER, &late], &["charge 1", "repick cpu0", "charge 1", "tick", "switch 1 to 5"]),
    ] {
        check("7.3.4", &[&[YIELD_73, flagged, &preempted, back], rest].concat(), &[&begin, wanted].concat());
    }
    // Charged: an interrupt that came later preempts, and the yield has picked before it.
    let charged = "a-1 [000] dN.2. 0.004105: sched_stat_runtime: comm=a pid=1 runtime=5000 [ns]\n";
    let picks = ["charge 1", "yield cpu0", "repick cpu0", "charge 1", "tick", "charge 1", "switch 1 to 3"];
    check("7.3.4", &[YIELD_73, flagged, charged, &preempted], &picks);
}

/// A task that enters `sched_yield` and is of another class by then, or that is alone, does not yield at its next
/// charge in the fair class.
#[test]
fn a_yield_that_charged_nothing_is_over_at_the_tasks_next_call() {
    let yields = "a-1 [000] ..... 0.004000: sys_sched_yield()\n";
    let call = "a-1 [000] ..... 0.004010: sa: (__sched_setscheduler+0x4/0x10) p=1 policy=0 nice=3 slice=0\n";
    let charged = "a-1 [000] d..1. 0.004012: sched_stat_runtime: comm=a pid=1 runtime=3900000 [ns]\n";
    let wanted = ["yield cpu0", "repick cpu0", "charge 1"];
    check("7.3.4", &[yields, call, charged, TICK_LATER], &[&wanted[..], &["charge 1", "tick"]].concat());
    let real_time = "
        a-1 [000] ..... 0.003000: sa: (__sched_setscheduler+0x4/0x10) p=1 policy=1 nice=0 slice=0
        a-1 [000] d..2. 0.003010: sched_stat_runtime: comm=a pid=1 runtime=2900000 [ns]
    ";
    let again = charged.replace("..1.", "..2.").replace("0.004012", "0.005012");
    let wanted = ["charge 1", "repick cpu0", "charge 1", "charge 1", "tick"];
    check("7.3.4", &[real_time, yields, call, charged, &again, TICK_LATER], &wanted);
}

/// The clock may have been updated, in an interrupt that no record shows, between the yield and its `schedule()`, which
/// charges then.
#[test]
fn the_schedule_of_a_yield_may_charge_the_task_again() {
    let charged = "a-1 [000] d..2. 0.004070: sched_stat_runtime: comm=a pid=1 runtime=12000 [ns]\n";
    let yields = ["charge 1", "yield cpu0", "charge 1", "switch 1 to 3"];
    check("7.3.4", &[YIELD_73, charged, TO_C_AT_ONCE], &yields);
    let again = ["charge 1", "yield cpu0", "repick cpu0", "charge 1", "switch 1 to 3"];
    check("7.3.4", &[YIELD_73, &charged.replace("d..2.", "dN.2."), TO_C_AT_ONCE], &again);
}

/// Code that locks the task as well as its queue (`task_rq_lock`) charges it with the preempt count of `schedule()`: a
/// change of its attributes enqueues it again, and another CPU gets the lock before the switch. `schedule()` does
/// neither.
#[test]
fn a_charge_under_task_rq_lock_after_a_yield_is_not_that_of_its_schedule() {
    let charged = "a-1 [000] d..2. 0.004070: sched_stat_runtime: comm=a pid=1 runtime=12000 [ns]\n";
    let again = "a-1 [000] d..2. 0.004072: at: (enqueue_task_fair+0x4/0xed0) p=1 fl=10 cpu=0 c=4000000\n";
    for locked in [&[charged, again][..], &[charged, REMOTE_WAKEUP], &[charged, WAKES_UNCHARGED]] {
        let records = [&[YIELD_73], locked, &[TO_C_AT_ONCE]].concat();
        let found = words(&read("7.3.4", &records));
        let yields = found.iter().position(|word| word == "yield cpu0").unwrap();
        assert_eq!(found[yields + 1], "repick cpu0", "{}: {found:?}", records.concat());
    }
}

const WAKES_UNCHARGED: &str = "d-4 [001] d.s4. 0.008000: sched_wakeup: comm=c pid=3 prio=120 target_cpu=000\n";
const EARLIER_TICK: &str = "a-1 [000] d.h1. 0.002000: sched_stat_runtime: comm=a pid=1 runtime=1000000 [ns]\n";
const YIELD_73: &str = "
    a-1 [000] ..... 0.004000: sys_sched_yield()
    a-1 [000] d..1. 0.004002: sched_stat_runtime: comm=a pid=1 runtime=3900000 [ns]
";
const ATOMIC_TICK: &str = "a-1 [000] d.h2. 0.009001: sched_stat_runtime: comm=a pid=1 runtime=5000000 [ns]\n";
const TO_C_AT_ONCE: &str = "a-1 [000] d..2. 0.009020: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=c next_pid=3 next_prio=120\n";

/// 6.12 and later skip that charge: if the task is switched out uncharged, however late, an interrupt came before the
/// pick. If it is charged before, or does other work, it was picked again.
#[test]
fn a_late_interrupt_comes_before_the_pick_of_a_yield_if_the_switch_is_uncharged() {
    let late = TO_C_AT_ONCE.replace("0.009020", "0.009200");
    let preemptible = ATOMIC_TICK.replace("d.h2.", "d.h1.");
    let call = "a-1 [000] ..... 0.009010: sys_getppid()\n";
    let charge = "a-1 [000] dN.2. 0.009015: sched_stat_runtime: comm=a pid=1 runtime=14000 [ns]\n";
    let wakes = "d-4 [001] d.s4. 0.008000: sched_wakeup: comm=c pid=3 prio=120 target_cpu=000\n";
    let [again, not_again] = [true, false];
    for (records, picked) in [
        (&[EARLIER_TICK, YIELD_73, ATOMIC_TICK, TO_C_AT_ONCE][..], not_again),
        (&[EARLIER_TICK, YIELD_73, ATOMIC_TICK, &late], not_again),
        (&[EARLIER_TICK, YIELD_73, &preemptible, TO_C_AT_ONCE], not_again),
        (&[EARLIER_TICK, YIELD_73, &preemptible, charge, TO_C_AT_ONCE], again),
        (&[EARLIER_TICK, YIELD_73, ATOMIC_TICK, call, TO_C_AT_ONCE], again),
        (&[EARLIER_TICK, YIELD_73, wakes, &preemptible, TO_C_AT_ONCE], not_again),
        (&[EARLIER_TICK, YIELD_73, wakes, &preemptible.replace("d.h", "dNh"), TO_C_AT_ONCE], again),
    ] {
        let read = read("6.12.107", records);
        let repicks = read.iter().any(|operation| matches!(operation, Operation::Repick { .. }));
        assert_eq!(repicks, picked, "{records:?}: {read:?}");
    }
}
