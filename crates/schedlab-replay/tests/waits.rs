//! The longest waits of a trace, and what the trace shows of their causes.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;

use schedlab_replay::{waits, Began, Waits};

/// Two CPUs. `late` is woken on CPU 0 behind `hog` and a real-time task, while CPU 1 idles from 1.004 s on; it is moved
/// there at last.
const TRACE: &str = "\
# tracer: nop
# kernel 6.1.0-1-amd64 cpus 2
     hog-10 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=hog next_pid=10 next_prio=120
     web-20 [001] d..2. 1.000000: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=web next_pid=20 next_prio=120
     web-20 [001] d..4. 1.001000: sched_wakeup: comm=late pid=30 prio=120 target_cpu=000
     web-20 [001] d..2. 1.004000: sched_switch: prev_comm=web prev_pid=20 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
     hog-10 [000] d..2. 1.005000: sched_switch: prev_comm=hog prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=irq next_pid=40 next_prio=49
     irq-40 [000] d..2. 1.007000: sched_switch: prev_comm=irq prev_pid=40 prev_prio=49 prev_state=S ==> next_comm=hog next_pid=10 next_prio=120
  <idle>-0  [001] d..2. 1.009000: sched_migrate_task: comm=late pid=30 prio=120 orig_cpu=0 dest_cpu=1
  <idle>-0  [001] d..2. 1.009500: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=late next_pid=30 next_prio=120
";

fn of(name: &str, text: &str, keep: usize, only: Option<&str>) -> Waits {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    waits(&mut *schedlab_trace::open(&path).unwrap(), keep, only).unwrap()
}

#[test]
fn a_wait_has_what_its_queue_ran_and_which_cpu_idled() {
    let found = of("waits.ftrace", TRACE, 1, None);
    let named: Vec<_> = found.tasks.iter().map(|task| (task.name.as_str(), task.waits, task.total_ns)).collect();
    assert_eq!(named, [("late", 1, 8_500_000), ("hog", 1, 2_000_000)]);
    let wait = &found.tasks[0].longest[0];
    assert_eq!((wait.since_ns, wait.cpu, wait.began, wait.by), (1_001_000_000, 1, Began::Woken, 20));
    assert_eq!(wait.moved_from, Some(0));
    let ran: Vec<_> = wait.ran.iter().map(|ran| (ran.name.as_str(), ran.pid, ran.ns, ran.realtime)).collect();
    assert_eq!(ran, [("hog", Some(10), 6_000_000, None), ("irq", Some(40), 2_000_000, Some(50))]);
    // On the queue of CPU 1 it waited while that CPU left its idle state.
    assert_eq!((wait.idle_ns, wait.idle_elsewhere), (500_000, Some((1, 5_000_000))));
    let hog = &found.tasks[1].longest[0];
    assert_eq!((hog.began, hog.by, hog.ran[0].name.as_str()), (Began::Preempted, 40, "irq"));
}

/// `perf sched record` of 6.1 records `sched_waking` and no `sched_wakeup`.
#[test]
fn the_beginning_of_a_wakeup_counts_where_its_end_is_not_recorded() {
    let ended = of("waits.ftrace", TRACE, 1, None);
    let begun = of("waking.ftrace", &TRACE.replace("sched_wakeup:", "sched_waking:"), 1, None);
    assert_eq!(begun, ended);
    let line = TRACE.lines().find(|line| line.contains("sched_wakeup:")).unwrap();
    let before = line.replace("1.001000", "1.000500").replace("sched_wakeup", "sched_waking");
    let both = of("both.ftrace", &TRACE.replace(line, &format!("{before}\n{line}")), 1, None);
    assert_eq!(both.tasks, ended.tasks, "the end of the wakeup counts where it is recorded");
}

#[test]
fn one_task_is_named_by_pid_or_name() {
    for only in ["30", "late"] {
        let found = of("one.ftrace", TRACE, 5, Some(only));
        assert_eq!(found.tasks.iter().map(|task| task.pid).collect::<Vec<_>>(), [30]);
    }
    assert_eq!(of("none.ftrace", TRACE, 5, Some("nobody")).tasks, []);
}

#[test]
fn nothing_is_measured_across_a_loss() {
    let at = TRACE.find("  <idle>-0  [001] d..2. 1.009000").unwrap();
    let lost = format!("{}CPU:1 [LOST 12 EVENTS]\n{}", &TRACE[..at], &TRACE[at..]);
    let found = of("lost.ftrace", &lost, 1, None);
    assert_eq!(found.lost, 12);
    assert_eq!(found.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["hog"]);
    // A switch from a task that the CPU did not run shows that records are missing, too.
    let line = TRACE.lines().find(|line| line.contains("1.004000")).unwrap();
    let found = of("missing.ftrace", &TRACE.replace(&format!("{line}\n"), ""), 1, None);
    assert!(found.tasks.iter().all(|task| task.name != "web"));
    assert_eq!(found.lost, 1);
}

#[test]
fn a_task_that_ran_before_the_first_switch_of_its_cpu_did_not_wait() {
    let text = "\
# tracer: nop
# kernel 6.1.0-1-amd64 cpus 2
     web-20 [000] d..2. 1.000000: sched_waking: comm=perf pid=30 prio=120 target_cpu=001
    perf-30 [001] d..2. 1.001000: sched_stat_runtime: comm=perf pid=30 runtime=1000 [ns]
    perf-30 [001] d..2. 1.002000: sched_switch: prev_comm=perf prev_pid=30 prev_prio=120 prev_state=S ==> next_comm=hog next_pid=10 next_prio=120
     web-20 [000] d..2. 1.005000: sched_waking: comm=perf pid=30 prio=120 target_cpu=001
     hog-10 [001] d..2. 1.007000: sched_switch: prev_comm=hog prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=perf next_pid=30 next_prio=120
";
    let found = of("began.ftrace", text, 1, None);
    let waits: Vec<_> = found.tasks.iter().map(|task| (task.pid, task.longest[0].ns)).collect();
    assert_eq!(waits, [(30, 2_000_000)]);
}

#[test]
fn many_waits_keep_the_longest_of_each_task() {
    let mut text = String::from("# tracer: nop\n# kernel 6.1.0-1-amd64 cpus 1\n");
    // Two tasks alternate; each waits for the other's turn, which grows by 1 us.
    let mut now = 1_000_000;
    for turn in 0..50_000u64 {
        let (prev, next) = if turn % 2 == 0 { (1, 2) } else { (2, 1) };
        now += 10 + turn;
        text += &format!(
            "a-{prev} [000] d..2. {}.{:06}: sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 prev_state=R ==> next_comm=a next_pid={next} next_prio=120\n",
            now / 1_000_000,
            now % 1_000_000
        );
    }
    let found = of("many.ftrace", &text, 3, None);
    let lengths = found.tasks[0].longest.iter().map(|wait| wait.ns / 1000).collect::<Vec<_>>();
    assert_eq!(lengths, [50_009, 50_007, 50_005]);
    assert!(found.tasks[0].longest.iter().all(|wait| wait.ran.len() == 1 && wait.ran[0].ns == wait.ns && !wait.cut));
}
