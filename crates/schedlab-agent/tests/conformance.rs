//! One table of small scenarios that run on the simulator and on real threads, with conditions that must hold on both.
//!
//! Nothing here depends on the speed of the computer: only counts, orders and random draws are compared, and lower
//! bounds of times.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use rustix::process::{Pid, Signal};
use schedlab_metrics::{Metrics, Plan, Report};
use schedlab_scenario::Scenario;
use serde_json::Value as Json;

/// A condition on one metric.
#[derive(Clone, Copy, Debug)]
enum Must {
    /// Exactly this value.
    Be(f64),
    /// This value or more.
    Reach(f64),
}
use Must::{Be, Reach};

/// One scenario with its conditions.
struct Case {
    name: &'static str,
    workloads: &'static str,
    holds: &'static [(&'static str, Must)],
}

/// Two endless loops share CPU 0; `count` is the number of iterations of each. Other tasks of the machine slow down
/// both.
const TWO_LOOPS: &str = r#"
    cpus = "0"
    program = [ { loop = "forever", do = [ { run = "500us" }, { count = "turns" } ] } ]
"#;

/// Scenarios that need privileges or kernel features; skipped where the agent reports that it cannot run them.
const PRIVILEGED: &[Case] = &[
    Case {
        name: "a real-time task that is woken runs before its waker goes on",
        workloads: r#"
            [[workload]]
            name = "w"
            cpus = "0"
            task = [
              { name = "low", policy = "fifo:10", program = [ { sem-wait = "up" }, { begin = "post" }, { post = "go" }, { end = "post" } ] },
              { name = "high", policy = "fifo:20", program = [ { sem-post = "up" }, { wait = "go" }, { run = "3ms" } ] },
            ]
        "#,
        holds: &[("w.post.count", Be(1.0)), ("w.post.min", Reach(2_800.0))],
    },
    Case {
        name: "policies can be taken on and left, and round robin lets both come to their end",
        workloads: r#"
            [[workload]]
            name = "w"
            cpus = "0"
            task = [
              { name = "rr", count = 2, policy = "rr:5", program = [ { run = "4ms" }, { begin = "done" }, { end = "done" } ] },
              { name = "changes", program = [ { policy = "fifo:3" }, { run = "1ms" }, { policy = "normal" }, { begin = "back" }, { end = "back" } ] },
            ]
        "#,
        holds: &[("w.done.count", Be(2.0)), ("w.back.count", Be(1.0))],
    },
    Case {
        name: "a quota holds its group up",
        // 90 ms of work need 17 refills of 5 ms. Work is calibrated and may come out at a fifth on a busy machine.
        workloads: r#"
            [[cgroup]]
            name = "q"
            quota = "5ms"
            period = "100ms"
            [[workload]]
            name = "w"
            cgroup = "q"
            cpus = "0"
            program = [ { begin = "held" }, { run = "90ms" }, { end = "held" } ]
        "#,
        holds: &[("w.held.count", Be(1.0)), ("w.held.min", Reach(180_000.0))],
    },
    Case {
        name: "an own slice is taken, at the start and later",
        workloads: r#"
            [[workload]]
            name = "w"
            slice = "3ms"
            program = [ { run = "1ms" }, { slice = "10ms" }, { slice = "0s" }, { begin = "done" }, { end = "done" } ]
        "#,
        holds: &[("w.done.count", Be(1.0))],
    },
];

/// Shares of a CPU: the attributes of two loops and the ratio of their iterations.
const SHARES: &[(&str, &str, &str, &str, f64)] = &[
    ("nice 0 against 5: 1024 to 335", "", "nice = 0", "nice = 5", 1024.0 / 335.0),
    (
        "groups of weight 300 and 100",
        "[[cgroup]]\nname = \"much\"\nweight = 300\n[[cgroup]]\nname = \"little\"\nweight = 100\n",
        "cgroup = \"much\"",
        "cgroup = \"little\"",
        3.0,
    ),
    (
        "a group below a group, and a task beside them",
        "[[cgroup]]\nname = \"a\"\n[[cgroup]]\nname = \"a/deep\"\nweight = 400\n",
        "cgroup = \"a/deep\"",
        "cgroup = \"a\"",
        4.0,
    ),
];

