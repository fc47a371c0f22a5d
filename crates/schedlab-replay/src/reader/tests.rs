//! One test for each thing that records say by their order alone; what they say of need-resched is in `flag_tests`.

use super::testing::{operations, words};
use crate::operation::{Operation, PrevState};

/// Task a (1) runs on CPU 0, d (4) on CPU 1.
const START: &str = "
    d-4 [001] ..... 0.000010: sched_process_exit: comm=x pid=9 prio=120
    x-8 [000] d..2. 0.000020: sched_switch: prev_comm=x prev_pid=8 prev_prio=120 prev_state=D ==> next_comm=a next_pid=1 next_prio=120
    a-1 [000] d.h1. 0.000030: sched_stat_runtime: comm=a pid=1 runtime=10000 [ns]
";

pub(super) fn read(release: &str, lines: &[&str]) -> Vec<Operation> {
    operations(release, &format!("{START}{}", lines.concat()))
}

pub(super) fn check(release: &str, lines: &[&str], wanted: &[&str]) {
    let (known, all) = (words(&read(release, &[])), words(&read(release, lines)));
    assert_eq!(all[known.len()..], *wanted, "{release}: {}", lines.concat());
}

pub(super) const TICK: &str = "a-1 [000] d.h1. 0.004000: sched_stat_runtime: comm=a pid=1 runtime=3900000 [ns]\n";
pub(super) const SCHEDULE: &str = "a-1 [000] dN.2. 0.004005: sched_stat_runtime: comm=a pid=1 runtime=5000 [ns]\n";
pub(super) const REMOTE_WAKEUP: &str = "
    d-4 [001] d.s3. 0.005000: sched_waking: comm=c pid=3 prio=120 target_cpu=000
    d-4 [001] d.s4. 0.005001: sched_stat_runtime: comm=a pid=1 runtime=995000 [ns]
    d-4 [001] d.s4. 0.005002: sched_wakeup: comm=c pid=3 prio=120 target_cpu=000
";
pub(super) const TO_C: &str = "
    a-1 [000] d..2. 0.006000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=c next_pid=3 next_prio=120
";
pub(super) const MIGRATE: &str = "
    d-4 [001] d..2. 0.004500: sched_migrate_task: comm=b pid=2 prio=120 orig_cpu=1 dest_cpu=0
    d-4 [001] d..3. 0.004501: sched_stat_runtime: comm=a pid=1 runtime=500000 [ns]
";
pub(super) const TICK_LATER: &str = "a-1 [000] d.h1. 0.014000: sched_stat_runtime: comm=a pid=1 runtime=3700000 [ns]\n";
const FORK: &str = "a-1 [000] ..... 0.004400: sched_process_fork: comm=a pid=1 child_comm=a child_pid=5\n";

/// `schedule()` picked the running task again before the next record of its CPU, which is a fork or a switch.
#[test]
fn a_pick_of_the_running_task_is_found_before_a_fork_and_before_a_switch() {
    check("6.12.107", &[TICK, SCHEDULE, FORK], &["charge 1", "tick", "charge 1", "repick cpu0", "fork 5"]);
    // Another CPU charges the task: `schedule()` has given up the queue's lock, and has picked.
    let picked = ["charge 1", "tick", "charge 1", "repick cpu0", "charge 1", "wake 3", "switch 1 to 3"];
    check("6.12.107", &[TICK, SCHEDULE, REMOTE_WAKEUP, TO_C], &picked);
    // Nothing in between: the charge is that of the `schedule()` that switches.
    check("6.12.107", &[TICK, SCHEDULE, TO_C], &["charge 1", "tick", "charge 1", "switch 1 to 3"]);
    // Without a charge by `schedule()` the flag may still be the tick's.
    let flagged = TICK.replace("d.h1.", "dNh1.");
    let set = ["charge 1", "tick", "charge 1", "wake 3", "switch 1 to 3"];
    check("6.8.0", &[&flagged, REMOTE_WAKEUP, TO_C], &set);
}

