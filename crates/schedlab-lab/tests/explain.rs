//! The first difference between two variants is the decision whose rule differs.

use std::sync::atomic::AtomicBool;

use schedlab_lab::explain::{
    explain, why, ActionKind, DecisionView, FirstDifference, Question, TaskSelector, TaskState, WhyError,
};
use schedlab_scenario::Scenario;

const HOGS: &str =
    "machine = { base = \"laptop-8\", topology = { cores-per-llc = 1 } }\nduration = \"200ms\"\nnoise = false\n\
                    workload = [{ use = \"hog\" }, { use = \"hog\", name = \"second\" }]\n";
const CROWD: &str = "machine = \"laptop-8\"\nduration = \"300ms\"\n\
                     workload = [{ use = \"hackbench\", groups = 2, repeat = true }, { use = \"hog\", threads = 3 }]\n";
const MIX: &str = "machine = \"laptop-8\"\nduration = \"100ms\"\n\
                   workload = [{ use = \"hackbench\", groups = 1, repeat = true }, \
                   { use = \"cyclictest\", smp = true, interval = \"500us\" }]\n";

/// Two tasks, each on a CPU that no other task may use: nothing is decided that a variant could decide in another way,
/// and ticks take time from both.
const ALONE: &str = "machine = \"laptop-8\"\nduration = \"100ms\"\n\
                     workload = [{ name = \"one\", cpus = \"0\", program = [{ loop = \"forever\", do = [{ run = \"900us\" }, \
                     { sleep = \"90us\" }] }] }, { name = \"other\", cpus = \"2\", program = [{ loop = \"forever\", do = [\
                     { run = \"1300us\" }, { sleep = \"70us\" }] }] }]\n";

fn difference(workload: &str, a: &str, b: &str) -> Option<FirstDifference> {
    let text = format!("{workload}variant = [{{ name = \"a\", {a} }}, {{ name = \"b\", {b} }}]\n");
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap();
    let spec = |variant: &str| scenario.run_spec(variant, 1).unwrap();
    explain([&spec("a"), &spec("b")], &AtomicBool::new(false)).unwrap()
}

/// Workload, variants, the question, and per side the action with its function and feature; "" if the question did not
/// come up.
type Case = (&'static str, &'static str, &'static str, Question, [(&'static str, &'static str, &'static str); 2]);

const CASES: &[Case] = &[
    (
        HOGS,
        "kernel = \"6.1\", hz = 1000, features = { START_DEBIT = false }",
        "kernel = \"6.6\", hz = 1000",
        Question::Tick,
        [("stay", "check_preempt_tick", ""), ("expire", "update_curr", "")],
    ),
    (
        HOGS,
        "kernel = \"6.12.107\"",
        "kernel = \"6.12.107\", hz = 1000",
        Question::Tick,
        [("", "", ""), ("expire", "update_curr", "")],
    ),
    (
        MIX,
        "kernel = \"6.6\"",
        "kernel = \"6.6\", features = { RUN_TO_PARITY = false }",
        Question::PreemptCheck,
        [("keep", "check_preempt_wakeup", "RUN_TO_PARITY"), ("preempt", "check_preempt_wakeup", "")],
    ),
    (
        MIX,
        "kernel = \"6.18.44\", preempt = \"full\"",
        "kernel = \"6.18.44\", preempt = \"lazy\"",
        Question::PreemptCheck,
        [("preempt", "check_preempt_wakeup_fair", ""), ("preempt", "check_preempt_wakeup_fair", "")],
    ),
    (
        CROWD,
        "kernel = \"6.12.0\"",
        "kernel = \"6.18.44\"",
        Question::Pull,
        [("pull", "sched_balance_rq", ""), ("skip", "can_migrate_task", "")],
    ),
    (
        MIX,
        "kernel = \"6.1\"",
        "kernel = \"6.1\", features = { WA_IDLE = false }",
        Question::Placement,
        [("place", "wake_affine", "WA_IDLE"), ("place", "wake_affine", "WA_WEIGHT")],
    ),
];

#[test]
fn the_rule_that_differs_is_named() {
    for (workload, a, b, question, sides) in CASES {
        // Which decision differs first depends on the timing of the mix: one of these intervals reaches the intended
        // one.
        let view = |interval: &str| {
            let workload = workload.replace("500us", interval);
            let difference = difference(&workload, a, b).unwrap_or_else(|| panic!("{a} | {b}: no difference"));
            let view = difference.sides.each_ref().map(|side| {
                let of = |view: &DecisionView| (view.action.name(), view.function, view.feature.unwrap_or_default());
                side.decision.as_ref().map_or(("", "", ""), of)
            });
            (difference.question, view)
        };
        let all: Vec<_> = ["500us", "400us", "600us", "700us", "300us"].into_iter().map(view).collect();
        assert!(all.contains(&(*question, *sides)), "{a} | {b}: {all:#?}");
    }
}

/// Variants whose costs differ: events shift in time and finally change their order although no decision differs.
const COSTS: &[(&str, &str)] = &[
    ("kernel = \"6.12.107\", hz = 250", "kernel = \"6.12.107\", hz = 1000"),
    ("kernel = \"6.1\", hz = 250", "kernel = \"6.1\", hz = 100"),
    ("kernel = \"6.12.107\"", "kernel = \"6.12.107\", features = { SIS_UTIL = false }"),
    ("kernel = \"6.12.107\"", "kernel = \"6.12.107\", features = { TTWU_QUEUE = false }"),
    ("kernel = \"6.6\"", "kernel = \"6.12.0\""),
    ("kernel = \"7.2\"", "kernel = \"7.2\", features = { HRTICK = false }"),
    ("kernel = \"7.0\"", "kernel = \"7.3\""),
];