/// The steps of `count` equal tasks.
const CASES: &[Case] = &[
    Case {
        name: "a loop runs as often as it says",
        workloads: r#"
            [[workload]]
            name = "w"
            program = [ { loop = 250, do = [ { run = "2us" }, { count = "turns" } ] }, { begin = "end" }, { end = "end" } ]
        "#,
        holds: &[("w.end.count", Be(1.0)), ("w.turns", Reach(1.0))],
    },
    Case {
        name: "ping-pong alternates strictly",
        workloads: r#"
            [[workload]]
            name = "w"
            task = [
              { name = "ping", program = [ { loop = 200, do = [ { begin = "trip" }, { write = "forth" }, { read = "back" }, { end = "trip" } ] } ] },
              { name = "pong", program = [ { loop = 200, do = [ { read = "forth" }, { write = "back" } ] } ] },
            ]
        "#,
        holds: &[("w.trip.count", Be(200.0)), ("w.trip.min", Reach(0.0))],
    },
    Case {
        name: "a futex hands over",
        workloads: r#"
            [[workload]]
            name = "w"
            task = [
              { name = "a", program = [ { loop = 150, do = [ { begin = "trip" }, { post = "ping" }, { wait = "pong" }, { end = "trip" } ] } ] },
              { name = "b", program = [ { loop = 150, do = [ { wait = "ping" }, { post = "pong" } ] } ] },
            ]
        "#,
        holds: &[("w.trip.count", Be(150.0))],
    },
    Case {
        name: "a sample begins in one task, travels through a queue and ends in another",
        workloads: r#"
            [[workload]]
            name = "w"
            task = [
              { name = "source", program = [ { loop = 50, do = [ { timer = "t", period = "100us", mode = "absolute" },
                                                                 { begin = "whole", at = "t" }, { send = "q", sample = "whole" } ] } ] },
              { name = "worker", count = 2, program = [ { loop = 25, do = [ { receive = "q", sample = "whole" }, { begin = "part" },
                                                                            { runtime = "20us" }, { end = "part" }, { end = "whole" } ] } ] },
            ]
        "#,
        holds: &[("w.whole.count", Be(50.0)), ("w.part.count", Be(50.0)), ("w.whole.min", Reach(20.0))],
    },
    Case {
        name: "no task passes a barrier before all have arrived",
        workloads: r#"
            [[workload]]
            name = "w"
            task = [
              { name = "fast", count = 2, program = [ { begin = "all" }, { loop = 20, do = [ { barrier = "b" }, { count = "rounds" } ] }, { end = "all" } ] },
              { name = "slow", program = [ { loop = 20, do = [ { sleep = "200us" }, { barrier = "b" } ] } ] },
            ]
        "#,
        // After the first round every task waits for 19 sleeps.
        holds: &[("w.all.count", Be(2.0)), ("w.all.min", Reach(3_800.0))],
    },
    Case {
        name: "a full pipe blocks its writer until it is read",
        workloads: r#"
            [[workload]]
            name = "w"
            object = [ { name = "p", kind = "pipe", pages = 1 } ]
            task = [
              { name = "writer", program = [ { begin = "fits" }, { write = "p", bytes = 4096 }, { end = "fits" },
                                             { begin = "blocks" }, { write = "go" }, { write = "p", bytes = 4096 }, { end = "blocks" } ] },
              { name = "reader", program = [ { read = "go" }, { sleep = "10ms" }, { read = "p", bytes = 4096 }, { read = "p", bytes = 4096 } ] },
            ]
        "#,
        // The reader sleeps after it is released, so the second write cannot complete earlier.
        holds: &[("w.fits.count", Be(1.0)), ("w.blocks.count", Be(1.0)), ("w.blocks.min", Reach(10_000.0))],
    },
    Case {
        name: "a semaphore lets as many through as it has units",
        workloads: r#"
            [[workload]]
            name = "w"
            object = [ { name = "s", kind = "semaphore", initial = 2 } ]
            task = [
              { name = "taker", program = [ { loop = 2, do = [ { begin = "free" }, { sem-wait = "s" }, { end = "free" } ] },
                                            { begin = "given" }, { write = "go" }, { sem-wait = "s" }, { end = "given" } ] },
              { name = "giver", program = [ { read = "go" }, { sleep = "10ms" }, { sem-post = "s" } ] },
            ]
        "#,
        holds: &[("w.free.count", Be(2.0)), ("w.given.count", Be(1.0)), ("w.given.min", Reach(10_000.0))],
    },
    Case {
        name: "every waiter of a condition goes on",
        workloads: r#"
            [[workload]]
            name = "w"
            task = [
              { name = "waiter", count = 3, program = [ { lock = "m" }, { sem-post = "ready" }, { cond-wait = "c", mutex = "m" },
                                                         { unlock = "m" }, { begin = "on" }, { end = "on" } ] },
              { name = "caller", program = [ { loop = 3, do = [ { sem-wait = "ready" } ] }, { lock = "m" }, { signal = "c" }, { unlock = "m" },
                                             { lock = "m" }, { broadcast = "c" }, { unlock = "m" } ] },
            ]
        "#,
        holds: &[("w.on.count", Be(3.0))],
    },
    Case {
        name: "children exit and are reaped, processes and threads",
        workloads: r#"
            [[workload]]
            name = "w"
            task = [
              { name = "parent", program = [ { loop = 5, do = [ { fork = "child" }, { fork = "thread", as = "thread" }, "reap", "reap",
                                                                { begin = "pair" }, { end = "pair" } ] } ] },
              { name = "child", count = 0, program = [ { run = "10us" }, { begin = "process" }, { end = "process" }, "exit" ] },
              { name = "thread", count = 0, program = [ { run = "10us" }, { begin = "thread" }, { end = "thread" } ] },
            ]
        "#,
        holds: &[("w.pair.count", Be(5.0)), ("w.process.count", Be(5.0)), ("w.thread.count", Be(5.0))],
    },
    Case {
        name: "sleeps and timers are never early",
        workloads: r#"
            [[workload]]
            name = "w"
            program = [ { loop = 10, do = [ { begin = "sleep" }, { sleep = "300us" }, { end = "sleep" } ] },
                        { loop = 5, do = [ { begin = "yield" }, "yield", { end = "yield" } ] } ]
        "#,
        holds: &[("w.sleep.count", Be(10.0)), ("w.sleep.min", Reach(300.0)), ("w.yield.count", Be(5.0))],
    },
    Case {
        name: "work comes to an end, by the clock, in user and in kernel mode",
        workloads: r#"
            [[workload]]
            name = "w"
            program = [ { begin = "spin" }, { runtime = "2ms" }, { end = "spin" },
                        { begin = "run" }, { run = "2ms" }, { end = "run" }, { begin = "kernel" }, { system = "1ms" }, { end = "kernel" } ]
        "#,
        holds: &[("w.spin.min", Reach(2_000.0)), ("w.run.count", Be(1.0)), ("w.kernel.count", Be(1.0))],
    },
    Case {
        name: "work on memory comes to an end",
        workloads: r#"
            [[workload]]
            name = "w"
            program = [ { loop = 3, do = [ { begin = "fault" }, { fault = 600 }, { fault = 1500, clear = true }, { end = "fault" },
                        { begin = "free" }, { munmap = "1MiB" }, { munmap = "8MiB" }, { end = "free" },
                        { begin = "read" }, { read-file = "300KiB" }, { end = "read" } ] } ]
        "#,
        holds: &[("w.fault.count", Be(3.0)), ("w.free.count", Be(3.0)), ("w.read.count", Be(3.0))],
    },
    Case {
        name: "own attributes can be changed",
        workloads: r#"
            [[workload]]
            name = "w"
            program = [ { nice = 5 }, { policy = "batch" }, { cpus = "0" }, { policy = "idle" }, { begin = "done" }, { end = "done" } ]
        "#,
        holds: &[("w.done.count", Be(1.0))],
    },
    Case {
        name: "messages through sockets and pipes arrive whole",
        workloads: r#"
            [[workload]]
            use = "hackbench"
            name = "socket"
            groups = 1
            fds = 3
            loops = 10
            [[workload]]
            use = "perf-messaging"
            name = "pipe"
            group = 1
            nr_loops = 2
            pipe = true
            thread = true
            [[workload]]
            use = "perf-pipe"
            loop = 30
        "#,
        holds: &[("socket.time", Reach(0.0)), ("pipe.total_time", Reach(0.0)), ("perf-pipe.usecs_per_op", Reach(0.0))],
    },
    Case {
        name: "schbench's lists, peers and locks",
        workloads: r#"
            [[workload]]
            use = "schbench-1.0"
            runtime = "1s"
            operations = 1
            cache_footprint = 8
            [[workload]]
            use = "schbench"
            name = "mail"
            message-threads = 1
            threads = 2
            runtime = "1s"
            cputime = "100us"
            rps = 200
        "#,
        holds: &[
            ("schbench-1.0.wakeup_latency.count", Reach(1.0)),
            ("schbench-1.0.request_latency.min", Reach(100.0)),
            ("mail.latency.count", Reach(1.0)),
        ],
    },
    Case {
        name: "waiters on a futex are woken and moved, and a PI lock is handed over",
        workloads: r#"
            [[workload]]
            use = "perf-futex-wake"
            name = "wake"
            threads = 5
            nwakes = 2
            runs = 2
            [[workload]]
            use = "perf-futex-requeue"
            name = "requeue"
            threads = 3
            runs = 2
            [[workload]]
            use = "perf-futex-wake-parallel"
            name = "parallel"
            threads = 4
            nwakers = 2
            runs = 2
            [[workload]]
            use = "perf-futex-lock-pi"
            name = "pi"
            threads = 3
            runtime = "100ms"
            [[workload]]
            use = "perf-futex-hash"
            name = "hash"
            runtime = "20ms"
        "#,
        holds: &[
            ("wake.time", Reach(0.0)),
            ("requeue.time", Reach(0.0)),
            ("parallel.latency.count", Be(4.0)),
            ("pi.operations_per_second", Reach(1.0)),
            ("hash.operations_per_second", Reach(1.0)),
        ],
    },
    Case {
        name: "a signalled parent, an answered child and a pipe of packets make progress",
        workloads: r#"
            [[workload]]
            use = "starve"
            signals = 200
            [[workload]]
            use = "perf-seccomp-notify"
            name = "notify"
            loop = 40
            [[workload]]
            use = "stress-ng-pipe"
            name = "pipe"
            pipe = 1
            timeout = "50ms"
        "#,
        holds: &[
            ("starve.time", Reach(0.0)),
            ("notify.usecs_per_op", Reach(0.0)),
            ("pipe.bogo_ops_per_second", Reach(1.0)),
        ],
    },
    Case {
        name: "threads of STREAM move their parts and meet after each kernel",
        workloads: r#"
            [[workload]]
            use = "stream"
            threads = 3
            array-size = 30000
            ntimes = 4
        "#,
        holds: &[
            ("stream.copy.count", Be(3.0)),
            ("stream.triad.count", Be(3.0)),
            ("stream.triad_mb_per_second", Reach(1.0)),
        ],
    },
    Case {
        name: "sysbench takes its mutexes in turn and at random",
        workloads: r#"
            [[workload]]
            use = "sysbench-threads"
            threads = 3
            thread-yields = 20
            thread-locks = 2
            time = "50ms"
            [[workload]]
            use = "sysbench-mutex"
            threads = 3
            mutex-num = 7
            mutex-locks = 200
            mutex-loops = 100
            [[workload]]
            use = "sysbench-memory"
            threads = 2
            time = "20ms"
        "#,
        holds: &[
            ("sysbench-threads.latency.count", Reach(1.0)),
            ("sysbench-mutex.latency.count", Be(3.0)),
            ("sysbench-memory.ops_per_second", Reach(1.0)),
        ],
    },
];

