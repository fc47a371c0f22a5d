//! Decisions between groups, about quotas and of the real-time class are explained like those between tasks.

use std::sync::atomic::AtomicBool;

use schedlab_lab::explain::{explain, why, DecisionView, FirstDifference, Question, TaskSelector, TaskState, Why};
use schedlab_scenario::Scenario;

/// One CPU and no random noise.
const HEAD: &str =
    "machine = { base = \"laptop-8\", topology = { cores-per-llc = 1 } }\nduration = \"500ms\"\nnoise = false\n";

fn scenario(body: &str) -> Scenario {
    Scenario::parse(&format!("{HEAD}{body}"), "test.toml", None).unwrap()
}

fn difference(body: &str) -> FirstDifference {
    let scenario = scenario(body);
    let spec = |variant: &str| scenario.run_spec(variant, 1).unwrap();
    explain([&spec("a"), &spec("b")], &AtomicBool::new(false)).unwrap().unwrap()
}

fn ask(body: &str, who: &str, at: u64) -> Why {
    let spec = scenario(body).run_spec("a", 1).unwrap();
    why(&spec, &TaskSelector::Name(who.into()), at, &AtomicBool::new(false)).unwrap()
}

/// Action, function, the group's path and the task's name of a decision.
fn words<'a>(view: &'a DecisionView, groups: &'a schedlab_lab::explain::GroupNames) -> (&'a str, &'a str, &'a str) {
    (view.action.name(), view.function, view.group.map_or("", |group| groups[&group].as_str()))
}

const GROUPS: &str = "cgroup = [{ name = \"a\" }, { name = \"b\" }, { name = \"b/c\" }]\n\
    workload = [{ use = \"hog\", name = \"one\", cgroup = \"a\" }, { use = \"hog\", name = \"three\", cgroup = \"b/c\" }]\n";

#[test]
fn the_group_level_of_the_first_difference_is_named() {
    for (kernel, question, function) in [
        ("6.1", Question::Tick, "check_preempt_tick"),
        ("6.6", Question::Pick, "pick_eevdf"),
        ("6.12.107", Question::Pick, "pick_eevdf"),
        ("7.2", Question::Pick, "pick_eevdf"),
    ] {
        let kernel = format!("kernel = \"{kernel}\", hz = 1000, preempt = \"full\"");
        let difference = difference(&format!(
            "{GROUPS}variant = [{{ name = \"a\", {kernel} }}, \
             {{ name = \"b\", {kernel}, cgroups.b.weight = 300 }}]\n"
        ));
        assert_eq!(difference.question, question, "{kernel}: {difference:#?}");
        for view in difference.sides.iter().filter_map(|side| side.decision.as_ref()) {
            let (_, named, group) = words(view, &difference.groups);
            assert!(["/a", "/b"].contains(&group) && named == function, "{kernel}: {difference:#?}");
        }
    }
}

#[test]
fn a_pick_is_reported_level_by_level() {
    let kernel = "kernel = \"6.12.107\", hz = 1000";
    let body = format!("{GROUPS}variant = [{{ name = \"a\", {kernel} }}]\n");
    let waits = [50_500_000, 54_500_000, 58_500_000].into_iter().map(|at| ask(&body, "one", at));
    let waits = waits.into_iter().find(|why| why.state == TaskState::Waiting).unwrap();
    let view: Vec<_> = waits.picked.iter().map(|view| (words(view, &waits.groups).2, view.pid)).collect();
    assert_eq!(view, [("/b", None), ("/b/c", None), ("", Some(2))], "{waits:#?}");
    let ended: Vec<_> =
        waits.ended_by.iter().map(|view| (view.action.name(), words(view, &waits.groups).2, view.pid)).collect();
    assert_eq!(ended, [("expire", "/b", Some(2)), ("pick", "/a", None), ("pick", "", Some(1))], "{waits:#?}");
}

