//! What is read from small traces, record by record.

use schedlab_whatif::{read, Act, Cause, Recording};

/// Reads lines of ftrace text; each begins with the running task, its flags and the time in us.
fn reading(name: &str, lines: &[&str]) -> Recording {
    let file = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.ftrace"));
    let line = |line: &&str| {
        let (head, rest) = line.split_once(": ").expect("an event");
        let words: Vec<&str> = head.split(' ').collect();
        format!("{} [000] {} 1.{:06}: {rest}\n", words[0], words[1], words[2].parse::<u32>().expect("a time"))
    };
    let text: String = lines.iter().map(line).collect();
    std::fs::write(&file, format!("# tracer: nop\n#\n{text}")).expect("a file");
    let mut reader = schedlab_trace::open(&file).expect("a trace");
    let recording = read(&mut *reader).expect("a recording");
    std::fs::remove_file(&file).ok();
    recording
}

fn switch(prev: u32, state: &str, next: u32) -> String {
    format!(
        "sched_switch: prev_comm=t prev_pid={prev} prev_prio=120 prev_state={state} ==> next_comm=t next_pid={next} \
         next_prio=120"
    )
}

#[test]
fn a_pid_that_is_used_again_is_another_task() {
    let lines = [
        format!("t-7 d..2. 10: {}", switch(7, "S", 8)),
        "t-8 ..... 20: sched_process_fork: comm=t pid=8 child_comm=t child_pid=7".to_owned(),
        format!("t-8 d..2. 30: {}", switch(8, "S", 7)),
    ];
    let recording = reading("reuse", &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let pids: Vec<i32> = recording.tasks.iter().map(|task| task.pid).collect();
    assert_eq!((pids, recording.counts.reused), (vec![7, 8, 7], 1));
}

#[test]
fn an_interrupt_is_no_waker_and_a_task_is_one_at_its_place() {
    let waking = "sched_waking: comm=t pid=7 prio=120 target_cpu=000";
    for (flags, by_task) in [("d.h2.", false), ("d..2.", true)] {
        let lines = [
            format!("t-7 d..2. 10: {}", switch(7, "S", 8)),
            format!("t-8 {flags} 20: {waking}"),
            format!("t-8 d..2. 50: {}", switch(8, "R", 7)),
        ];
        let recording = reading("waker", &lines.iter().map(String::as_str).collect::<Vec<_>>());
        let wait = recording.tasks[0].waits().next().expect("a wait");
        assert_eq!(wait.cause == Cause::Task(1), by_task, "{flags}");
        assert_eq!(recording.tasks[1].acts.contains(&Act::Wake(0)), by_task, "{flags}");
        // 10 us up to the wakeup and 30 us after it.
        assert_eq!(recording.tasks[1].work(), 40_000, "{flags}");
    }
}

#[test]
fn a_wakeup_that_no_record_shows_has_no_cause() {
    let lines = [format!("t-7 d..2. 10: {}", switch(7, "S", 8)), format!("t-8 d..2. 30: {}", switch(8, "R", 7))];
    let recording = reading("gap", &lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(recording.tasks[0].waits().next().map(|wait| wait.cause), Some(Cause::Unknown));
}
