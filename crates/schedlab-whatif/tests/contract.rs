//! The contract: traces that the simulator writes of known scenarios, extracted and simulated again.
//!
//! Every case is a load, what its extraction must contain, and how far the metrics of its pools may be from those of
//! the trace.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use schedlab_scenario::Scenario;
use schedlab_whatif::{extract, Extraction, Measure, Metrics, Pool};

/// A load.
struct Case {
    name: &'static str,
    /// The tables of its tasks.
    tasks: &'static str,
    /// Texts that the extracted scenario contains.
    contains: &'static [&'static str],
    /// Pools, and how their waits end: by period, by timer, by task, by arrival.
    ends: &'static [(&'static str, [bool; 4])],
    /// How far the number of switches may be off, in percent.
    switches: u64,
}

const CASES: &[Case] = &[
    Case {
        name: "an absolute timer beside hogs",
        tasks: r#"
[[workload.task]]
name = "tick"
program = [{ loop = "forever", do = [{ timer = "t", period = "3ms", mode = "absolute" }, { run = "100us" }] }]
[[workload.task]]
name = "hog"
count = 2
program = [{ loop = "forever", do = [{ run = "1ms" }] }]
"#,
        contains: &["period = \"3ms\""],
        ends: &[("tick", [true, false, false, false])],
        switches: 10,
    },
    Case {
        name: "a relative sleep",
        tasks: r#"
[[workload.task]]
name = "nap"
program = [{ loop = "forever", do = [{ sleep = { uniform = ["1ms", "5ms"] } }, { run = { uniform = ["10us", "900us"] } }] }]
[[workload.task]]
name = "hog"
program = [{ loop = "forever", do = [{ run = "1ms" }] }]
"#,
        contains: &["{ sleep = { recorded ="],
        ends: &[("nap", [false, true, false, false])],
        switches: 10,
    },
    Case {
        name: "ping-pong",
        tasks: r#"
[[workload.task]]
name = "ping"
program = [{ loop = "forever", do = [{ run = "100us" }, { post = "a" }, { wait = "b" }] }]
[[workload.task]]
name = "pong"
program = [{ loop = "forever", do = [{ wait = "a" }, { run = "50us" }, { post = "b" }] }]
"#,
        contains: &["sem-post = \"w-pong-", "sem-post = \"w-ping-", "sem-wait = \"w-ping-"],
        ends: &[("ping", [false, false, true, false]), ("pong", [false, false, true, false])],
        switches: 10,
    },
    Case {
        name: "a pool behind arrivals from other machines",
        tasks: r#"
[[workload.remote]]
send = "requests"
sample = "response"
rate = 800
softirq = "2us"
[[workload.task]]
name = "worker"
count = 4
program = [{ loop = "forever", do = [{ receive = "requests", sample = "response" }, { run = "500us" }, { end = "response" }] }]
"#,
        contains: &["[[workload.remote]]"],
        ends: &[("worker", [false, false, false, true])],
        switches: 10,
    },
    Case {
        name: "a chain of three from a timer",
        tasks: r#"
[[workload.task]]
name = "source"
program = [{ loop = "forever", do = [{ timer = "t", period = "2ms", mode = "absolute" }, { run = "100us" }, { post = "x" }, { run = "50us" }] }]
[[workload.task]]
name = "middle"
program = [{ loop = "forever", do = [{ wait = "x" }, { run = "300us" }, { post = "y" }] }]
[[workload.task]]
name = "sink"
program = [{ loop = "forever", do = [{ wait = "y" }, { run = "200us" }] }]
[[workload.task]]
name = "hog"
nice = 5
program = [{ loop = "forever", do = [{ run = "1ms" }] }]
"#,
        contains: &["nice = 5", "sem-post = \"w-middle-", "sem-post = \"w-sink-", "period = \"2ms\""],
        ends: &[("source", [true, false, false, false]), ("middle", [false, false, true, false])],
        switches: 15,
    },
    Case {
        name: "forks and exits",
        tasks: r#"
[[workload.task]]
name = "parent"
program = [{ loop = 20, do = [{ run = "1ms" }, { fork = "child" }, "reap", { sleep = "2ms" }] }]
[[workload.task]]
name = "child"
count = 0
program = [{ run = "2ms" }]
"#,
        contains: &["{ fork = \"child-", "count = 0"],
        ends: &[],
        // Whether a child that is nearly done is preempted is decided within microseconds.
        switches: 35,
    },
];

