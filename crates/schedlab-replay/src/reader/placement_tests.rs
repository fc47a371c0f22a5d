//! Selections and balancing passes: what records say by their order about the CPUs that they read.

use super::tests::{check, read};
use crate::operation::Operation;

const CPU_1_IDLES: &str = "
    d-4 [001] d..2. 0.000040: sched_switch: prev_comm=d prev_pid=4 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
";

/// A task that may use one CPU only is not placed: while it is on that CPU's wakelist, the CPU is not idle.
#[test]
fn a_cpu_with_a_kernel_thread_on_its_wakelist_is_not_idle() {
    let wakes = "a-1 [000] d..2. 0.000100: sched_waking: comm=kworker/1:1 pid=7 prio=120 target_cpu=001\n";
    let forks = "
        a-1 [000] ..... 0.000300: sched_process_fork: comm=a pid=1 child_comm=a child_pid=5
        a-1 [000] d..1. 0.000301: st: (select_task_rq_fair+0x4/0x17f0) prev=0 fl=0x4 j=9 p=5 nc=2 am=0x3 wf=0 wt=3 ru=0 el=1024 et=0 ql=0 qt=0 sc=2 ic=0
        a-1 [000] d..1. 0.000310: str: (wake_up_new_task+0x257/0x2f0 <- select_task_rq_fair) to=0
        a-1 [000] d..2. 0.000320: sched_wakeup_new: comm=a pid=5 prio=120 target_cpu=000
    ";
    for (wakes, idle) in [("", "1"), (wakes, "")] {
        let read = read("6.12.107", &[CPU_1_IDLES, wakes, forks]);
        let selects = read.iter().find_map(|operation| match operation {
            Operation::SelectTaskRq(select) => {
                Some((select.idle.to_list(), select.state.and_then(|s| s.flips_decayed)))
            }
            _ => None,
        });
        assert_eq!(selects, Some((idle.to_owned(), Some(3))), "{wakes}");
    }
}

/// A pass reads queues one after the other, so it sees only a part of what other CPUs do meanwhile.
#[test]
fn a_pass_is_marked_if_other_cpus_change_their_queues_meanwhile() {
    let begins = "a-1 [000] ..s1. 0.000300: bg: (sched_balance_find_src_group+0x0/0x580) cpu=0 idle=0 pct=117 nf=0 am=0x3 w=2 j=9\n";
    let other = "<idle>-0 [001] d..2. 0.000304: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=d next_pid=4 next_prio=120\n";
    let ends = "
        a-1 [000] ..s1. 0.000308: bgr: (sched_balance_rq+0x23e/0xf00 <- sched_balance_find_src_group) found=0x0
        a-1 [000] ..s1. 0.000310: lbr: (sched_balance_domains+0x24e/0x340 <- sched_balance_rq) n=0
    ";
    // CPU 1 enqueues a task on CPU 0 or itself, and the pass sees the queue before or after it.
    let enqueues = "d-4 [001] d..3. 0.000299: at: (enqueue_task_fair+0x4/0x7e0) p=4 fl=14 cpu=1 c=290000\n";
    let has = "d-4 [001] d..2. 0.000299: sched_waking: comm=c pid=3 prio=120 target_cpu=001\n";
    for (before, other, overlapped) in
        [("", "", false), ("", other, true), (enqueues, "", true), (&[enqueues, has].concat(), "", false)]
    {
        let read = read("6.12.107", &[CPU_1_IDLES, before, begins, other, ends]);
        let passes = read.iter().find_map(|operation| match operation {
            Operation::SchedBalanceRq(pass) => Some(pass.overlapped),
            _ => None,
        });
        assert_eq!(passes, Some(overlapped), "{before}{other}");
    }
}