/// A write to a cpuset, which no record shows, enqueues a waiting task again as it was (ENQUEUE_RESTORE without
/// ENQUEUE_MOVE).
#[test]
fn a_waiting_task_that_is_enqueued_as_it_was_has_a_new_affinity() {
    let charged = "d-4 [001] d..2. 0.005200: sched_stat_runtime: comm=a pid=1 runtime=190000 [ns]\n";
    let requeued =
        |flags| format!("d-4 [001] d..2. 0.005210: at: (enqueue_task_fair+0x4/0xed0) p=3 fl={flags} cpu=0 c=5200000\n");
    let calls = "d-4 [001] ..... 0.005190: ni: (set_user_nice+0x4/0x300) p=3 nice=4\n";
    let count = |records: &[&str]| {
        let affinity = |operation: &&Operation| matches!(operation, Operation::SetAffinity { pid: 3 });
        read("7.2.13", records).iter().filter(affinity).count()
    };
    assert_eq!(count(&[REMOTE_WAKEUP, charged, &requeued(10)]), 1);
    assert_eq!(count(&[REMOTE_WAKEUP, charged, &requeued(14)]), 0);
    assert_eq!(count(&[REMOTE_WAKEUP, calls, charged, &requeued(10)]), 0);
}

/// `sched_setnuma` enqueues a task as it was, too: on a machine with several nodes its mask counts as unchanged.
#[test]
fn a_task_that_is_enqueued_as_it_was_may_have_a_new_preferred_node() {
    let again = "
        d-4 [001] d..2. 0.005200: sched_stat_runtime: comm=a pid=1 runtime=190000 [ns]
        d-4 [001] d..2. 0.005210: at: (enqueue_task_fair+0x4/0xed0) p=3 fl=10 cpu=0 c=5200000
    ";
    let selected = "
        c-3 [000] d..2. 0.006100: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120
        d-4 [001] d..2. 0.006200: sched_waking: comm=c pid=3 prio=120 target_cpu=000
        d-4 [001] d..2. 0.006210: st: (select_task_rq_fair+0x4/0x17f0) prev=0 fl=0x8 j=9
        d-4 [001] d..2. 0.006220: str: (try_to_wake_up+0x257/0x2f0 <- select_task_rq_fair) to=0
    ";
    let (one, two) = ("# topology nodes 0-1\n", "# topology nodes 0\n# topology nodes 1\n");
    for (nodes, again, affinity_set) in [("", again, true), (one, again, true), (two, again, false), (one, "", false)] {
        let text = [nodes, START, REMOTE_WAKEUP, again, TO_C, selected].concat();
        let found = operations("7.2.13", &text).into_iter().find_map(|operation| match operation {
            Operation::SelectTaskRq(select) => Some((select.pid, select.affinity_set)),
            _ => None,
        });
        assert_eq!(found, Some((3, affinity_set)), "{text}");
    }
}

/// Code that sets the affinity of a waiting task moves it itself, to the CPU on which it runs or to another one: that
/// CPU has not dequeued its running task, whether or not a record names the call.
#[test]
fn a_task_that_gets_a_new_affinity_may_be_moved_by_the_code_that_sets_it() {
    let sets = "
        d-4 [001] d..2. 0.005200: sched_stat_runtime: comm=a pid=1 runtime=190000 [ns]
        d-4 [001] d..2. 0.005210: at: (enqueue_task_fair+0x4/0xed0) p=3 fl=10 cpu=0 c=5200000
        d-4 [001] d..2. 0.005300: sched_migrate_task: comm=c pid=3 prio=120 orig_cpu=0 dest_cpu=1
        d-4 [001] d..2. 0.005400: sched_stat_runtime: comm=d pid=4 runtime=300000 [ns]
        d-4 [001] d..2. 0.005410: sched_switch: prev_comm=d prev_pid=4 prev_prio=120 prev_state=S ==> next_comm=c next_pid=3 next_prio=120
    ";
    let wanted = ["charge 1", "wake 3", "charge 1", "affinity of 3", "charge 4", "block", "attach 3", "switch 4 to 3"];
    check("7.2.13", &[REMOTE_WAKEUP, sets], &wanted);
}