#[test]
fn a_throttled_task_reports_its_group_and_the_refill() {
    for kernel in ["5.2", "6.1", "6.12.107", "6.18.2", "7.2"] {
        let body = format!(
            "cgroup = [{{ name = \"top\", quota = \"20ms\", period = \"100ms\" }}, {{ name = \"top/in\" }}]\n\
             workload = [{{ use = \"hog\", name = \"limited\", cgroup = \"top/in\" }}, {{ use = \"hog\", name = \"free\" }}]\n\
             variant = [{{ name = \"a\", kernel = \"{kernel}\", hz = 1000 }}]\n"
        );
        let why = ask(&body, "limited", 290_000_000);
        assert_eq!((why.state, why.runner), (TaskState::Throttled, Some(2)), "{kernel}: {why:#?}");
        let throttle = why.throttle.as_ref().unwrap();
        assert_eq!(words(throttle, &why.groups), ("throttle", "throttle_cfs_rq", "/top"), "{kernel}");
        // The quota is refilled at 300 ms.
        let [left, refill] = throttle.compared[..] else { panic!("{kernel}: {throttle:?}") };
        assert!(left.1 <= 0 && throttle.time_ns + refill.1 as u64 == 300_000_000, "{kernel}: {throttle:?}");
        let ended: Vec<_> = why.ended_by.iter().map(|view| words(view, &why.groups)).collect();
        assert!(ended.contains(&("unthrottle", "unthrottle_cfs_rq", "/top")), "{kernel}: {ended:?}");
        assert!(why.ended_ns.unwrap() >= 300_000_000 && why.queue.throttled.len() == 1, "{kernel}: {why:#?}");
    }
}

#[test]
fn a_quota_that_makes_the_difference_is_named() {
    for (kernel, action, function) in [
        ("6.1", "expire", "__account_cfs_rq_runtime"),
        ("6.12.107", "expire", "__account_cfs_rq_runtime"),
        ("6.18.2", "expire", "__account_cfs_rq_runtime"),
        ("7.2", "leave", "throttle_cfs_rq_work"),
    ] {
        let kernel = format!("kernel = \"{kernel}\", hz = 1000, preempt = \"full\"");
        let difference = difference(&format!(
            "cgroup = [{{ name = \"top\" }}]\n\
             workload = [{{ use = \"hog\", name = \"limited\", cgroup = \"top\" }}]\n\
             variant = [{{ name = \"a\", {kernel} }}, \
             {{ name = \"b\", {kernel}, cgroups.top = {{ quota = \"20ms\", period = \"100ms\" }} }}]\n"
        ));
        let view = difference.sides[1].decision.as_ref().unwrap_or_else(|| panic!("{kernel}: {difference:#?}"));
        assert_eq!(words(view, &difference.groups), (action, function, "/top"), "{kernel}: {difference:#?}");
    }
}

#[test]
fn a_real_time_task_that_runs_instead_is_reported() {
    for kernel in ["6.1", "6.12.107"] {
        let body = format!(
            "workload = [{{ use = \"hog\", name = \"fair\" }}, \
             {{ use = \"hog\", name = \"rt\", policy = \"fifo:10\" }}]\n\
             variant = [{{ name = \"a\", kernel = \"{kernel}\", hz = 1000 }}]\n"
        );
        let why = ask(&body, "fair", 400_000_000);
        assert_eq!((why.state, why.runner), (TaskState::Waiting, Some(2)), "{kernel}: {why:#?}");
        let picked: Vec<_> = why.picked.iter().map(|view| (view.class, view.function, view.compared[0])).collect();
        assert_eq!(picked, [("rt", "_pick_next_task_rt", ("priority", 10))], "{kernel}");
        assert_eq!((why.queue.real_time.len(), why.queue.real_time[0].running), (1, true));
        assert!(
            why.kept.iter().all(|view| (view.action.name(), view.function) == ("stay", "task_tick_rt")),
            "{kernel}"
        );
    }
}

