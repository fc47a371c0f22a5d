//! The 25 JSON files that Debian's package rt-app 1.0-1 ships, read from the installed package: what must happen to
//! each, and that the program itself agrees. Without the package these tests fail and say how to get it;
//! SCHEDLAB_WITHOUT=rt-app leaves them out, and they print `skipped:`.

#![allow(clippy::unwrap_used)]

mod reference;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reference::{End, Machine};
use schedlab_model::SEC;
use schedlab_workload::rtapp::{read, Source};

const ROOT: &str = "/usr/share/doc/rt-app";

/// What must happen.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Want {
    /// It runs, with so many threads.
    Runs(usize),
    /// It is refused: line, key and a part of the message.
    Refused(u32, &'static str, &'static str),
}

/// What the program itself does with the file after workgen has rewritten it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Program {
    /// Reads it and starts.
    Runs,
    /// Reports an error for an event, and runs an empty event in its place.
    Reports,
    /// Exits at once.
    Exits,
    /// Exits where the machine has fewer than three CPUs.
    NeedsThreeCpus,
}
use Program::{Exits, NeedsThreeCpus, Reports, Runs as Starts};
use Want::{Refused, Runs};

/// Every file, what must happen here, what the program does, and why the two may differ.
const EXAMPLES: [(&str, Want, Program, &str); 25] = [
    ("examples/browser-long.json", Runs(9), Starts, "workgen's dialect: repeated keys"),
    ("examples/browser-short.json", Runs(9), Starts, "workgen's dialect: repeated keys, a trailing comma"),
    ("examples/cpufreq_governor_efficiency/calibration.json", Runs(1), Starts, "SCHED_FIFO"),
    ("examples/cpufreq_governor_efficiency/dvfs.json", Runs(1), Starts, "SCHED_FIFO"),
    ("examples/merge/global.json", Refused(1, "tasks", "no \"tasks\" section"), Exits, "a fragment alone"),
    ("examples/merge/resources.json", Refused(1, "tasks", "no \"tasks\" section"), Exits, "a fragment alone"),
    ("examples/merge/thread0.json", Refused(4, "tasks.thread0.exec", "before rt-app 1.0"), Reports, "verbs before 1.0"),
    ("examples/merge/thread1.json", Refused(4, "tasks.thread1.exec", "before rt-app 1.0"), Reports, "verbs before 1.0"),
    ("examples/merge/thread2.json", Refused(4, "tasks.thread2.exec", "before rt-app 1.0"), Reports, "verbs before 1.0"),
    ("examples/merge/thread3.json", Refused(4, "tasks.thread3.exec", "before rt-app 1.0"), Reports, "verbs before 1.0"),
    ("examples/mp3-long.json", Runs(5), Starts, "workgen's dialect: repeated keys"),
    ("examples/mp3-short.json", Runs(5), Starts, "workgen's dialect: repeated keys"),
    ("examples/spreading-tasks.json", Runs(2), Starts, "a phase of the same name twice, a trailing comma"),
    ("examples/template.json", Runs(1), Starts, "comments"),
    ("examples/tutorial/example1.json", Runs(1), Starts, "a trailing comma"),
    ("examples/tutorial/example2.json", Runs(1), Starts, ""),
    ("examples/tutorial/example3.json", Runs(12), Starts, "no global section"),
    ("examples/tutorial/example4.json", Runs(2), Starts, "suspend and resume"),
    ("examples/tutorial/example5.json", Runs(2), Starts, "workgen's dialect: repeated keys"),
    (
        "examples/tutorial/example6.json",
        Refused(11, "tasks.thread0.mem", "no model"),
        Starts,
        "memory traffic has no model",
    ),
    ("examples/tutorial/example7.json", Runs(2), Starts, "barriers"),
    ("examples/tutorial/example8.json", Runs(1), NeedsThreeCpus, "it names CPU 2"),
    ("examples/video-long.json", Runs(17), Starts, "workgen's dialect: suspend without a value"),
    ("examples/video-short.json", Runs(17), Starts, "workgen's dialect: suspend without a value"),
    ("taskset.json", Refused(4, "tasks.ThreadA.exec", "before rt-app 1.0"), Reports, "verbs before 1.0"),
];

/// The package's directory, or `None` after saying that the test was left out.
fn package(test: &str) -> Option<&'static Path> {
    use std::io::Write;
    let root = Path::new(ROOT);
    if root.join("taskset.json").is_file() {
        return Some(root);
    }
    let left_out =
        std::env::var("SCHEDLAB_WITHOUT").is_ok_and(|packages| packages.split(',').any(|name| name == "rt-app"));
    assert!(left_out, "no {ROOT}: apt-get install rt-app, or leave these tests out with SCHEDLAB_WITHOUT=rt-app");
    // Past the test harness, which keeps the output of passing tests to itself.
    let _ = writeln!(std::io::stdout(), "\nskipped: {test}: SCHEDLAB_WITHOUT=rt-app");
    None
}

fn json_files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            json_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            into.push(path);
        }
    }
}