/// Both arms draw the same values of a distribution, observed as sleeps.
const DRAWS: &str = r#"
    [[workload]]
    name = "w"
    program = [ { loop = 8, do = [ { begin = "drawn" }, { sleep = { uniform = ["1ms", "9ms"] } }, { end = "drawn" } ] } ]
"#;

fn scenario(name: &str, workloads: &str) -> (PathBuf, Scenario) {
    scenario_with(name, workloads, "")
}

/// A scenario with additional keys in its variant.
fn scenario_with(name: &str, workloads: &str, more: &str) -> (PathBuf, Scenario) {
    scenario_for("20s", name, workloads, more)
}

/// A scenario that ends after `duration` at the latest.
fn scenario_for(duration: &str, name: &str, workloads: &str, more: &str) -> (PathBuf, Scenario) {
    let head = format!("machine = \"host\"\nduration = \"{duration}\"\n");
    let more = if more.contains("kernel = ") { more.to_owned() } else { format!("kernel = \"6.12\"\n{more}") };
    let text = format!("{head}{workloads}\n[[variant]]\nname = \"v\"\n{more}\n");
    let stem: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{stem}.toml"));
    std::fs::write(&path, &text).unwrap();
    let scenario = Scenario::load(&path, None).unwrap_or_else(|error| panic!("{name}: {error}"));
    (path, scenario)
}