/// A probe shows the sums from which the weight of a group on a CPU is computed, after the charge of that operation or
/// before its other records.
#[test]
fn the_sums_that_an_operation_reads_are_those_behind_its_charge_or_before_its_record() {
    let woken = |time: &str| {
        format!("d-4 [001] d.s4. {time}: wk: (x+0x4/0x10) p=3 v=5 d=9 l=0 on=1 sd=0 s=9 z=5 a=0 w=1 n=1 hw=1048576 c=5000000 tg=0xaa gw=1048576 la=5 lc=4 ta=9 ra=1 rc=1 tr=3\n")
    };
    let tick = TICK_LATER.replace("a-1", "c-3").replace("comm=a pid=1", "comm=c pid=3");
    let wakes = "
        d-4 [001] d.s3. 0.015000: sched_waking: comm=e pid=5 prio=120 target_cpu=000
        d-4 [001] d.s5. 0.015001: cg: (calc_concur_shares+0x4/0x60) cpu=0 tg=0xaa lc=4 ta=2000 rc=1 tr=3
        d-4 [001] d.s4. 0.015002: sched_stat_runtime: comm=c pid=3 runtime=995000 [ns]
        d-4 [001] d.s4. 0.015003: sched_wakeup: comm=e pid=5 prio=120 target_cpu=000
    ";
    let read = "c-3 [000] d.h2. 0.014001: cg: (calc_concur_shares+0x4/0x60) cpu=0 tg=0xaa lc=4 ta=1000 rc=1 tr=3\n";
    let records = [REMOTE_WAKEUP, &woken("0.005003"), TO_C, &tick, read, wakes];
    let others = |operation: &Operation| match operation {
        Operation::UpdateTgLoad { load, .. } => load.others.map(|others| (others.load, others.runnable)),
        _ => None,
    };
    let found: Vec<_> = super::tests::read("7.3.4", &records).iter().filter_map(others).collect();
    assert_eq!(found.first(), Some(&(996, 2)), "{found:?}");
    assert_eq!(found.last(), Some(&(1996, 2)), "{found:?}");
}

/// What was read before a tick is not that of an operation after it.
#[test]
fn sums_that_were_read_before_a_tick_are_used_up() {
    let in_group = "a-1 [000] d.h2. 0.003000: wk: p=3 v=1 d=2 l=0 on=1 s=3 tg=0xaa gw=512\n";
    let sums = |time: &str, sum: u32| {
        format!("d-4 [001] d..3. {time}: cg: (calc_concur_shares+0x4/0x60) cpu=0 tg=0xaa lc=4 ta={sum} rc=1 tr=3\n")
    };
    let tick = |time: &str| format!("d-4 [001] d.h2. {time}: sched_stat_runtime: comm=d pid=4 runtime=4000000 [ns]\n");
    let (ticks, wakes) = (
        [tick("0.004000"), tick("0.008000")].concat(),
        "
        d-4 [001] d..3. 0.009000: sched_wakeup: comm=c pid=3 prio=120 target_cpu=000
    ",
    );
    let (older, newer) = (sums("0.003900", 1004), sums("0.003910", 2004));
    for (records, read) in [
        (&[in_group, &older, wakes][..], Some(1000)),
        (&[in_group, &older, &newer, wakes], Some(2000)),
        (&[in_group, &older, &newer, &ticks, wakes], None),
    ] {
        let found = self::read("7.3.4", records).into_iter().find_map(|operation| match operation {
            Operation::UpdateTgLoad { load, .. } => load.others.map(|others| others.load),
            _ => None,
        });
        assert_eq!(found, read, "{}", records.concat());
    }
}