#[test]
fn every_file_of_the_package_is_listed() {
    let Some(root) = package("every_file_of_the_package_is_listed") else { return };
    let mut found = Vec::new();
    json_files(root, &mut found);
    let mut found: Vec<String> =
        found.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect();
    found.sort_unstable();
    let mut listed: Vec<&str> = EXAMPLES.iter().map(|(path, ..)| *path).collect();
    listed.sort_unstable();
    assert_eq!(found, listed, "a file is missing or not listed");
}

#[test]
fn each_file_runs_or_is_refused_for_its_reason() {
    let Some(root) = package("each_file_runs_or_is_refused_for_its_reason") else { return };
    for (path, want, _, why) in EXAMPLES {
        let bytes = std::fs::read(root.join(path)).unwrap();
        let got = read("w", &[Source { name: path, bytes: &bytes }], 4);
        match (want, got) {
            (Runs(threads), Ok(app)) => {
                let main = usize::from(app.workload.ends);
                let tasks: usize = app.workload.tasks.iter().map(|task| task.count as usize).sum();
                assert_eq!(tasks - main, threads, "{path} ({why})");
                let out = Machine::new(&app.workload).run(4 * SEC, 1);
                assert!(matches!(out.end, End::Limit | End::Finished), "{path}: {:?}", out.end);
                assert!(out.samples[0].len() + out.samples[1].len() >= 2, "{path} does nothing");
            }
            (Refused(line, key, says), Err(error)) => {
                assert_eq!((error.file.as_str(), error.line, error.key.as_str()), (path, line, key), "{path}: {error}");
                assert!(error.what.contains(says), "{path}: {error}");
            }
            (want, got) => panic!("{path} ({why}): wanted {want:?}, got {got:?}"),
        }
    }
}

#[test]
fn a_file_that_names_three_cpus_needs_them() {
    let Some(root) = package("a_file_that_names_three_cpus_needs_them") else { return };
    let name = "examples/tutorial/example8.json";
    let bytes = std::fs::read(root.join(name)).unwrap();
    let error = read("w", &[Source { name, bytes: &bytes }], 2).unwrap_err();
    assert_eq!((error.line, error.key.as_str()), (10, "tasks.thread0.cpus"), "{error}");
}

#[test]
fn fragments_of_the_package_load_as_a_list() {
    let Some(root) = package("fragments_of_the_package_load_as_a_list") else { return };
    let load = |names: &[&str]| {
        let bytes: Vec<Vec<u8>> = names.iter().map(|name| std::fs::read(root.join(name)).unwrap()).collect();
        let sources: Vec<Source<'_>> = names.iter().zip(&bytes).map(|(name, bytes)| Source { name, bytes }).collect();
        read("w", &sources, 4)
    };
    let both = load(&["examples/merge/global.json", "examples/tutorial/example4.json"]).unwrap();
    assert_eq!(both.duration, Some(5 * SEC), "the fragment's");
    let all: Vec<String> = ["global", "resources", "thread0", "thread1", "thread2", "thread3"]
        .map(|n| format!("examples/merge/{n}.json"))
        .into();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let error = load(&all).unwrap_err();
    assert_eq!((error.file.as_str(), error.key.as_str()), ("examples/merge/thread0.json", "tasks.thread0.exec"));
}

/// What rt-app says of a file, up to its first line that decides.
fn verdict(file: &Path, dir: &Path) -> Program {
    let mut child =
        Command::new("rt-app").arg(file).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut verdict = Exits;
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        if line.contains("Unknown or mismatch") {
            verdict = Reports;
        }
        if line.contains("Invalid cpu") {
            verdict = NeedsThreeCpus;
        }
        // What follows parsing.
        if ["Calibrate ns per loop", "pLoad =", "configuring ftrace"].iter().any(|begin| line.contains(begin)) {
            if verdict == Exits {
                verdict = Starts;
            }
            break;
        }
    }
    child.kill().ok();
    child.wait().unwrap();
    verdict
}

#[test]
fn the_program_itself_agrees() {
    let Some(root) = package("the_program_itself_agrees") else { return };
    let dir = std::env::temp_dir().join(format!("schedlab-rt-app-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    for (path, _, want, why) in EXAMPLES {
        let bytes = std::fs::read(root.join(path)).unwrap();
        if let Ok(app) = read("w", &[Source { name: path, bytes: &bytes }], 4) {
            let own = dir.join("own.json");
            std::fs::write(&own, app.task_set.json(&dir.to_string_lossy(), "log", 10)).unwrap();
            let want = if want == NeedsThreeCpus && cpus < 3 { want } else { Starts };
            assert_eq!(verdict(&own, &dir), want, "{path} ({why}), as schedlab writes it");
        }
        let out = dir.join("rewritten.json");
        let status = Command::new("workgen").args(["-d", "-o"]).arg(&out).arg(root.join(path)).status();
        assert!(status.is_ok_and(|status| status.success()), "workgen of the package rt-app fails for {path}");
        let got = verdict(&out, &dir);
        match want {
            NeedsThreeCpus if cpus >= 3 => assert_eq!(got, Starts, "{path} ({why})"),
            want => assert_eq!(got, want, "{path} ({why})"),
        }
    }
    std::fs::remove_dir_all(&dir).ok();
}
