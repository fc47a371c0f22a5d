//! Need-resched, and tasks that are attached: what records show of the outcome of a decision.

use super::tests::{read, MIGRATE, REMOTE_WAKEUP, SCHEDULE, TICK, TO_C};
use crate::operation::{Cause, Flag, Operation};

/// An interrupt that comes while another CPU checks whether a task preempts shows the flag from before the check.
#[test]
fn an_interrupt_during_the_check_of_another_cpu_does_not_show_its_outcome() {
    let attaches = "
        d-4 [001] d..2. 0.005000: sched_migrate_task: comm=c pid=3 prio=120 orig_cpu=1 dest_cpu=0
        d-4 [001] d..3. 0.005001: sched_stat_runtime: comm=a pid=1 runtime=995000 [ns]
        a-1 [000] d.h2. 0.005010: sched_waking: comm=e pid=5 prio=120 target_cpu=001
    ";
    let returns = "d-4 [001] d..3. 0.005020: cpr: (wakeup_preempt+0x8a/0x90 <- wakeup_preempt_fair)\n";
    let set = "a-1 [000] dNh3. 0.005030: sched_stat_runtime: comm=a pid=1 runtime=45000 [ns]\n";
    for (records, after) in [(&[attaches, returns, set][..], Some(true)), (&[attaches, set], Some(false))] {
        let flags = read("7.3.4", records).into_iter().find_map(|operation| match operation {
            Operation::Attach { flag, .. } => Some(flag.after),
            _ => None,
        });
        assert_eq!(flags, Some(after), "{records:?}");
    }
}