/// `schedule()` has found no fair task, and has given up the lock, if it runs a real-time task that was throttled until
/// then.
#[test]
fn a_queue_is_empty_where_a_task_is_unthrottled_during_schedule() {
    let throttled = "
        a-1 [000] d..2. 0.000100: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=r next_pid=7 next_prio=79
        r-7 [000] d..2. 0.000200: sched_switch: prev_comm=r prev_pid=7 prev_prio=79 prev_state=R ==> next_comm=a next_pid=1 next_prio=120
    ";
    let charged =
        |flag| format!("a-1 [000] d{flag}.2. 0.000300: sched_stat_runtime: comm=a pid=1 runtime=90000 [ns]\n");
    let blocks = "
        a-1 [000] d..2. 0.000310: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=r next_pid=7 next_prio=79
        a-1 [000] d..3. 0.000312: sw: (__probestub_sched_switch+0x4/0x10) pp=1 pv=9 pd=9 pl=0 pon=0 psd=0 ps=9 np=7 nv=9 nd=9 nl=0 non=0 nsd=0 ns=9 z=9 a=0 w=0 n=0 c=777000
    ";
    for (flag, empty) in [(".", true), ("N", false)] {
        let read = read("6.12.107", &[throttled, &charged(flag), blocks]);
        assert_eq!(read.iter().any(|operation| matches!(operation, Operation::NewidleBalance { .. })), empty, "{flag}");
    }
}

/// A task is moved to an idle CPU, and another one is woken there at once: what the probe finds on the queue is still
/// there. If it finds nothing, the CPU has entered `schedule()`, and the task was delayed.
#[test]
fn an_idle_cpu_has_not_looked_for_a_task_that_a_probe_still_finds_there() {
    let idles = "a-1 [000] d..2. 0.004000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n";
    let moves = "
        d-4 [001] d..3. 0.004500: sched_migrate_task: comm=b pid=2 prio=120 orig_cpu=1 dest_cpu=0
        d-4 [001] d..3. 0.004501: at: (enqueue_task_fair+0x4/0xed0) p=2 fl=262144 cpu=0 c=4500000
        d-4 [001] d..4. 0.004502: sched_waking: comm=a pid=1 prio=120 target_cpu=000
    ";
    let finds =
        |n| format!("d-4 [001] d..5. 0.004503: wg: (x+0x4/0x10) p=1 v=5 d=9 l=0 on=0 sd=0 s=9 z=5 a=0 w={n} n={n}\n");
    for (queued, looked) in [(1, false), (0, true)] {
        let found = read("7.2.13", &[idles, moves, &finds(queued)]);
        let looks = |operation: &Operation| matches!(operation, Operation::NewidleBalance { .. });
        assert_eq!(found.iter().any(looks), looked, "{queued}: {found:?}");
    }
}

/// `schedule()` picked the running task again, and a task that another CPU attached has set need-resched since:
/// whatever reads the scheduler's state next shows that flag.
#[test]
fn a_pick_comes_before_what_another_cpu_decides_after_its_charge() {
    let tick = "
        a-1 [000] dNh1. 0.008000: ck: (update_curr+0x0/0x1e0) cpu=0 c=8000000
        a-1 [000] dNh1. 0.008001: sched_stat_runtime: comm=a pid=1 runtime=3500000 [ns]
    ";
    let flagged = TICK.replace("d.h1.", "dNh1.");
    let wanted = ["charge 1", "tick", "charge 1", "repick cpu0", "charge 1", "attach 2", "charge 1", "tick"];
    check("6.1.192", &[&flagged, SCHEDULE, MIGRATE, tick], &wanted);
    check("6.1.192", &[&flagged, SCHEDULE, tick], &["charge 1", "tick", "charge 1", "charge 1", "tick"]);
}