#[test]
fn a_deadline_task_that_runs_or_is_throttled_is_reported() {
    for kernel in ["6.1", "6.12.107"] {
        let body = format!(
            "workload = [{{ use = \"hog\", name = \"rt\", policy = \"fifo:99\" }}, \
             {{ use = \"hog\", name = \"dl\", policy = \"deadline:20ms/50ms\" }}, \
             {{ use = \"hog\", name = \"late\", policy = \"deadline:10ms/60ms\" }}]\n\
             variant = [{{ name = \"a\", kernel = \"{kernel}\", hz = 1000 }}]\n"
        );
        // It begins at 0: 20 ms of its own, then 10 ms of the other.
        let waits = ask(&body, "late", 10_000_000);
        assert_eq!((waits.state, waits.runner), (TaskState::Waiting, Some(2)), "{kernel}: {waits:#?}");
        let picked: Vec<_> = waits.picked.iter().map(|view| (view.class, view.function, view.rule)).collect();
        assert_eq!(picked, [("dl", "pick_next_dl_entity", "earliest deadline")], "{kernel}");
        let queue: Vec<_> = waits.queue.deadline.iter().map(|view| (view.pid, view.running)).collect();
        assert_eq!(queue, [(2, true), (3, false)], "{kernel}");
        let throttled = ask(&body, "dl", 35_000_000);
        assert_eq!((throttled.state, throttled.runner), (TaskState::Throttled, Some(1)), "{kernel}: {throttled:#?}");
        let throttle =
            throttled.throttle.as_ref().map(|view| (view.class, view.action.name(), view.function, view.rule));
        let reason = ("dl", "throttle", "update_curr_dl", "its runtime is used up");
        assert_eq!(throttle, Some(reason), "{kernel}: {throttled:#?}");
        assert!(throttled.ended_by.iter().any(|view| view.function == "dl_task_timer"), "{kernel}: {throttled:#?}");
        let rt = ask(&body, "rt", 10_000_000);
        assert!(rt.state == TaskState::Waiting && rt.picked.iter().all(|view| view.class == "dl"), "{kernel}: {rt:#?}");
    }
}

#[test]
fn the_throttle_of_the_real_time_class_is_reported() {
    for (kernel, function) in [("6.1", "sched_rt_runtime_exceeded"), ("6.12.107", "dl_server_timer")] {
        let body = format!(
            "workload = [{{ use = \"hog\", name = \"fair\" }}, \
             {{ use = \"hog\", name = \"rt\", policy = \"fifo:10\" }}]\n\
             variant = [{{ name = \"a\", kernel = \"{kernel}\", hz = 1000, \
               physics = {{ housekeeping = false }} }}]\n"
        )
        .replace("workload", "duration = \"1500ms\"\nworkload");
        let body = body.as_str();
        let spec =
            Scenario::parse(&format!("{}{body}", HEAD.replace("duration = \"500ms\"\n", "")), "t", None).unwrap();
        let spec = spec.run_spec("a", 1).unwrap();
        let ask = |who: &str, at| why(&spec, &TaskSelector::Name(who.into()), at, &AtomicBool::new(false)).unwrap();
        // The real-time class may use 95% of each second.
        let why = ask("rt", 970_000_000);
        assert_eq!((why.state, why.runner), (TaskState::Waiting, Some(1)), "{kernel}: {why:#?}");
        let throttle = why.throttle.as_ref().unwrap_or_else(|| panic!("{kernel}: {why:#?}"));
        assert_eq!((throttle.class, throttle.action.name(), throttle.function), ("rt", "throttle", function));
        let fair = ask("fair", 900_000_000);
        assert!(fair.ended_by.iter().any(|view| view.function == function), "{kernel}: {fair:#?}");
    }
}