fn simulated(scenario: &Scenario) -> Report {
    let spec = scenario.run_spec("v", 1).unwrap();
    let groups = spec.cgroups.iter().filter(|cgroup| cgroup.counted).map(|cgroup| cgroup.path.as_str());
    let plan = Plan::of(&spec.workloads, spec.machine.topology.nr_cpus(), spec.warmup).with_groups(groups);
    let mut metrics = Metrics::new(plan);
    let outcome = schedlab_sim::run(&spec, &mut metrics, &AtomicBool::new(false)).unwrap();
    metrics.finish(outcome.now)
}

fn agent(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab-agent")).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn real(path: &Path) -> Json {
    let path = path.to_str().unwrap();
    let (code, stdout, stderr) = agent(&["run", path, "--variant", "v", "--seed", "1", "--driver", "agent"]);
    assert_eq!(code, Some(0), "{path}: {stderr}");
    serde_json::from_str(&stdout).unwrap()
}

fn both(name: &str, workloads: &str) -> [BTreeMap<String, Option<f64>>; 2] {
    let (path, scenario) = scenario(name, workloads);
    [simulated(&scenario).metrics.into_iter().collect(), metrics(&real(&path))]
}

fn metrics(document: &Json) -> BTreeMap<String, Option<f64>> {
    document["metrics"].as_object().unwrap().iter().map(|(name, v)| (name.clone(), v.as_f64())).collect()
}

/// Whether this user may start tasks with the default nice value and policy; prints a line if not.
fn defaults_permitted(name: &str) -> bool {
    let (_, stdout, _) = agent(&["probe"]);
    let permitted = serde_json::from_str::<Json>(&stdout).unwrap()["defaults"] == true;
    if !permitted {
        let mut stdout = std::io::stdout();
        writeln!(stdout, "skipped: {name}: the tests were started with nice, which this user may not undo").unwrap();
    }
    permitted
}

#[test]
fn tasks_do_not_inherit_nice_value_and_affinity_of_the_caller() {
    let endless = "[[workload]]\nname = \"w\"\nprogram = [ { loop = \"forever\", do = [ { run = \"1ms\" }, { sleep = \"1ms\" } ] } ]\n";
    let (path, _) = scenario("inherited", endless);
    let words = ["-n", "7", "taskset", "-c", &first_cpu(), env!("CARGO_BIN_EXE_schedlab-agent"), "run"];
    let rest = [path.to_str().unwrap(), "--variant", "v", "--no-tracing"];
    let child = Command::new("nice").args(words).args(rest).stderr(std::process::Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let refused = |child: &mut std::process::Child| child.try_wait().unwrap().is_some_and(|s| s.code() == Some(4));
    wait_until("the task runs", || refused(&mut child) || processes_of(&path).len() >= 3);
    if refused(&mut child) {
        let stderr = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        assert!(stderr.contains(", nice ") && stderr.contains("ulimit -e 20"), "{stderr}");
        assert!(!rustix::process::geteuid().is_root(), "{stderr}");
        return;
    }
    let status = |pid: i32, key: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        text.lines().find(|line| line.starts_with(key)).map(str::to_owned)
    };
    let nice = |pid: i32| -> i32 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
    };
    let every = status(1, "Cpus_allowed_list");
    for pid in processes_of(&path) {
        assert_eq!(nice(pid), 0, "process {pid}");
        if status(pid, "Cpus_allowed_list") != every {
            // A cpuset that restricts this process restricts its tasks as well.
            assert_eq!(status(pid, "Cpus_allowed_list"), widest_affinity(), "process {pid}");
        }
    }
    rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

fn first_cpu() -> String {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| set.is_set(*cpu)).unwrap().to_string()
}

/// `Cpus_allowed_list` of a process that has requested all CPUs.
fn widest_affinity() -> Option<String> {
    let shown = Command::new("taskset").args(["-c", "0-1023", "cat", "/proc/self/status"]).output().unwrap().stdout;
    String::from_utf8(shown).unwrap().lines().find(|line| line.starts_with("Cpus_allowed_list")).map(str::to_owned)
}

#[test]
fn conditions_hold_on_the_simulator_and_on_real_threads() {
    if !defaults_permitted("conformance") {
        return;
    }
    for case in CASES {
        let (path, scenario) = scenario(case.name, case.workloads);
        hold(case.name, case.holds, &scenario, &real(&path));
    }
}

#[test]
fn privileged_scenarios_hold_on_both() {
    for case in PRIVILEGED {
        let (path, scenario) = scenario(case.name, case.workloads);
        if let Some(real) = permitted(case.name, &path, &[]) {
            hold(case.name, case.holds, &scenario, &real);
        }
    }
}

#[test]
fn weights_divide_a_cpu_on_both() {
    for (name, groups, first, second, ratio) in SHARES {
        let two = [("first", first), ("second", second)];
        let loops = two.map(|(name, has)| format!("[[workload]]\nname = \"{name}\"\n{has}\n{TWO_LOOPS}"));
        if let Some((scenario, real)) = with_enough_cpu_time(name, &format!("{groups}{}", loops.concat())) {
            let near = |arm: &str, found: f64| {
                assert!(
                    (0.8 * ratio..=1.25 * ratio).contains(&found),
                    "{name}: {arm}: 1 to {found}, must be near {ratio}"
                );
            };
            let [simulated, counted] = [simulated(&scenario).metrics.into_iter().collect(), metrics(&real)];
            assert!(simulated.keys().eq(counted.keys()), "{name}: the same metrics");
            near("simulated", simulated["first.turns"].unwrap() / simulated["second.turns"].unwrap());
            near("real", cpu_ns(&real, "first") / cpu_ns(&real, "second"));
        }
    }
}

/// CPU time of two loops that shows their shares: a slice or two of the smaller one are 5% of its part.
const ENOUGH_CPU_NS: f64 = 600e6;