/// The task that requests a change, the form of the request, and where the change is made.
#[test]
fn changes_of_nice_values_are_followed() {
    let charge = "a-1 [000] d..2. 0.004500: sched_stat_runtime: comm=a pid=1 runtime=10000 [ns]\n";
    let schedule = "a-1 [000] dN.2. 0.005990: sched_stat_runtime: comm=a pid=1 runtime=1490000 [ns]\n";
    let to_c = [schedule, &TO_C.replace("prev_prio=120", "prev_prio=125")].concat();
    // No record announces it: the charge before the switch that shows the new priority.
    let inferred = ["charge 1", "weight of 1 is Nice(5)", "charge 1", "switch 1 to 3"];
    check("6.12.107", &[charge, &to_c], &inferred);
    for announced in [
        "a-1 [000] ..... 0.004400: sys_setpriority(which: 0, who: 0, niceval: 5)\n",
        "a-1 [000] ..... 0.004400: sys_enter_setpriority: which: 0x00000000, who: 0x00000000, niceval: 0x00000005\n",
        "a-1 [000] ..... 0.004400: ni: (set_user_nice+0x0/0x10) p=1 nice=5\n",
    ] {
        check("6.12.107", &[announced, charge, &to_c], &["charge 1", "nice of 1 is 5", "charge 1", "switch 1 to 3"]);
    }
    for niceval in ["fffffffb", "fffffffffffffffb"] {
        let call = format!("a-1 [000] ..... 0.004400: sys_setpriority(which: 0, who: 0, niceval: {niceval})\n");
        let to_c = to_c.replace("prev_prio=125", "prev_prio=115");
        check("6.12.107", &[&call, charge, &to_c], &["charge 1", "nice of 1 is -5", "charge 1", "switch 1 to 3"]);
    }
    // Of another task, which is asleep: its wakeup shows it, or a probe.
    let wakeup = REMOTE_WAKEUP.replace("prio=120", "prio=130");
    let again = [REMOTE_WAKEUP, TO_C, "c-3 [000] d..2. 0.006500: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n"].concat();
    let seen = ["charge 1", "wake 3", "switch 1 to 3", "switch 3 to 1"];
    let later = wakeup.replace("0.005", "0.0075");
    check("6.12.107", &[&again, &later], &[&seen[..], &["weight of 3 is Nice(10)", "charge 1", "wake 3"]].concat());
    let probe = "a-1 [000] ..... 0.007000: ni: (set_user_nice+0x0/0x10) p=3 nice=10\n";
    let own = "a-1 [000] ..... 0.007400: sched_process_fork: comm=a pid=1 child_comm=a child_pid=5\n";
    check(
        "6.12.107",
        &[&again, probe, own, &later],
        &[&seen[..], &["nice of 3 is 10", "fork 5", "charge 1", "wake 3"]].concat(),
    );
}

/// The rescuer of a workqueue sets its own affinity: it is enqueued as it was (ENQUEUE_RESTORE without ENQUEUE_MOVE),
/// and no system call shows it.
#[test]
fn an_affinity_that_a_kernel_thread_sets_for_itself_is_followed() {
    let call = "a-1 [000] ..... 0.000090: sys_sched_setaffinity(pid: 0, len: 8, user_mask_ptr: 0x1)\n";
    let charged = "a-1 [000] d..2. 0.000100: sched_stat_runtime: comm=a pid=1 runtime=70000 [ns]\n";
    let again = |pid: i32, flags: u32| {
        format!("a-1 [000] d..2. 0.000110: at: (enqueue_task_fair+0x4/0xed0) p={pid} fl={flags} cpu=0 c=100000\n")
    };
    for (lines, follows) in [
        ([charged, &again(1, 10)], true),
        ([charged, &again(1, 72)], false),
        ([charged, &again(3, 10)], false),
        (["", &again(1, 10)], false),
        ([&format!("{call}{charged}"), &again(1, 10)], true),
    ] {
        let found = words(&read("7.2.13", &lines));
        let times = found.iter().filter(|word| *word == "affinity of 1").count();
        assert_eq!(times, usize::from(follows), "{}: {found:?}", lines.concat());
    }
}