/// In its lowest domain a pass computes the capacity of its CPU after the probe has read it; the next record of that
/// CPU shows it.
#[test]
fn a_pass_has_the_capacity_that_it_computes() {
    let averages = |at: u32, cpu: u32, capacity: u64| {
        format!("a-1 [000] d..3. 0.000{at}: ql: (__probestub_pelt_cfs_tp+0x4/0x10) cpu={cpu} la=9 ra=9 ua=9 ue=9 pe=9 cc={capacity} up=0x0\n")
    };
    let pass = "
        a-1 [000] ..s1. 0.000300: bg: (sched_balance_find_src_group+0x0/0x580) cpu=0 idle=0 pct=117 nf=0 am=0x3 w=2 j=9
        a-1 [000] ..s1. 0.000310: lbr: (sched_balance_domains+0x24e/0x340 <- sched_balance_rq) n=0
    ";
    for (after, capacity) in
        [(String::new(), None), (averages(320, 1, 7), None), (averages(320, 1, 7) + &averages(330, 0, 5), Some(5))]
    {
        let found =
            read("6.12.107", &[&averages(290, 0, 1024), pass, &after]).into_iter().find_map(
                |operation| match operation {
                    Operation::SchedBalanceRq(pass) => Some(pass.capacity),
                    _ => None,
                },
            );
        assert_eq!(found, Some(capacity), "{after}");
    }
}

/// From 7.2 on newidle balancing updates the loads of its CPU without a call that older recordings probe (`ba`). Newer
/// ones probe what that calls, and read the clock.
#[test]
fn newidle_balancing_updates_loads_where_no_probe_shows_it() {
    let grouped = "a-1 [000] d.h2. 0.000031: rt: (__probestub_sched_stat_runtime+0x4/0x10) p=1 v=0 d=1 l=0 on=1 s=1 tg=0xff00 gw=1\n";
    let updated = "a-1 [000] d..1. 0.000110: ba: (sched_balance_update_blocked_averages+0x0/0x80) cpu=0\n";
    let probed = "a-1 [000] d..1. 0.000110: ba: (update_other_load_avgs+0x0/0x50) cpu=0 c=70000\n";
    let charged = "a-1 [000] d..2. 0.000100: sched_stat_runtime: comm=a pid=1 runtime=70000 [ns]\n";
    let pass = |idle: &str| {
        format!("a-1 [000] d..1. 0.000120: bg: (sched_balance_find_src_group+0x0/0x650) cpu=0 idle={idle} pct=117 nf=0 am=0x3 w=2 j=9\n")
    };
    let (newly, busy) = (pass("2"), pass("0"));
    let ends = "
        a-1 [000] d..1. 0.000130: bgr: (sched_balance_rq+0x2c2/0x15f0 <- sched_balance_find_src_group) found=0x0
        a-1 [000] d..1. 0.000140: lbr: (pick_task_fair+0x39a/0x7b0 <- sched_balance_rq) n=0
        a-1 [000] d..2. 0.000150: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
    ";
    for (lines, updates) in [
        ([grouped, charged, "", &newly, ends], true),
        ([grouped, charged, updated, &newly, ends], false),
        ([grouped, charged, probed, &newly, ends], true),
        ([grouped, charged, probed, "", ends], true),
        ([grouped, charged, "", &busy, ends], false),
        (["", charged, "", &newly, ends], false),
    ] {
        let mut wanted = vec!["charge 1", "block", "update loads of cpu0", "switch 1 to 0"];
        wanted.retain(|word| updates || !word.starts_with("update"));
        check("7.2.13", &lines, &wanted);
    }
}