/// A run in which the loops of two workloads got enough CPU time together, however busy the CPU is otherwise; `None`
/// with a printed reason if that is not possible here.
fn with_enough_cpu_time(name: &str, workloads: &str) -> Option<(Scenario, Json)> {
    for duration in ["1500ms", "6s", "24s"] {
        let (path, scenario) = scenario_for(duration, name, workloads, "");
        // Without a trace the CPU times are those that the kernel counts.
        let real = permitted(name, &path, &["--no-tracing"])?;
        if cpu_ns(&real, "first") + cpu_ns(&real, "second") >= ENOUGH_CPU_NS {
            return Some((scenario, real));
        }
    }
    let mut stdout = std::io::stdout();
    writeln!(stdout, "skipped: {name}: CPU 0 is too busy with other tasks").unwrap();
    None
}

/// The CPU time of the task with this name.
fn cpu_ns(real: &Json, name: &str) -> f64 {
    let tasks = real["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["name"] == name).unwrap()["cpu_ns"].as_f64().unwrap()
}

/// Why the kernel's trace of a run does not show every switch, if it does not.
fn incomplete(real: &Json) -> Option<&str> {
    let reasons = real["unavailable"].as_object()?.values().filter_map(Json::as_str);
    reasons.into_iter().find(|reason| reason.contains("does not record every sched_switch"))
}

/// Whether the kernel's trace of a run does not show every switch; prints a line if so.
fn untraced(name: &str, real: &Json) -> bool {
    let Some(why) = incomplete(real) else { return false };
    let mut stdout = std::io::stdout();
    writeln!(stdout, "skipped: {name}: {why}").unwrap();
    true
}

/// Checks the conditions on both arms and that they have the same metrics.
fn hold(name: &str, holds: &[(&str, Must)], scenario: &Scenario, real: &Json) {
    let arms = [simulated(scenario).metrics.into_iter().collect(), metrics(real)];
    let names = |arm: &BTreeMap<String, Option<f64>>| arm.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&arms[0]), names(&arms[1]), "{name}: the same metrics");
    for (arm, values) in ["simulated", "real"].iter().zip(&arms) {
        let value = |metric: &str| {
            let value = values.get(metric).copied().flatten();
            value.unwrap_or_else(|| panic!("{name}: {arm}: no {metric}"))
        };
        for (metric, must) in holds {
            let missing = *arm == "real" && values.get(*metric).copied().flatten().is_none();
            if missing && untraced(&format!("{name}: {metric}"), real) {
                continue;
            }
            let holds = match must {
                Be(wanted) => value(metric) == *wanted,
                Reach(least) => value(metric) >= *least,
            };
            assert!(holds, "{name}: {arm}: {metric} is {}, must {must:?}; {values:?}", value(metric));
        }
    }
}

/// A run on real threads; `None` with a printed reason if it is not possible here.
fn permitted(name: &str, path: &Path, more: &[&str]) -> Option<Json> {
    let words = ["run", path.to_str().unwrap(), "--variant", "v", "--seed", "1", "--driver", "agent"];
    let (code, stdout, stderr) = agent(&[&words, more].concat());
    if code == Some(4) {
        let mut stdout = std::io::stdout();
        writeln!(stdout, "skipped: {name}: {}", stderr.lines().next().unwrap_or("")).unwrap();
        return None;
    }
    assert_eq!(code, Some(0), "{name}: {stderr}");
    Some(serde_json::from_str(&stdout).unwrap())
}