/// `kthread_bind` waits until the new thread sleeps; if its dequeue is delayed, it ends.
#[test]
fn a_wait_for_an_inactive_task_ends_its_delay() {
    let charged = "a-1 [000] d..2. 0.000100: sched_stat_runtime: comm=a pid=1 runtime=70000 [ns]\n";
    let wakes = "a-1 [000] d..3. 0.000110: sched_waking: comm=k pid=3 prio=120 target_cpu=000\n";
    let shown = |queued: u32| {
        format!(
            "a-1 [000] d..4. 0.000111: wg: (__probestub_sched_waking+0x4/0x10) p=3 v=0 d=1 l=0 on={queued} sd=0 s=1\n"
        )
    };
    let (charge, end) = ("charge 1", "delay of 3 ends");
    check("7.2.13", &[charged, wakes, &shown(0)], &[charge, end]);
    check("7.2.13", &[charged, wakes, &shown(1)], &[charge]);
    check("7.2.13", &[wakes, &shown(0)], &[]);
}

/// A child is of its parent's class, which its first wakeup shows.
#[test]
fn a_child_of_a_real_time_task_never_enters_the_fair_class() {
    let woken =
        |prio: i32| format!("a-1 [000] d..2. 0.004410: sched_wakeup_new: comm=a pid=5 prio={prio} target_cpu=000\n");
    check("7.2.13", &[TICK, FORK, &woken(120)], &["charge 1", "tick", "fork 5", "wake 5"]);
    check("7.2.13", &[TICK, FORK, &woken(89)], &["charge 1", "tick"]);
}

/// A change that is the first record of its CPU.
#[test]
fn a_change_before_the_first_event_is_followed() {
    let lines = "
        a-1 [000] ..... 0.000005: sys_setpriority(which: 0, who: 0, niceval: 5)
        a-1 [000] d..2. 0.000010: sched_stat_runtime: comm=a pid=1 runtime=10000 [ns]
        a-1 [000] d.h1. 0.000020: sched_stat_runtime: comm=a pid=1 runtime=10000 [ns]
    ";
    assert_eq!(words(&operations("6.12.107", lines)), ["charge 1", "nice of 1 is 5", "charge 1", "tick"]);
}

/// A task that is queued when the recording begins is known from then on, however long it waits.
#[test]
fn a_task_queued_at_the_start_is_found_however_long_it_waits() {
    let ticks = (0..100).map(|nth| {
        format!("a-1 [000] d.h1. 0.{:06}: sched_stat_runtime: comm=a pid=1 runtime=4000000 [ns]\n", 4000 * (nth + 1))
    });
    let to_c = TO_C.replace("0.006", "0.406");
    let all = operations("6.12.107", &[START.to_owned(), ticks.collect(), to_c].concat());
    let added = |operation: &Operation| matches!(operation, Operation::AddTask(new) if new.pid == 3);
    let (at, ran) = (all.iter().position(added), all.iter().position(|one| matches!(one, Operation::Tick { .. })));
    assert!(at.unwrap() < ran.unwrap(), "{all:?}");
}

/// Up to 5.17 a switch reads the state when it is recorded: a task that another CPU is waking by then is shown as
/// runnable.
#[test]
fn a_task_that_sleeps_and_is_being_woken_does_not_stay_queued() {
    let waking = "
        d-4 [001] d..2. 0.005000: sched_waking: comm=a pid=1 prio=120 target_cpu=000
        a-1 [000] d..2. 0.005010: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=c next_pid=3 next_prio=120
        d-4 [001] d..2. 0.005020: sched_wakeup: comm=a pid=1 prio=120 target_cpu=001
    ";
    let state = |release, text: &str| {
        let of_task = |operation| match operation {
            Operation::Switch(switch) if switch.prev == 1 => Some(switch.prev_state),
            _ => None,
        };
        read(release, &[text]).into_iter().find_map(of_task).unwrap()
    };
    assert_eq!(state("5.10.262", waking), PrevState::Asleep);
    assert_eq!(state("5.17", waking), PrevState::Asleep);
    // The switch took its time before it read the state.
    let lines: Vec<&str> = waking.trim().lines().collect();
    let late = [&lines[1].replace("0.005010", "0.004990"), lines[0], lines[2]].join("\n");
    assert_eq!(state("5.10.262", &late), PrevState::Asleep);
    // The kernel passes the state on, or it says that the task was preempted, or the task runs before it is woken.
    assert_eq!(state("5.18", waking), PrevState::Runnable);
    assert_eq!(state("5.10.262", &waking.replace("prev_state=R", "prev_state=R+")), PrevState::Runnable);
    let runs = "c-3 [000] d..2. 0.005015: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n";
    assert_eq!(state("5.10.262", &format!("{}\n{runs}", lines[1])), PrevState::Runnable);
}