#[test]
fn a_decision_is_reported_only_if_it_differs_and_costs_only_if_none_does() {
    let mixes = ["500us", "600us", "400us", "1ms"].map(|interval| MIX.replace("500us", interval));
    let alone = ALONE.to_owned();
    for (workload, (a, b)) in mixes.iter().chain([&alone]).flat_map(|mix| COSTS.iter().map(move |case| (mix, case))) {
        let Some(difference) = difference(workload, a, b) else { continue };
        let decisions = difference.sides.each_ref().map(|side| side.decision.as_ref());
        if let [Some(a), Some(b)] = decisions {
            let what = |view: &DecisionView| (view.action, view.pid, view.group, view.other_cpu, view.need_resched);
            assert_ne!(what(a), what(b), "{difference:#?}");
            assert_eq!(difference.same_rule, (a.rule, a.feature) == (b.rule, b.feature), "{difference:#?}");
        }
        let Some(costs) = &difference.costs else {
            assert!(difference.question != Question::Order && decisions.iter().any(Option::is_some), "{difference:#?}");
            continue;
        };
        assert_eq!((difference.question, decisions), (Question::Order, [None, None]), "{difference:#?}");
        let times: Vec<[Option<u64>; 2]> = costs.events.iter().flatten().map(|moved| moved.at_ns).collect();
        if let [[Some(a0), Some(b0)], [Some(a1), Some(b1)]] = times[..] {
            // Each run has its own event first.
            assert!(a0 <= a1 && b1 <= b0, "{costs:#?}");
        }
        let later = |side: usize| difference.sides[side].event_ns.is_none_or(|at| at >= costs.since_ns[side]);
        assert!(later(0) && later(1) && difference.equal_decisions > 0, "{difference:#?}");
    }
    let [(a, b), ..] = COSTS else { unreachable!() };
    assert!(difference(ALONE, a, b).is_some_and(|difference| difference.costs.is_some()));
}

/// Where machine, HZ and preemption model are the same, every cost is: if events differ, a decision is named. The pairs
/// are drawn, the same ones in every run.
#[test]
fn runs_with_equal_costs_differ_by_a_decision() {
    const ROWS: [&str; 11] = ["5.2", "5.10", "6.1", "6.3", "6.6", "6.8", "6.12.0", "6.12.107", "6.18.44", "7.0", "7.3"];
    const LOADS: [&str; 3] = [
        "machine = { base = \"laptop-8\", topology = { cores-per-llc = 1 } }\nduration = \"60ms\"\n\
         workload = [{ use = \"hackbench\", groups = 1, repeat = true }]\n",
        HOGS,
        MIX,
    ];
    let mut draw = 1u64;
    let mut next = |below: usize| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draw >> 33) as usize % below
    };
    let mut named = 0;
    for (case, load) in LOADS.iter().cycle().take(18).enumerate() {
        let [a, b] = [next(ROWS.len()), next(ROWS.len())]
            .map(|row| format!("kernel = \"{}\", hz = 250, preempt = \"full\"", ROWS[row]));
        let Some(found) = difference(load, &a, &b) else { continue };
        assert!(found.costs.is_none() && found.question != Question::Order, "{case}: {a}, {b}: {found:#?}");
        named += 1;
    }
    assert!(named > 9, "{named}");
}

#[test]
fn equal_variants_and_a_feature_without_effect_make_no_difference() {
    let kernel = "kernel = \"6.12.107\"";
    assert_eq!(difference(MIX, kernel, kernel), None);
    // No task has a slice of its own here.
    assert_eq!(difference(HOGS, kernel, "kernel = \"6.12.107\", features = { PREEMPT_SHORT = false }"), None);
}

#[test]
fn a_waiting_task_is_explained_by_the_running_task_and_by_what_ended_the_wait() {
    let text = format!("{HOGS}variant = [{{ name = \"x\", kernel = \"6.6\", hz = 1000 }}]\n");
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap();
    let spec = scenario.run_spec("x", 1).unwrap();
    let ask = |who: TaskSelector, at: u64| why(&spec, &who, at, &AtomicBool::new(false));
    let mut waiting_pids = Vec::new();
    for at in [10_500_000, 12_500_000, 15_100_000] {
        let [a, b] = [1, 2].map(|pid| ask(TaskSelector::Pid(pid), at).unwrap());
        // One of two hogs runs, the other waits for it.
        let (runs, waits) = if a.state == TaskState::Running { (a, b) } else { (b, a) };
        assert_eq!((runs.state, waits.state, waits.runner), (TaskState::Running, TaskState::Waiting, Some(runs.pid)));
        assert_eq!((runs.since_ns, runs.ended_ns), (waits.since_ns, waits.ended_ns));
        assert_eq!(waits.picked.last().map(|view| (view.action, view.pid)), Some((ActionKind::Pick, Some(runs.pid))));
        let ended = waits.ended_by.last().unwrap();
        assert_eq!((ended.action, ended.pid), (ActionKind::Pick, Some(waits.pid)), "{waits:#?}");
        assert!(waits.ended_ns.unwrap() > at && waits.since_ns.unwrap() <= at);
        waiting_pids.push(waits.pid);
    }
    assert!(waiting_pids.contains(&1) && waiting_pids.contains(&2), "{waiting_pids:?}");
    assert_eq!(ask(TaskSelector::Name("second".into()), 5_000_000).unwrap().pid, 2);
    assert!(matches!(ask(TaskSelector::Name("hog".into()), 5_000_000), Err(WhyError::Several { .. })));
    assert!(matches!(ask(TaskSelector::Pid(9), 5_000_000), Err(WhyError::NoTask { .. })));
    assert!(matches!(ask(TaskSelector::Pid(1), 999_000_000_000), Err(WhyError::Over { .. })));
}