#[test]
fn both_arms_draw_the_same() {
    if !defaults_permitted("both arms draw the same") {
        return;
    }
    let [simulated, real] = both("draws", DRAWS);
    // A sleep takes at least the drawn time, so each quantile on real threads is at least that of the draws.
    let (path, scenario) = scenario("draws", DRAWS);
    let spec = scenario.run_spec("v", 1).unwrap();
    let workload = &spec.workloads[0];
    let task = &workload.tasks[0];
    let key = schedlab_workload::identity::first_key(&workload.name, &task.name, 0);
    let mut stream = schedlab_workload::identity::work_stream(1, key);
    let mut drawn: Vec<u64> = (0..8).map(|_| workload.dists[0].draw(&mut stream)).collect();
    drawn.sort_unstable();
    for (arm, metrics) in [("simulated", &simulated), ("real", &real)] {
        let value = |stat: &str| metrics[&format!("w.drawn.{stat}")].unwrap();
        assert_eq!(value("count"), 8.0, "{arm}");
        assert!(value("min") * 1e3 >= drawn[0] as f64, "{arm}: {} below the smallest draw {}", value("min"), drawn[0]);
        assert!(value("max") * 1e3 >= drawn[7] as f64, "{arm}: {} below the largest draw {}", value("max"), drawn[7]);
        let mean = drawn.iter().sum::<u64>() as f64 / 8.0;
        assert!(value("mean") * 1e3 >= mean, "{arm}");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn errors_have_codes_and_hints() {
    let (path, _) = scenario("errors", "[[workload]]\nname = \"w\"\nprogram = [ { run = \"1ms\" } ]\n");
    let path = path.to_str().unwrap();
    let (broken, _) = scenario("unlock", "[[workload]]\nname = \"w\"\nprogram = [ { unlock = \"m\" } ]\n");
    let broken = broken.to_str().unwrap();
    let looping =
        |name: &str, more: &str| format!("{more}[[workload]]\nname = \"{name}\"\nprogram = [ {{ run = \"1ms\" }} ]\n");
    let (task, group) = (
        looping("w", "") + "latency_nice = -5\n",
        looping("w", "[[cgroup]]\nname = \"g\"\nlatency_nice = 3\n") + "cgroup = \"g\"\n",
    );
    let rfc = |name: &str, text: &str| {
        let (path, _) = scenario_for("20s", name, text, "kernel = \"eevdf-rfc\"");
        path.to_str().unwrap().to_owned()
    };
    let steps = |name: &str, step: &str| {
        let text = format!("[[workload]]\nname = \"w\"\nprogram = [ {step} ]\n");
        scenario(name, &text).0.to_str().unwrap().to_owned()
    };
    let call = steps("call", "{ call = [ { spinlock = \"1us\" } ] }");
    let huge = steps("huge", "{ fault = 1, page = \"2MiB\" }");
    let (task, group) = (rfc("nice-task", &task), rfc("nice-group", &group));
    let cases: [(&[&str], i32, &str); 8] = [
        (&["run", &call, "--variant", "v"], 4, "task w: call exists only in the simulator"),
        (&["run", &huge, "--variant", "v"], 4, "task w: faults of 2 MiB pages exist only in the simulator"),
        (&["run", &task, "--variant", "v"], 4, "task w: no mainline kernel supports latency nice"),
        (&["run", &group, "--variant", "v"], 4, "cgroup /g: no mainline kernel supports latency nice"),
        (&["run", "/nowhere.toml", "--variant", "v"], 2, "error: /nowhere.toml"),
        (&["run", path, "--variant", "w"], 2, "there is no variant \"w\""),
        (&["run", path], 2, "--variant"),
        (&["run", broken, "--variant", "v"], 3, "step 0 (line 5): unlock: the task does not hold this mutex"),
    ];
    let runs = defaults_permitted("the error of a run");
    for (arguments, code, says) in cases.into_iter().filter(|(_, code, _)| runs || *code != 3) {
        let (got, _, stderr) = agent(arguments);
        assert_eq!(got, Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    }
}

/// A real program in place of its model has the same metrics, and the result names what ran.
#[test]
fn real_programs_report_the_metrics_of_their_models() {
    if !defaults_permitted("real programs report the metrics of their models") {
        return;
    }
    let workloads = "[[workload]]\nuse = \"hackbench\"\ngroups = 1\nfds = 4\nloops = 400\n[[workload]]\nuse = \"cyclictest\"\ninterval = \"1ms\"\nloops = 20\n";
    let (path, scenario) = scenario("programs", workloads);
    let path = path.to_str().unwrap();
    let (code, stdout, stderr) = agent(&["run", path, "--variant", "v", "--driver", "program"]);
    if code == Some(4) && stderr.contains("is not installed") {
        writeln!(std::io::stdout(), "skipped: real programs: {}", stderr.lines().next().unwrap_or("")).unwrap();
        return;
    }
    assert_eq!(code, Some(0), "{stderr}");
    let json: Json = serde_json::from_str(&stdout).unwrap();
    for (workload, metric) in [("hackbench", "hackbench.time"), ("cyclictest", "cyclictest.latency.min")] {
        assert!(json["metrics"][metric].as_f64().is_some_and(|value| value > 0.0), "{metric}: {json}");
        let driver = json["drivers"][workload].as_str().unwrap();
        assert!(driver.starts_with(&format!("program {workload} ")), "{driver}");
    }
    assert_eq!(json["metrics"]["cyclictest.latency.count"], 20.0);
    let simulated: Vec<String> = simulated(&scenario).metrics.into_iter().map(|(name, _)| name).collect();
    let names = json["metrics"].as_object().unwrap();
    assert_eq!(simulated.len(), names.len());
    assert!(simulated.iter().all(|name| names.contains_key(name)));
}

/// rt-app runs its own file, and the rows of its logs are the samples that the file describes.
#[test]
fn rt_app_runs_its_file() {
    if !defaults_permitted("rt-app runs its file") {
        return;
    }
    let tasks = r#"{ "tasks" : {
        "tick" : { "loop" : 1, "phases" : { "p" : { "loop" : 20, "run" : 200, "timer" : { "ref" : "unique", "period" : 5000 } } } },
        "twice" : { "loop" : 8, "run" : 100, "sleep" : 1000, "run" : 100 } },
        "global" : { "calibration" : 20, "logdir" : "./" } }"#;
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("rt-app-ticks.json"), tasks).unwrap();
    let (path, scenario) = scenario("rt-app", "[[workload]]\nname = \"w\"\nrt-app = \"rt-app-ticks.json\"\n");
    let (code, stdout, stderr) = agent(&["run", path.to_str().unwrap(), "--variant", "v", "--driver", "program"]);
    if code == Some(4) && stderr.contains("is not installed") {
        writeln!(std::io::stdout(), "skipped: rt-app: {}", stderr.lines().next().unwrap_or("")).unwrap();
        return;
    }
    assert_eq!(code, Some(0), "{stderr}");
    let json: Json = serde_json::from_str(&stdout).unwrap();
    assert!(json["drivers"]["w"].as_str().unwrap().starts_with("program rt-app"), "{json}");
    let metric = |name: &str| &json["metrics"][format!("w.{name}")];
    for (name, count) in [("period", 28.0), ("tick.run", 20.0), ("tick.slack", 20.0), ("twice.period", 8.0)] {
        assert_eq!(*metric(&format!("{name}.count")), count, "{name}");
    }
    // The log adds up the two of a pass.
    assert!(metric("twice.run.count").is_null() && metric("run.count").is_null(), "{json}");
    let simulated: Vec<String> = simulated(&scenario).metrics.into_iter().map(|(name, _)| name).collect();
    assert!(simulated.iter().all(|name| json["metrics"].as_object().unwrap().contains_key(name)));
}

/// `perf bench futex` and sysbench run as the real programs and report what they print.
#[test]
fn perf_bench_futex_and_sysbench_run_as_the_real_programs() {
    if !defaults_permitted("perf bench futex and sysbench") {
        return;
    }
    let cases = [
        ("perf-futex-hash", "threads = 1\nruntime = 1", "operations_per_second"),
        ("perf-futex-lock-pi", "threads = 2\nruntime = 1", "operations_per_second"),
        ("perf-futex-wake", "threads = 2\nruns = 1", "time"),
        ("perf-futex-wake-parallel", "threads = 2\nruns = 1", "latency.mean"),
        ("perf-futex-requeue", "threads = 2\nruns = 1", "time"),
        ("sysbench-threads", "time = 1", "events_per_second"),
        ("sysbench-mutex", "mutex-locks = 1000", "total_time"),
        ("sysbench-memory", "time = 1", "mib_per_second"),
    ];
    let workload = |(id, options, _): &(&str, &str, &str)| format!("[[workload]]\nuse = \"{id}\"\n{options}\n");
    let (path, _) = scenario("futex-sysbench", &cases.iter().map(workload).collect::<String>());
    let (code, stdout, stderr) = agent(&["run", path.to_str().unwrap(), "--variant", "v", "--driver", "program"]);
    if code == Some(4) && stderr.contains("is not installed") {
        writeln!(std::io::stdout(), "skipped: futex and sysbench: {}", stderr.lines().next().unwrap_or("")).unwrap();
        return;
    }
    assert_eq!(code, Some(0), "{stderr}");
    let json: Json = serde_json::from_str(&stdout).unwrap();
    for (id, _, metric) in cases {
        assert!(json["drivers"][id].as_str().unwrap().starts_with("program "), "{json}");
        assert!(json["metrics"][format!("{id}.{metric}")].as_f64().is_some_and(|value| value > 0.0), "{id}: {json}");
    }
}