/// Up to 5.16 a parent may be preempted within `copy_process` and moved: the child is placed where `sched_fork` found
/// the parent, at the charge right before the preemption if there is no other.
#[test]
fn a_child_is_placed_where_its_parent_was_when_it_was_forked() {
    let forks = "
        a-1 [001] dN... 0.001000: sched_stat_runtime: comm=a pid=1 runtime=100000 [ns] vruntime=100000 [ns]
        a-1 [001] d.... 0.001010: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R+ ==> next_comm=b next_pid=2 next_prio=120
        c-3 [000] d.s.. 0.002000: sched_migrate_task: comm=a pid=1 prio=120 orig_cpu=1 dest_cpu=0
        c-3 [000] d.... 0.003000: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=a next_pid=1 next_prio=120
        a-1 [000] ..... 0.004000: sched_process_fork: comm=a pid=1 child_comm=a child_pid=5
        a-1 [000] d.... 0.004010: st: (select_task_rq_fair+0x0/0x10) prev=1 fl=0x4 j=4294894770 p=5 nc=2 am=0x3 wf=0 wt=0 ru=1 el=1024 et=0 ql=1024 qt=0 ic=0
        a-1 [000] d.... 0.004020: str: (wake_up_new_task+0x80/0x260 <- select_task_rq_fair) to=0
        a-1 [000] d.... 0.004030: sched_wakeup_new: comm=a pid=5 prio=120 target_cpu=000
    ";
    let forked = |text: &str| {
        let of_child = |operation: &Operation| match *operation {
            Operation::Fork { cpu, child: 5, certain, .. } => Some((cpu.0, certain)),
            _ => None,
        };
        let all = operations("5.14.2", text);
        let switched = all.iter().position(|one| matches!(one, Operation::Switch(switch) if switch.prev == 1));
        let at = all.iter().position(|one| of_child(one).is_some());
        (at.and_then(|at| of_child(&all[at])).unwrap(), at < switched)
    };
    assert_eq!(forked(forks), ((1, true), true));
    // It was preempted on its return to user mode, or the child was born after the move.
    assert_eq!(forked(&forks.replace("prev_state=R+", "prev_state=R")).0 .0, 0);
    assert_eq!(forked(&forks.replace("prev=1 fl", "prev=0 fl")).0 .0, 0);
}

/// A CPU that is in no scheduling domain when events are lost gets one later.
#[test]
fn a_cpu_that_is_inactive_while_events_are_lost_comes_back() {
    let domain = |time: u32, cpu: u32, domain: &str| {
        format!("d-4 [001] ..... 0.0000{time}: ad: (cpu_attach_domain+0x4/0x10) cpu={cpu} sd={domain}\n")
    };
    let leaves = [domain(40, 1, "0x0"), domain(41, 0, "0x0"), domain(42, 0, "0xff")].concat();
    let returns = [domain(50, 0, "0x0"), domain(51, 0, "0xff"), domain(52, 1, "0xff")].concat();
    for lost in ["", "CPU:1 [LOST 5 EVENTS]\n"] {
        let found = read("6.12.107", &[&leaves, lost, &returns]);
        assert_eq!(found.iter().any(|operation| matches!(operation, Operation::Lost)), !lost.is_empty());
        let changes = found.into_iter().filter_map(|operation| match operation {
            Operation::SetCpuActive { cpu, active } => Some((cpu.0, active)),
            _ => None,
        });
        assert_eq!(changes.collect::<Vec<_>>(), [(1, false), (1, true)], "{lost}");
    }
}