/// The clock of the queue that a pass locks is read in it, the stopper waits beside a fair task, and `schedule()` has
/// dequeued what it leaves.
#[test]
fn a_pass_has_the_clock_of_its_source_and_the_tasks_of_other_classes() {
    let stopper = "a-1 [000] dN.2. 0.000100: sched_wakeup: comm=migration/0 pid=16 prio=0 target_cpu=000\n";
    let begins = |cpu: u32, idle: u32| {
        format!("d-4 [00{cpu}] ..s1. 0.000300: bg: (sched_balance_find_src_group+0x0/0x580) cpu={cpu} idle={idle} pct=117 nf=0 am=0x3 w=2 j=9\n")
    };
    let considers =
        "d-4 [001] d.s2. 0.000310: cm: (can_migrate_task+0x0/0x5c0) src=0 mt=2 im=1 p=1 nc=2 am=0x3\n".to_owned();
    let charges = "
        d-4 [001] d.s2. 0.000320: sched_stat_runtime: comm=a pid=1 runtime=5000 [ns]
        d-4 [001] d.s3. 0.000321: rt: (__probestub_sched_stat_runtime+0x4/0x10) p=1 v=5 d=6 l=0 on=1 sd=0 s=7 z=5 a=0 w=0 n=2 c=777000
    ";
    let ends = |cpu: u32| {
        format!("d-4 [00{cpu}] ..s1. 0.000340: lbr: (sched_balance_domains+0x24e/0x340 <- sched_balance_rq) n=0\n")
    };
    let pass = |lines: &[&str]| {
        let found = read("6.12.107", lines).into_iter().find_map(|operation| match operation {
            Operation::SchedBalanceRq(pass) => Some(pass),
            _ => None,
        });
        found.unwrap()
    };
    let (busy, shown) = (begins(1, 0), [&considers, charges].concat());
    let of_shown = pass(&[&busy, &shown, &ends(1)]);
    assert_eq!((of_shown.src_clock, of_shown.locked_at), (Some(777_000), 310_000));
    let not_shown = pass(&[stopper, &busy, &considers, &ends(1)]);
    assert_eq!((not_shown.src_clock, not_shown.locked_at), (None, 310_000));
    let waits = |pass: &crate::operation::Pass| (pass.others.to_list(), pass.others_wait.to_list());
    assert_eq!(waits(&of_shown), (String::new(), String::new()));
    assert_eq!(waits(&not_shown), (String::new(), "0".to_owned()));
    let runs = "
        a-1 [000] d..2. 0.000110: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R+ ==> next_comm=migration/0 next_pid=16 next_prio=0
    ";
    let by_stopper = |idle| waits(&pass(&[stopper, runs, &begins(0, idle), &ends(0)])).0;
    assert_eq!((by_stopper(0), by_stopper(2)), ("0".to_owned(), String::new()));
}

/// Where no probe reads the tick count, what was furthest ahead of others was the present one.
#[test]
fn the_tick_count_follows_from_others_that_records_show() {
    let select = |time: &str, decayed: u64, shown: &str| {
        format!("a-1 [000] d..1. {time}: st: (select_task_rq_fair+0x4/0x17f0) prev=0 fl=0x8 {shown}p=1 nc=2 am=0x3 wf=0 wt={decayed} ru=0 el=1 et=0 ql=0 qt=0 sc=2 ic=0
        a-1 [000] d..1. {time}: str: (try_to_wake_up+0x257/0x2f0 <- select_task_rq_fair) to=0\n")
    };
    // HZ is 250.
    let lines = [
        select("0.010000", 5000, ""),
        select("0.020000", 5001, ""),
        select("0.030000", 5009, ""),
        select("0.040000", 0, "j=7 "),
    ];
    let counts: Vec<_> = read("5.15.148", &lines.each_ref().map(String::as_str))
        .into_iter()
        .filter_map(|operation| match operation {
            Operation::SelectTaskRq(select) => Some(select.jiffies),
            _ => None,
        })
        .collect();
    assert_eq!(counts, [Some(5000), Some(5003), Some(5009), Some(7)]);
}

/// A CPU that was given a task while it idled looks for one to run, unless tasks are still on its queue. The probe of a
/// task in a group counts those of the group, up to 7.2.
#[test]
fn the_queue_of_a_group_does_not_show_that_its_cpu_has_looked_for_tasks() {
    let attaches = "
        a-1 [000] d..2. 0.000100: sched_migrate_task: comm=b pid=2 prio=120 orig_cpu=0 dest_cpu=1
        a-1 [000] d..3. 0.000110: at: (enqueue_task_fair+0x4/0xcc0) p=2 fl=262144 cpu=1 c=100000
        a-1 [000] d..2. 0.000200: sched_waking: comm=d pid=4 prio=120 target_cpu=001
    ";
    for (shown, looked) in [
        ("n=0 c=9 tg=0x10 gw=0", 1),
        ("n=2 c=9 tg=0x10 gw=0", 0),
        ("n=0 c=9 tg=0x20 gw=512", 0),
        ("n=2 c=9 tg=0x20 gw=512", 0),
        ("n=0 hw=9 c=9 tg=0x20 gw=512", 1),
    ] {
        let probe = format!(
            "a-1 [000] d..3. 0.000201: wg: (__probestub_sched_waking+0x4/0x10) p=4 v=0 d=1 l=0 on=0 sd=0 s=1 z=0 a=0 w=0 {shown}\n"
        );
        let read = read("6.12.107", &[CPU_1_IDLES, attaches, &probe]);
        let newidle = |operation: &&Operation| matches!(operation, Operation::NewidleBalance { cpu } if cpu.0 == 1);
        assert_eq!(read.iter().filter(newidle).count(), looked, "{shown}");
    }
}