fn wakeup_of(operations: &[Operation], pid: i32) -> Flag {
    let found = operations.iter().find_map(|operation| match operation {
        Operation::Wakeup(wakeup) if wakeup.pid == pid => Some(wakeup.flag),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{pid} is not woken: {operations:?}"))
}

/// A probe shows that b is enqueued on CPU 0: it is there before whatever needs the lock of that queue next.
#[test]
fn a_task_is_attached_before_other_cpus_use_its_queue() {
    let enqueued = "
        d-4 [001] d..2. 0.004500: sched_migrate_task: comm=b pid=2 prio=120 orig_cpu=1 dest_cpu=0
        d-4 [001] d..3. 0.004501: at: (enqueue_task_fair+0x4/0xcc0) p=2 fl=262144 cpu=0 c=4500000
    ";
    let by = |cpu: u32, task: &str| {
        format!(
            "{task} [00{cpu}] d..2. 0.004600: sched_migrate_task: comm=c pid=3 prio=120 orig_cpu=0 dest_cpu={cpu}\n"
        )
    };
    let enqueues = "f-6 [002] d..3. 0.004600: at: (enqueue_task_fair+0x4/0xcc0) p=3 fl=262144 cpu=0 c=4600000\n";
    let moved = "f-6 [002] d..2. 0.004490: sched_migrate_task: comm=c pid=3 prio=120 orig_cpu=2 dest_cpu=0\n";
    for (records, wanted) in [
        (&[enqueued, TO_C][..], "-2 +2 switch"),
        (&[enqueued, &by(1, "d-4")], "-2 +2 -3"),
        (&[enqueued, &by(2, "f-6")], "-2 +2 -3"),
        (&[moved, enqueued, enqueues, TO_C], "-3 -2 +2 +3 switch"),
    ] {
        let steps: Vec<String> = read("7.3.4", records)
            .iter()
            .filter_map(|operation| match operation {
                Operation::Detach { pid, .. } => Some(format!("-{pid}")),
                Operation::Attach { pid, .. } => Some(format!("+{pid}")),
                Operation::Switch(switch) if switch.prev == 1 => Some("switch".to_owned()),
                _ => None,
            })
            .collect();
        assert_eq!(steps.join(" "), wanted, "{records:?}");
    }
}

/// The next record of a CPU shows the outcome for a task that another CPU has attached there: a switch that the flag
/// has caused, or the flag before a tick.
#[test]
fn the_next_record_of_a_cpu_shows_what_another_has_attached_there() {
    let enqueued = "
        d-4 [001] d..2. 0.004500: sched_migrate_task: comm=b pid=2 prio=120 orig_cpu=1 dest_cpu=0
        d-4 [001] d..3. 0.004501: at: (enqueue_task_fair+0x4/0xcc0) p=2 fl=262144 cpu=0 c=4500000
    ";
    let tick = |flag| format!("a-1 [000] d{flag}h1. 0.005000: sched_stat_runtime: comm=a pid=1 runtime=990000 [ns]\n");
    let sleeps = TO_C.replace("prev_state=R", "prev_state=S");
    for (record, wanted) in [
        (TO_C.to_owned(), (Some(true), Cause::Own)),
        (sleeps, (None, Cause::Own)),
        (tick("N"), (Some(true), Cause::Own)),
        (tick("."), (Some(false), Cause::Own)),
    ] {
        let read = read("7.3.4", &[enqueued, &record]);
        let flag = read.iter().find_map(|operation| match operation {
            Operation::Attach { pid: 2, flag, .. } => Some((flag.after, flag.cause)),
            _ => None,
        });
        assert_eq!(flag, Some(wanted), "{record}");
    }
}

/// A deadline task is replenished, or a real-time one unthrottled, by a timer that no record shows: a switch to it says
/// nothing about the decisions before.
#[test]
fn need_resched_may_be_that_of_a_task_that_was_throttled() {
    let flagged = "a-1 [000] dN.2. 0.005300: sched_stat_runtime: comm=a pid=1 runtime=250000 [ns]\n";
    let to = |pid: i32, prio: i32| {
        format!("a-1 [000] d..2. 0.005310: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==> next_comm=r next_pid={pid} next_prio={prio}\n")
    };
    let woken = "d-4 [001] d.s4. 0.005305: sched_wakeup: comm=r pid=7 prio=-1 target_cpu=000\n";
    let forked = "d-4 [001] d..4. 0.005305: sched_wakeup_new: comm=r pid=7 prio=-1 target_cpu=000\n";
    let pulled = "d-4 [001] d..4. 0.005305: sched_migrate_task: comm=r pid=7 prio=-1 orig_cpu=1 dest_cpu=0\n";
    for (records, cause) in [
        (&[REMOTE_WAKEUP, flagged, &to(3, 120)][..], Cause::Own),
        (&[REMOTE_WAKEUP, flagged, &to(7, -1)], Cause::Other),
        (&[REMOTE_WAKEUP, flagged, woken, &to(7, -1)], Cause::Own),
        (&[REMOTE_WAKEUP, flagged, forked, &to(7, -1)], Cause::Own),
        (&[REMOTE_WAKEUP, flagged, pulled, &to(7, -1)], Cause::Own),
        // A fair task whose class changes.
        (&[REMOTE_WAKEUP, flagged, &to(3, 98)], Cause::Own),
    ] {
        assert_eq!(wakeup_of(&read("6.1.192", records), 3).cause, cause, "{records:?}");
    }
}

/// `attach_tasks` checks one task after the other: each return shows the outcome of its own check.
#[test]
fn each_task_that_a_pass_attaches_is_checked_on_its_own() {
    let pulls = "
        a-1 [000] d.s1. 0.005000: sched_migrate_task: comm=c pid=3 prio=120 orig_cpu=1 dest_cpu=0
        a-1 [000] d.s1. 0.005010: sched_migrate_task: comm=e pid=5 prio=120 orig_cpu=1 dest_cpu=0
        a-1 [000] d.s1. 0.005020: sched_stat_runtime: comm=a pid=1 runtime=995000 [ns]
        a-1 [000] d.s1. 0.005030: cpr: (wakeup_preempt+0x8a/0x90 <- wakeup_preempt_fair)
        a-1 [000] dNs1. 0.005040: cpr: (wakeup_preempt+0x8a/0x90 <- wakeup_preempt_fair)
        a-1 [000] dN.2. 0.005050: sched_stat_runtime: comm=a pid=1 runtime=20000 [ns]
    ";
    let read = read("7.3.4", &[pulls]);
    let flags = read.iter().filter_map(|operation| match operation {
        Operation::Attach { pid, flag, .. } => Some((*pid, flag.after)),
        _ => None,
    });
    assert_eq!(flags.collect::<Vec<_>>(), [(5, Some(false)), (3, Some(true))]);
}

/// The balancer's check of a task that it attaches sets need-resched; a wakeup from afar before the next event of that
/// CPU is not checked.
#[test]
fn need_resched_that_an_attach_has_set_is_remembered() {
    for (shown, before) in [("N", true), (".", false)] {
        let call = format!("a-1 [000] .{shown}... 0.004600: sys_getppid()\n");
        let read = read("6.12.107", &[MIGRATE, &call, REMOTE_WAKEUP, TO_C]);
        let attached = read.iter().find_map(|operation| match operation {
            Operation::Attach { pid: 2, flag, .. } => Some(*flag),
            _ => None,
        });
        assert_eq!(attached.map(|flag| (flag.after, flag.cause)), Some((Some(before), Cause::Own)));
        assert_eq!(wakeup_of(&read, 3).before, before, "{read:?}");
    }
}

/// A flag that comes after two decisions may be due to either; after the wakeup of a real-time task it says nothing.
#[test]
fn a_flag_says_what_may_have_set_it() {
    let another = REMOTE_WAKEUP.replace("comm=c pid=3", "comm=e pid=6").replace("0.005", "0.0055");
    let real_time = another.replace("prio=120", "prio=98");
    for (second, cause) in [("", Cause::Own), (&another, Cause::Later), (&real_time, Cause::Other)] {
        let flag = wakeup_of(&read("6.1.192", &[REMOTE_WAKEUP, second, TO_C]), 3);
        assert_eq!((flag.before, flag.after, flag.cause), (false, Some(true), cause), "{second}");
    }
}

/// A probe within the tick shows need-resched; `schedule()`, whose clock a wakeup from afar lets stand, clears it
/// without a record.
#[test]
fn a_probe_within_the_tick_shows_its_outcome() {
    let averages = |shown: char| {
        format!(
            "a-1 [000] d{shown}h2. 0.004003: ql: (__probestub_pelt_cfs_tp+0x4/0x10) cpu=0 la=1617 ra=2255 ua=1062 ue=0 \
             pe=927 cc=1024 up=0x0\n"
        )
    };
    for (shown, after) in [('N', true), ('.', false)] {
        let read = read("6.12.107", &[TICK, &averages(shown), REMOTE_WAKEUP, "a-1 [000] ..... 0.006: sys_getppid()\n"]);
        let mut ticks = read.iter().filter_map(|operation| match operation {
            Operation::Tick { flag, .. } => Some((flag.before, flag.after, flag.cause)),
            _ => None,
        });
        let cause = if after { Cause::Own } else { Cause::Later };
        assert_eq!(ticks.next_back(), Some((false, Some(after), cause)), "{shown}");
        assert_eq!(wakeup_of(&read, 3).before, after, "{shown}");
    }
}

const CHECKED_WAKEUP: &str = "
    a-1 [000] d.h3. 0.005500: sched_waking: comm=e pid=6 prio=120 target_cpu=000
    a-1 [000] dNh3. 0.005501: cpr: (wakeup_preempt+0x61/0x70 <- check_preempt_wakeup_fair)
    a-1 [000] dNh3. 0.005502: sched_wakeup: comm=e pid=6 prio=120 target_cpu=000
";

/// The return from a preemption check shows the outcome of that check: of the wakeup that follows it, or of the new
/// task before it.
#[test]
fn the_return_from_a_check_shows_the_outcome_of_that_check_only() {
    let flag = wakeup_of(&read("6.12.107", &[REMOTE_WAKEUP, CHECKED_WAKEUP, TO_C]), 3);
    assert_eq!((flag.after, flag.cause), (Some(false), Cause::Own));
    let new = "d-4 [000] d..2. 0.005000: sched_wakeup_new: comm=b pid=2 prio=120 target_cpu=000\n";
    for (shown, after) in [("N", true), (".", false)] {
        let returns = format!("a-1 [000] d{shown}.2. 0.005001: cpr: (wakeup_preempt+0x61/0x70)\n");
        let flag = wakeup_of(&read("6.12.107", &[new, &returns, CHECKED_WAKEUP, TO_C]), 2);
        assert_eq!((flag.after, flag.cause), (Some(after), Cause::Own), "{shown}");
    }
}

/// A charge that ends a slice sets the flag before its record up to 6.11: then the flag need not be due to what came
/// before.
#[test]
fn a_flag_on_a_charge_may_be_that_of_the_charge() {
    let blocks = "
        a-1 [000] dN.2. 0.006000: sched_stat_runtime: comm=a pid=1 runtime=999000 [ns]
        a-1 [000] d..2. 0.006001: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=c next_pid=3 next_prio=120
    ";
    for (release, cause) in [("6.8.0", Cause::Later), ("6.12.107", Cause::Own)] {
        let flag = wakeup_of(&read(release, &[REMOTE_WAKEUP, blocks]), 3);
        assert_eq!((flag.after, flag.cause), (Some(true), cause), "{release}");
    }
}

/// The groups above a task are charged after it: its record does not show whether the slice of a group ends.
#[test]
fn a_clear_flag_on_a_charge_is_the_outcome_of_a_tick_only_in_the_root_group() {
    let ticks = |weight: u32| {
        let in_group = format!("a-1 [000] d.h2. 0.003000: wk: p=1 v=1 d=2 l=0 on=1 s=3 tg=0x10 gw={weight}\n");
        let read = read("6.8.0", &[&in_group, TICK, SCHEDULE, TO_C]);
        let flag = read.iter().rev().find_map(|operation| match operation {
            Operation::Tick { flag, .. } => Some(flag.after),
            _ => None,
        });
        flag.flatten()
    };
    assert_eq!((ticks(0), ticks(512)), (Some(false), Some(true)));
}