/// Every stressor runs as the real program, is interrupted at the end of the run, and reports both rates.
#[test]
fn the_stressors_of_stress_ng_run_as_the_real_program() {
    if !defaults_permitted("the stressors of stress-ng") {
        return;
    }
    let small = ["mmap-bytes = 65536", "vm-bytes = 1048576", "exec-max = 1"];
    let names = "cpu switch fork futex nanosleep sem context aio pipe mmap vm sock exec";
    let root = rustix::process::geteuid().is_root();
    let run = |names: &[&str]| {
        let workload = |name: &&str| {
            let small = small.iter().find(|option| option.starts_with(&format!("{name}-"))).unwrap_or(&"");
            format!("[[workload]]\nuse = \"stress-ng-{name}\"\n{name} = 1\n{small}\n")
        };
        let workloads: String = names.iter().map(workload).collect();
        let (path, _) = scenario_for("700ms", &format!("stressors-{}", names.len()), &workloads, "");
        agent(&["run", path.to_str().unwrap(), "--variant", "v", "--driver", "program"])
    };
    let runnable: Vec<&str> = names.split(' ').filter(|name| !root || *name != "exec").collect();
    let (code, stdout, stderr) = run(&runnable);
    if code == Some(4) && stderr.contains("is not installed") {
        writeln!(std::io::stdout(), "skipped: stress-ng: {}", stderr.lines().next().unwrap_or("")).unwrap();
        return;
    }
    assert_eq!(code, Some(0), "{stderr}");
    let json: Json = serde_json::from_str(&stdout).unwrap();
    for name in runnable {
        let driver = json["drivers"][format!("stress-ng-{name}")].as_str().unwrap();
        assert!(driver.starts_with("program stress-ng "), "{driver}");
        let rate = |metric: &str| json["metrics"][format!("stress-ng-{name}.bogo_ops_per_second{metric}")].as_f64();
        assert!(rate("").is_some_and(|rate| rate > 0.0), "{name}: {json}");
        // Null where the program has used less than the 10 ms that it prints.
        assert!(rate("_usr_sys").is_none_or(|rate| rate > 0.0), "{name}: {json}");
    }
    if root {
        let (code, _, stderr) = run(&["exec"]);
        assert!(code == Some(4) && stderr.contains("stress-ng-exec refuses to run as root"), "{stderr}");
    }
}

#[test]
fn control_groups_are_made_and_removed() {
    let workloads = r#"
        [[cgroup]]
        name = "a"
        weight = 300
        quota = "50ms"
        [[cgroup]]
        name = "a/low"
        idle = true
        [[workload]]
        name = "w"
        cgroup = "a"
        program = [ { begin = "done" }, { run = "1ms" }, { end = "done" } ]
        [[workload]]
        name = "v"
        cgroup = "a/low"
        program = [ { fork = "child" }, "reap", { begin = "done" }, { end = "done" } ]
        task = [ { name = "child", count = 0, program = [ { run = "1ms" } ] } ]
    "#;
    let (path, scenario) = scenario("groups", workloads);
    let (code, stdout, stderr) = agent(&["run", path.to_str().unwrap(), "--variant", "v"]);
    if code == Some(4) {
        writeln!(std::io::stdout(), "skipped: control groups: {}", stderr.lines().next().unwrap_or("")).unwrap();
        return;
    }
    assert_eq!(code, Some(0), "{stderr}");
    let json: Json = serde_json::from_str(&stdout).unwrap();
    let simulated = simulated(&scenario);
    for metric in ["w.done.count", "v.done.count"] {
        assert_eq!(simulated.metric(metric), Some(1.0), "{metric}");
        assert_eq!(json["metrics"][metric], 1.0, "{metric}");
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let hierarchies = mounts.lines().filter(|line| line.contains(" cgroup")).filter_map(|line| line.split(' ').nth(1));
    for dir in hierarchies.flat_map(|path| std::fs::read_dir(path).into_iter().flatten().flatten()) {
        let name = dir.file_name().into_string().unwrap();
        assert!(!name.starts_with("schedlab-") || !name.ends_with("-a"), "{name} is left");
    }
}

/// The tasks end with the supervisor, however it ends, in one session or in several.
#[test]
fn nothing_outlives_a_run() {
    if !defaults_permitted("nothing outlives a run") {
        return;
    }
    let endless = r#"
        [[workload]]
        name = "w"
        task = [
          { name = "left-behind", count = 3, program = [ { fork = "k" }, { loop = "forever", do = [ { run = "1ms" }, { sleep = "1ms" } ] } ] },
          { name = "k", count = 0, program = [ { sleep = "60s" } ] },
        ]
    "#;
    ends_with_its_supervisor(&scenario("endless", endless).0);
    let autogroup = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").unwrap_or_default();
    if autogroup.trim() == "1" {
        ends_with_its_supervisor(&scenario_with("endless-sessions", endless, "autogroup = true").0);
    } else {
        writeln!(std::io::stdout(), "skipped: sessions of workloads: autogroups are disabled on this kernel").unwrap();
    }
}

fn ends_with_its_supervisor(path: &Path) {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        // Tests that are started in the background inherit an ignored SIGINT.
        let mut child = Command::new("env")
            .args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_schedlab-agent")])
            .args(["run", path.to_str().unwrap(), "--variant", "v"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The supervisor, the root, the tasks' process and their three children.
        wait_until("the tasks run", || processes_of(path).len() >= 6);
        rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        if signal != Signal::KILL {
            assert_eq!(status.code(), Some(130), "{signal:?}");
        }
        wait_until("everything has ended", || processes_of(path).is_empty());
        let instance = format!("/sys/kernel/tracing/instances/schedlab-{}", child.id());
        wait_until("its tracing instance is removed", || !Path::new(&instance).exists());
    }
}

/// The processes of the agent for the scenario, by command line; forked tasks inherit that of the agent.
fn processes_of(path: &Path) -> Vec<i32> {
    let name = path.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(env!("CARGO_BIN_EXE_schedlab-agent")) && line.split('\0').any(|word| word == name)
    })
    .collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("not within 30 s: {what}");
}