#[test]
fn a_real_time_policy_of_one_variant_is_the_first_difference() {
    let kernel = "kernel = \"6.12.107\", hz = 1000";
    let difference = difference(&format!(
        "workload = [{{ use = \"hog\" }}, {{ use = \"cyclictest\", interval = \"3ms\" }}]\n\
         variant = [{{ name = \"a\", {kernel} }}, {{ name = \"b\", {kernel}, tasks.cyclictest.policy = \"fifo:50\" }}]\n"
    ));
    let view = difference.sides.each_ref().map(|side| side.decision.as_ref().map(|view| (view.class, view.function)));
    // Both are new: the first pick already differs.
    let expected = [Some(("fair", "pick_eevdf")), Some(("rt", "_pick_next_task_rt"))];
    assert_eq!((difference.question, view), (Question::Pick, expected), "{difference:#?}");
}

#[test]
fn sessions_are_named() {
    let kernel = "kernel = \"6.12.107\", hz = 1000";
    let difference = difference(&format!(
        "workload = [{{ use = \"hog\", name = \"build\", threads = 3 }}, {{ use = \"hog\", name = \"player\" }}]\n\
         variant = [{{ name = \"a\", {kernel} }}, {{ name = \"b\", {kernel}, autogroup = true }}]\n"
    ));
    let view: Vec<_> = difference.sides.iter().filter_map(|side| side.decision.as_ref()).collect();
    let groups: Vec<_> = view.iter().map(|view| words(view, &difference.groups).2).collect();
    assert!(groups.iter().any(|group| group.starts_with("/autogroup-")), "{difference:#?}");
}

/// If the group of a waiting task is throttled meanwhile, the explanation has the throttle and the unthrottle.
#[test]
fn a_wait_through_a_throttle_names_the_quota() {
    for kernel in ["5.13", "6.6", "6.12.107", "6.18.2", "7.2"] {
        let body = format!(
            "cgroup = [{{ name = \"top\", quota = \"20ms\", period = \"100ms\" }}]\n\
             workload = [{{ use = \"hog\", name = \"limited\", cgroup = \"top\", threads = 3 }}, {{ use = \"hog\", name = \"free\" }}]\n\
             variant = [{{ name = \"a\", kernel = \"{kernel}\", hz = 1000 }}]\n"
        );
        let spec = scenario(&body).run_spec("a", 1).unwrap();
        let answers = (201..240)
            .flat_map(|at| (1..=3).map(move |pid| (at, pid)))
            .map(|(at, pid)| why(&spec, &TaskSelector::Pid(pid), at * 1_000_000, &AtomicBool::new(false)).unwrap());
        let through = |why: &Why| why.state == TaskState::Waiting && why.ended_ns.is_some_and(|at| at >= 300_000_000);
        let why = answers.into_iter().find(through).unwrap_or_else(|| panic!("{kernel}: no task waits that long"));
        let ended: Vec<_> = why.ended_by.iter().map(|view| words(view, &why.groups)).collect();
        let quota = [("throttle", "throttle_cfs_rq", "/top"), ("unthrottle", "unthrottle_cfs_rq", "/top")];
        let places = quota.map(|view| ended.iter().position(|ended| *ended == view));
        assert!(places[0].is_some() && places[0] < places[1], "{kernel}: {:#?}", why.ended_by);
    }
}

/// A SCHED_FIFO hog on its CPU: up to 6.11 the class is throttled after 950 ms of every second, even if no other task
/// is runnable. From 6.12 on it is not.
#[test]
fn real_time_throttling_that_makes_the_difference_is_named() {
    let text = HEAD.replace("500ms", "2s")
        + "workload = [{ use = \"hog\", name = \"rt\", policy = \"fifo:10\" }]\n\
           variant = [{ name = \"a\", kernel = \"6.12.0\" }, { name = \"b\", kernel = \"6.3\" }]\n";
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap();
    let spec = |variant: &str| scenario.run_spec(variant, 1).unwrap();
    let difference = explain([&spec("a"), &spec("b")], &AtomicBool::new(false)).unwrap().unwrap();
    let decided = difference.sides.each_ref().map(|side| side.decision.as_ref().map(|view| view.function));
    assert_eq!(difference.question, Question::Runtime, "{difference:#?}");
    assert_eq!(decided, [None, Some("sched_rt_runtime_exceeded")], "{difference:#?}");
}
