//! The decision at which two variants part is the one whose rule differs.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::atomic::AtomicBool;

use schedlab_lab::explain::{explain, why, DecisionView, Parting, Who, WhyError};
use schedlab_scenario::Scenario;

const HOGS: &str =
    "machine = { base = \"laptop-8\", topology = { cores-per-llc = 1 } }\nduration = \"200ms\"\nnoise = false\n\
                    workload = [{ use = \"hog\" }, { use = \"hog\", name = \"second\" }]\n";
const MIX: &str = "machine = \"laptop-8\"\nduration = \"100ms\"\n\
                   workload = [{ use = \"hackbench\", groups = 1, repeat = true }, \
                   { use = \"cyclictest\", smp = true, interval = \"500us\" }]\n";

fn parting(workload: &str, a: &str, b: &str) -> Option<Parting> {
    let text = format!("{workload}variant = [{{ name = \"a\", {a} }}, {{ name = \"b\", {b} }}]\n");
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap();
    let spec = |variant: &str| scenario.run_spec(variant, 1).unwrap();
    explain([&spec("a"), &spec("b")], &AtomicBool::new(false)).unwrap()
}

/// Workload, variants, the question, and per side the verdict with its function and feature; "" = not asked.
type Case = (&'static str, &'static str, &'static str, &'static str, [(&'static str, &'static str, &'static str); 2]);

const CASES: &[Case] = &[
    (
        HOGS,
        "kernel = \"6.1\", hz = 1000, features = { START_DEBIT = false }",
        "kernel = \"6.6\", hz = 1000",
        "tick",
        [("stay", "check_preempt_tick", ""), ("expire", "update_curr", "")],
    ),
    (
        HOGS,
        "kernel = \"6.12.107\"",
        "kernel = \"6.12.107\", hz = 1000",
        "tick",
        [("", "", ""), ("expire", "update_curr", "")],
    ),
    (
        MIX,
        "kernel = \"6.6\"",
        "kernel = \"6.6\", features = { RUN_TO_PARITY = false }",
        "preempt_check",
        [("keep", "check_preempt_wakeup", "RUN_TO_PARITY"), ("preempt", "check_preempt_wakeup", "")],
    ),
    (
        MIX,
        "kernel = \"6.18.44\", preempt = \"full\"",
        "kernel = \"6.18.44\", preempt = \"lazy\"",
        "preempt_check",
        [("preempt", "check_preempt_wakeup_fair", ""), ("preempt", "check_preempt_wakeup_fair", "")],
    ),
    (
        MIX,
        "kernel = \"6.1\"",
        "kernel = \"6.1\", features = { WA_IDLE = false }",
        "placement",
        [("place", "wake_affine", "WA_IDLE"), ("place", "wake_affine", "WA_WEIGHT")],
    ),
];

#[test]
fn the_rule_that_differs_is_named() {
    for (workload, a, b, question, sides) in CASES {
        // Which decision is the first to differ hangs on a mix's times: one of these parts at the one that is meant.
        let told = |interval: &str| {
            let workload = workload.replace("500us", interval);
            let parting = parting(&workload, a, b).unwrap_or_else(|| panic!("{a} | {b}: never part"));
            let told = parting.sides.each_ref().map(|side| {
                let of = |told: &DecisionView| (told.verdict, told.function, told.feature.unwrap_or_default());
                side.decision.as_ref().map_or(("", "", ""), of)
            });
            (parting.question, told)
        };
        let all: Vec<_> = ["500us", "400us", "600us", "700us", "300us"].into_iter().map(told).collect();
        assert!(all.contains(&(*question, *sides)), "{a} | {b}: {all:#?}");
    }
}

/// Ticks cost time: what comes after them comes later, in another order in the end, whatever anybody decides.
const COSTS: &[(&str, &str)] = &[
    ("kernel = \"6.12.107\", hz = 250", "kernel = \"6.12.107\", hz = 1000"),
    ("kernel = \"6.1\", hz = 250", "kernel = \"6.1\", hz = 100"),
    ("kernel = \"6.12.107\"", "kernel = \"6.12.107\", features = { SIS_UTIL = false }"),
    ("kernel = \"6.12.107\"", "kernel = \"6.12.107\", features = { TTWU_QUEUE = false }"),
    ("kernel = \"6.6\"", "kernel = \"6.12.0\""),
    ("kernel = \"7.2\"", "kernel = \"7.2\", features = { HRTICK = false }"),
];

#[test]
fn a_decision_is_blamed_only_if_it_differs_and_costs_are_told_as_what_moved() {
    let mut by_costs = 0;
    let mixes = ["500us", "600us", "400us", "1ms"].map(|interval| MIX.replace("500us", interval));
    for (workload, (a, b)) in mixes.iter().flat_map(|mix| COSTS.iter().map(move |case| (mix, case))) {
        let Some(parting) = parting(workload, a, b) else { continue };
        let decisions = parting.sides.each_ref().map(|side| side.decision.as_ref());
        if let [Some(a), Some(b)] = decisions {
            let what = |told: &DecisionView| (told.verdict, told.pid, told.group, told.other_cpu, told.asked);
            assert_ne!(what(a), what(b), "{parting:#?}");
            assert_eq!(parting.same_rule, (a.rule, a.feature) == (b.rule, b.feature), "{parting:#?}");
        }
        let Some(costs) = &parting.costs else {
            assert!(parting.question != "order" && decisions.iter().any(Option::is_some), "{parting:#?}");
            continue;
        };
        by_costs += 1;
        assert_eq!((parting.question, decisions), ("order", [None, None]), "{parting:#?}");
        let times: Vec<[Option<u64>; 2]> = costs.events.iter().flatten().map(|moved| moved.at_ns).collect();
        if let [[Some(a0), Some(b0)], [Some(a1), Some(b1)]] = times[..] {
            // The first run's own event comes first there, the second's in the other run.
            assert!(a0 <= a1 && b1 <= b0, "{costs:#?}");
        }
        let later = |side: usize| parting.sides[side].event_ns.is_none_or(|at| at >= costs.since_ns[side]);
        assert!(later(0) && later(1) && parting.alike > 0, "{parting:#?}");
    }
    assert!(by_costs > 0);
}

#[test]
fn equal_variants_never_part_and_an_ablated_feature_without_effect_does_not_either() {
    let kernel = "kernel = \"6.12.107\"";
    assert_eq!(parting(MIX, kernel, kernel), None);
    // Nobody has a slice of its own here.
    assert_eq!(parting(HOGS, kernel, "kernel = \"6.12.107\", features = { PREEMPT_SHORT = false }"), None);
}

#[test]
fn a_waiting_task_is_told_who_runs_and_what_ended_it() {
    let text = format!("{HOGS}variant = [{{ name = \"x\", kernel = \"6.6\", hz = 1000 }}]\n");
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap();
    let spec = scenario.run_spec("x", 1).unwrap();
    let ask = |who: Who, at: u64| why(&spec, &who, at, &AtomicBool::new(false));
    let mut seen = Vec::new();
    for at in [10_500_000, 12_500_000, 15_100_000] {
        let [a, b] = [1, 2].map(|pid| ask(Who::Pid(pid), at).unwrap());
        // One of two hogs runs, the other waits for it.
        let (runs, waits) = if a.state == "running" { (a, b) } else { (b, a) };
        assert_eq!((runs.state, waits.state, waits.runner), ("running", "waiting", Some(runs.pid)));
        assert_eq!((runs.since_ns, runs.ended_ns), (waits.since_ns, waits.ended_ns));
        assert_eq!(waits.picked.last().map(|told| (told.verdict, told.pid)), Some(("pick", Some(runs.pid))));
        let ended = waits.ended_by.last().unwrap();
        assert_eq!((ended.verdict, ended.pid), ("pick", Some(waits.pid)), "{waits:#?}");
        assert!(waits.ended_ns.unwrap() > at && waits.since_ns.unwrap() <= at);
        seen.push(waits.pid);
    }
    assert!(seen.contains(&1) && seen.contains(&2), "{seen:?}");
    assert_eq!(ask(Who::Name("second".into()), 5_000_000).unwrap().pid, 2);
    assert!(matches!(ask(Who::Name("hog".into()), 5_000_000), Err(WhyError::Several { .. })));
    assert!(matches!(ask(Who::Pid(9), 5_000_000), Err(WhyError::NoTask { .. })));
    assert!(matches!(ask(Who::Pid(1), 999_000_000_000), Err(WhyError::Over { .. })));
}