#[test]
fn extracted_programs_behave_as_those_that_were_traced() {
    let mut wrong = Vec::new();
    for case in CASES {
        let extraction = extracted(case);
        for text in case.contains {
            assert!(extraction.scenario.contains(text), "{}: no {text}", case.name);
        }
        for (name, expected) in case.ends {
            let pool = pool(&extraction, name);
            let Pool { share, .. } = pool;
            let found = [share.by_period, share.by_timer, share.by_task, share.by_arrival];
            for (count, expected) in found.into_iter().zip(expected) {
                // The first wait, and one that the end of the trace cuts, may look otherwise.
                if (count * 20 > share.waits) != *expected {
                    wrong.push(format!("{}: {name}: {share:?}", case.name));
                }
            }
        }
        let simulated = simulate(&extraction);
        for pool in &extraction.pools {
            let found = simulated.iter().find(|(name, _)| *name == pool.name).map(|(_, metrics)| metrics);
            let found = found.unwrap_or_else(|| panic!("{}: no pool {}", case.name, pool.name));
            wrong.extend(far(case, &pool.name, &pool.recorded, found));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn text(tasks: &str) -> String {
    format!(
        "duration = \"1s\"\nmachine = {{ base = \"rpi4\", topology = {{ cores-per-llc = 1 }} }}\n\
         [[workload]]\nname = \"load\"\n{tasks}\n[[variant]]\nname = \"a\"\nkernel = \"6.12\"\n"
    )
}

fn extracted(case: &Case) -> Extraction {
    let scenario = Scenario::parse(&text(case.tasks), case.name, None).expect(case.name);
    let file = trace_file(case.name);
    schedlab_lab::run(&scenario.run_spec("a", 1).expect(case.name), Some(&file), &AtomicBool::new(false))
        .expect(case.name);
    let mut reader = schedlab_trace::open(&file).expect(case.name);
    let row = schedlab_replay::row_of(reader.header().kernel.as_deref().unwrap_or("")).expect(case.name);
    let extraction = extract(&mut *reader, row).expect(case.name);
    std::fs::remove_file(&file).ok();
    extraction
}

fn trace_file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    folder.join(format!("{}.ftrace", name.replace(' ', "-")))
}

fn simulate(extraction: &Extraction) -> Vec<(String, Metrics)> {
    let scenario = Scenario::parse(&extraction.scenario, "extracted", None)
        .unwrap_or_else(|error| panic!("{error}\n{}", extraction.scenario));
    let spec = scenario.run_spec("recorded", 1).expect("the recorded kernel");
    let mut measure = Measure::default();
    schedlab_lab::simulate(&spec, &mut measure, &AtomicBool::new(false)).expect("a run");
    measure.end(spec.duration);
    let pool_of = |name: &str| {
        let has = |pool: &&Pool| pool.share.tasks.iter().any(|task| task == name);
        extraction.pools.iter().find(has).map(|pool| pool.name.clone())
    };
    measure.pools(|_, name| pool_of(name))
}

fn pool<'a>(extraction: &'a Extraction, name: &str) -> &'a Pool {
    extraction.pools.iter().find(|pool| pool.name == name).expect("the pool")
}

/// CPU time and wakeups within a tenth, or a few events, and switches as the case says.
fn far(case: &Case, pool: &str, recorded: &Metrics, found: &Metrics) -> Vec<String> {
    let pairs = [
        ("cpu", recorded.cpu, found.cpu, 5_000_000, 10),
        ("wakeups", recorded.wakeups, found.wakeups, 5, 10),
        ("switches", recorded.switches, found.switches, 10, case.switches),
    ];
    let beyond = pairs.into_iter().filter(|(_, recorded, found, few, percent)| {
        let far = recorded.abs_diff(*found);
        far > *few && far * 100 > *recorded * percent
    });
    let case = case.name;
    beyond
        .map(|(what, recorded, found, ..)| format!("{case}: {pool}: {what} {recorded} recorded, {found} simulated"))
        .collect()
}