/// Every measured cost is a key of a machine file, with quantiles in order.
#[test]
fn calibrated_costs_are_keys_of_machine_files() {
    if !defaults_permitted("calibrated costs are keys of machine files") {
        return;
    }
    let whole = calibrated(&["calibrate", "--quick"]);
    assert!(!whole.contains(&"schedule".to_owned()), "{whole:?}");
    let (_, stdout, _) = agent(&["calibrate", "--quick"]);
    let absent = serde_json::from_str::<Json>(&stdout).unwrap()["absent"].clone();
    let reasons: Vec<&str> = absent.as_object().unwrap().values().filter_map(Json::as_str).collect();
    let flags = reasons.iter().flat_map(|reason| reason.split(' ')).filter(|word| word.starts_with("--"));
    assert!(flags.clone().all(|flag| flag == "--traced") && flags.count() > 0, "{reasons:?}");
    let parts = calibrated(&["calibrate", "--quick", "--traced"]);
    // Otherwise this user may not trace.
    if Path::new("/sys/kernel/tracing/instances").exists() && rustix::process::geteuid().is_root() {
        for key in ["schedule", "irq-entry", "futex-wait", "socket-resume", "start-process", "reap"] {
            assert!(parts.contains(&key.to_owned()), "{parts:?}");
        }
    }
}

/// The keys in the output of `calibrate`.
fn calibrated(words: &[&str]) -> Vec<String> {
    let (code, stdout, stderr) = agent(words);
    assert_eq!(code, Some(0), "{stderr}");
    let json: Json = serde_json::from_str(&stdout).unwrap();
    let section = schedlab_scenario::SECTIONS.iter().find(|section| section.name == "[costs]").unwrap();
    let known: Vec<&str> = section.keys.iter().map(|key| key.name).collect();
    let costs = json["costs"].as_object().unwrap();
    for key in ["syscall", "switch-thread", "wakeup", "pipe-read", "fork-process"] {
        assert!(costs.contains_key(key), "{key} is missing: {}", json["absent"]);
    }
    let rate = |key: &str| json["memory"][key].as_u64();
    assert!(rate("cpu") > Some(10) && rate("node") >= rate("cpu"), "{}", json["memory"]);
    assert_eq!(json["structures"]["lines"], serde_json::json!([1, 2, 3, 4, 8]));
    for (key, cost) in costs {
        assert!(known.contains(&key.as_str()), "{key} is no key of [costs]");
        let by_distance = cost.get("p50").is_none();
        let costs: Vec<&Json> = if by_distance { cost.as_object().unwrap().values().collect() } else { vec![cost] };
        for cost in costs {
            let quantiles = ["p0", "p10", "p50", "p90", "p99", "p100"].map(|q| cost[q].as_u64().unwrap());
            assert!(quantiles.is_sorted(), "{key}: {cost}");
            assert!(cost["how"].as_str().is_some_and(|how| how.len() > 10) && cost["n"].as_u64() >= Some(10), "{key}");
        }
    }
    let measured_or_not = |key: &&str| costs.contains_key(*key) || json["absent"].get(*key).is_some();
    assert!(known.iter().all(measured_or_not), "every cost is measured or said to be absent: {known:?}");
    costs.keys().cloned().collect()
}

/// The trace of a run can be read and contains the events of its metrics.
#[test]
fn the_trace_of_a_run_is_readable() {
    if !defaults_permitted("the trace of a run is readable") {
        return;
    }
    let workloads = "[[workload]]\nname = \"w\"\nprogram = [ { loop = 5, do = [ { begin = \"nap\" }, { sleep = \"1ms\" }, { end = \"nap\" } ] } ]\n";
    let (path, _) = scenario("trace", workloads);
    let file = path.with_extension("ftrace");
    let trace = file.to_str().unwrap();
    let (code, stdout, stderr) = agent(&["run", path.to_str().unwrap(), "--variant", "v", "--trace", trace]);
    assert_eq!(code, Some(0), "{stderr}");
    let json: Json = serde_json::from_str(&stdout).unwrap();
    let mut reader = schedlab_trace::open(&file).unwrap();
    let (mut samples, mut switches) = (0, 0);
    while let Some(record) = reader.next_record().unwrap() {
        match record.event().map(|event| event.kind) {
            Some(schedlab_trace::Kind::Sample { .. }) => samples += 1,
            Some(schedlab_trace::Kind::Switch { .. }) => switches += 1,
            _ => {}
        }
    }
    // Five sleeps, and the time of the whole workload.
    assert_eq!(samples, 6);
    match json["metrics"]["sched.switches"].as_f64() {
        Some(counted) => assert_eq!(f64::from(switches), counted),
        None => {
            let why = json["unavailable"]["sched.switches"].as_str().unwrap();
            writeln!(std::io::stdout(), "skipped: scheduler tracepoints: {why}").unwrap();
        }
    }
}
