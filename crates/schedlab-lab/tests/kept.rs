//! What a run keeps answers the questions that a second run would answer.

use std::sync::atomic::AtomicBool;

use schedlab_lab::{run, run_keeping, tail, Question, RunSpec};
use schedlab_scenario::Scenario;

const SCENARIO: &str = r#"
machine = "laptop-8"
duration = "60ms"
warmup = "10ms"
workload = [{ use = "hackbench", name = "load", groups = 2, repeat = true },
            { use = "cyclictest", name = "probe", smp = true, interval = "500us" }]
variant = [{ name = "a", kernel = "6.12" }]
"#;

fn spec(text: &str) -> RunSpec {
    Scenario::parse(text, "kept.toml", None).unwrap().run_spec("a", 3).unwrap()
}

/// Of the histogram's buckets, the slow 10 % and those between the 40th and the 60th percentile, in ns.
fn bands(spec: &RunSpec, metric: &str) -> Vec<(u64, u64)> {
    let run = run(spec, None, &AtomicBool::new(false)).unwrap();
    let report = run.to_json();
    let histogram = report["series"][metric]["histogram"].as_array().unwrap();
    let ends: Vec<u64> = histogram.iter().map(|bucket| (bucket[0].as_f64().unwrap() * 1e3).round() as u64).collect();
    let at = |share: usize| ends[ends.len() * share / 100];
    vec![(at(90) + 1, u64::MAX >> 1), (at(40) + 1, at(60))]
}

fn ask(text: &str, metric: &str, question: impl Fn(Vec<(u64, u64)>) -> Vec<(u64, u64)>) -> Option<bool> {
    let (spec, watch) = (spec(text), AtomicBool::new(false));
    let bands = question(bands(&spec, metric));
    let question = Question { metric: metric.into(), bands };
    let (kept_run, kept) = run_keeping(&spec, &[metric.to_owned()], &watch).unwrap();
    assert_eq!(kept_run, run(&spec, None, &watch).unwrap());
    let repeated = tail(&spec, &question, &watch).unwrap();
    let counted = repeated["bands"].as_array().unwrap().iter().all(|band| band["count"].as_u64() > Some(0));
    assert!(counted, "each band has samples: {repeated}");
    kept.tail(&spec, &question, &kept_run.digest, kept_run.events).map(|answer| answer == repeated)
}

#[test]
fn a_run_that_keeps_samples_answers_as_a_repeated_one() {
    assert_eq!(ask(SCENARIO, "probe.latency", |bands| bands), Some(true));
    assert_eq!(ask(SCENARIO, "sched.wakeup_latency", |bands| bands), Some(true));
}

#[test]
fn what_was_not_kept_is_not_answered() {
    // Bands that do not consist of buckets.
    assert_eq!(ask(SCENARIO, "probe.latency", |bands| bands.iter().map(|(a, b)| (a - 1, *b)).collect()), None);
    // Tasks that may be out of runtime, which no event shows.
    let real_time = SCENARIO.replace("interval =", "policy = \"fifo\", priority = 50, interval =");
    assert_eq!(ask(&real_time, "probe.latency", |bands| bands), None);
    let quota = SCENARIO
        .replace("variant =", "cgroup = [{ name = \"web\", quota = \"700ms\", period = \"100ms\" }]\nvariant =")
        .replace("name = \"load\",", "name = \"load\", cgroup = \"web\",");
    assert_eq!(ask(&quota, "probe.latency", |bands| bands), None);
    // More samples than are divided.
    let many = SCENARIO.replace("60ms", "400ms");
    assert_eq!(ask(&many, "sched.wakeup_latency", |bands| bands), None);
}
