//! The round trip: what the simulator's trace of a row says is decided by the same row in the replay, decision by
//! decision and vruntime by vruntime.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use schedlab_policy::Version;
use schedlab_replay::{replay, Options, Report};
use schedlab_scenario::Scenario;

/// Loads by name, each the tables of its workloads.
const LOADS: [(&str, &str); 9] = [
    ("hogs", r#"workload = [{ use = "hog", threads = 4 }]"#),
    (
        "niced",
        r#"workload = [{ use = "hog", name = "a", nice = -5 }, { use = "hog", name = "b", nice = 5 }, { use = "hog", threads = 2 }]"#,
    ),
    (
        "sleepers",
        r#"
[[workload]]
name = "mix"
[[workload.task]]
name = "hog"
count = 2
program = [{ loop = "forever", do = [{ run = "10ms" }] }]
[[workload.task]]
name = "sleeper"
count = 3
nice = 3
program = [{ loop = "forever", do = [{ run = { uniform = ["100us", "3ms"] } }, { sleep = { uniform = ["50us", "8ms"] } }] }]
"#,
    ),
    ("pipes", r#"workload = [{ use = "hackbench", groups = 1, loops = 30, repeat = true }]"#),
    (
        "timers",
        r#"workload = [{ use = "cyclictest", policy = "other", interval = "700us" }, { use = "hog", threads = 3 }]"#,
    ),
    (
        "yields",
        r#"
[[workload]]
name = "mix"
[[workload.task]]
name = "hog"
count = 2
program = [{ loop = "forever", do = [{ run = "10ms" }] }]
[[workload.task]]
name = "yielder"
count = 2
program = [{ loop = "forever", do = [{ run = { uniform = ["100us", "2ms"] } }, "yield"] }]
"#,
    ),
    (
        "policies",
        r#"
[[workload]]
name = "mix"
[[workload.task]]
name = "batch"
policy = "batch"
program = [{ loop = "forever", do = [{ run = { uniform = ["100us", "3ms"] } }, { sleep = "1ms" }] }]
[[workload.task]]
name = "idle"
count = 2
policy = "idle"
program = [{ loop = "forever", do = [{ run = { uniform = ["100us", "5ms"] } }, { sleep = "3ms" }] }]
[[workload.task]]
name = "hog"
count = 2
program = [{ loop = "forever", do = [{ run = "10ms" }] }]
"#,
    ),
    (
        "changing",
        r#"
[[workload]]
name = "mix"
[[workload.task]]
name = "changing"
count = 3
program = [{ loop = "forever", do = [{ run = { uniform = ["100us", "3ms"] } }, { nice = 7 }, { run = "2ms" }, { nice = -3 }, { sleep = "2ms" }, { nice = 0 }] }]
[[workload.task]]
name = "forking"
program = [{ loop = "forever", do = [{ run = "700us" }, { fork = "child", as = "process" }, { run = "300us" }, "reap"] }]
[[workload.task]]
name = "child"
count = 0
program = [{ run = { uniform = ["100us", "1ms"] } }, "exit"]
[[workload.task]]
name = "hog"
program = [{ loop = "forever", do = [{ run = "10ms" }] }]
"#,
    ),
    (
        "groups",
        r#"
cgroup = [{ name = "a", weight = 300 }, { name = "b" }, { name = "b/c", weight = 50 }]
[[workload]]
use = "hog"
name = "first"
threads = 2
cgroup = "a"
[[workload]]
use = "hog"
name = "second"
cgroup = "b"
[[workload]]
name = "mix"
cgroup = "b/c"
[[workload.task]]
name = "sleeper"
count = 3
program = [{ loop = "forever", do = [{ run = { uniform = ["100us", "3ms"] } }, { sleep = { uniform = ["50us", "4ms"] } }] }]
[[workload]]
name = "root"
use = "hog"
"#,
    ),
];

/// A load under a row, traced and replayed.
fn round_trip(row: &Version, cpus: usize, load: &(&str, &str)) -> Report {
    let (name, workloads) = load;
    let head = format!("machine = {{ base = \"laptop-8\", topology = {{ cores-per-llc = {cpus}, threads-per-core = 1 }} }}\nduration = \"600ms\"\n");
    // Threads of the kernel are older than the trace, so what depends on their state is not judged.
    let variant =
        format!("\n[[variant]]\nname = \"v\"\nkernel = \"{}\"\nphysics = {{ housekeeping = false }}\n", row.name);
    let scenario = Scenario::parse(&format!("{head}{workloads}{variant}"), name, None).unwrap();
    let file = format!("schedlab-round-trip-{}-{}-{name}-{cpus}.ftrace", std::process::id(), row.name);
    let path: PathBuf = std::env::temp_dir().join(file);
    let spec = scenario.run_spec("v", 1).unwrap();
    let traced = schedlab_lab::run(&spec, Some(&path), &AtomicBool::new(false)).unwrap();
    let report =
        replay(&mut *schedlab_trace::open(&path).unwrap(), Version::find(row.name).unwrap(), &Options::default());
    std::fs::remove_file(&path).unwrap();
    let plain = schedlab_lab::run(&spec, None, &AtomicBool::new(false)).unwrap();
    assert_eq!(traced.digest, plain.digest, "a trace file changes nothing");
    report.unwrap()
}

/// Not yet the same: control groups where lags are bounded by the longest slice of a queue (6.18.44 and later).
fn is_open(row: &Version, load: &str) -> bool {
    load == "groups" && row.release >= Version::find("6.18.44").unwrap().release
}

#[test]
fn on_one_cpu_every_decision_and_every_vruntime_is_the_simulators() {
    let mut wrong = Vec::new();
    for row in Version::all() {
        for load in LOADS.iter().filter(|(load, _)| !is_open(row, load)) {
            let report = round_trip(row, 1, load);
            let (picks, preemptions, steps) = (report.picks, report.preemptions, &report.vruntime);
            let whole = picks.agreed == picks.decisions
                && preemptions.agreed == preemptions.decisions
                && steps.equal == steps.compared;
            let enough = picks.decisions > 50 && steps.compared > 50;
            if !(whole && enough && report.unjudged_share < 0.02 && report.desyncs == 0) {
                wrong.push(format!(
                    "{} {}: picks {}/{} preemptions {}/{} steps {}/{} unjudged {:.4} desyncs {}",
                    row.name,
                    load.0,
                    picks.agreed,
                    picks.decisions,
                    preemptions.agreed,
                    preemptions.decisions,
                    steps.equal,
                    steps.compared,
                    report.unjudged_share,
                    report.desyncs
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
}

/// A trace of two CPUs holds what replay needs as well; a group's quota is named where no record shows it.
#[test]
fn a_simulated_trace_says_what_it_lacks() {
    let row = Version::find("6.12.107").unwrap();
    assert_eq!(round_trip(row, 2, &LOADS[3]).missing, Vec::<String>::new());
    let quota = r#"
cgroup = [{ name = "a", quota = "20ms" }]
workload = [{ use = "hog", threads = 2, cgroup = "a" }]
"#;
    assert_eq!(round_trip(row, 1, &("quota", quota)).missing, ["quotas"]);
}
