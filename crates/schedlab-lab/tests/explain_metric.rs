//! The decision that slow samples depend on, in scenarios whose cause is certain by construction.

use std::sync::atomic::AtomicBool;

use schedlab_lab::explain::{explain_metric, MetricDifference, Question, Rule};
use schedlab_scenario::Scenario;

/// Two CPUs and no random noise.
const HEAD: &str = "machine = { base = \"laptop-8\", topology = { cores-per-llc = 2 } }\nduration = \"600ms\"\n\
                    warmup = \"100ms\"\nnoise = false\n";
const PROBE_AND_HOG: &str = "workload = [{ use = \"hog\", cpus = \"0\" }, \
                             { use = \"cyclictest\", name = \"probe\", cpus = \"0\", interval = \"5ms\" }]\n";

fn difference(body: &str, metric: &str, a: &str, b: &str) -> MetricDifference {
    let text = format!("{HEAD}{body}variant = [{{ name = \"a\", {a} }}, {{ name = \"b\", {b} }}]\n");
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap();
    let spec = |variant: &str| scenario.run_spec(variant, 1).unwrap();
    explain_metric([&spec("a"), &spec("b")], metric, &AtomicBool::new(false)).unwrap().unwrap()
}

/// Action, function and feature.
fn words(rule: &Option<Rule>) -> Option<(&'static str, &'static str, &'static str)> {
    rule.as_ref().map(|rule| (rule.action.name(), rule.function, rule.feature.unwrap_or_default()))
}

fn check(found: &MetricDifference, slower: usize, question: Question) {
    let cause = &found.causes[0];
    assert_eq!((usize::from(found.second_slower), cause.question), (slower, question), "{found:#?}");
    let shown = found.shown.as_ref().unwrap();
    assert!(shown.at_ns[slower] >= 100_000_000, "samples of the warm-up do not count: {:?}", shown.at_ns);
    let [own, other] = [slower, 1 - slower].map(|side| shown.sides[side].decision.as_ref());
    assert_eq!(own.map(|view| view.time_ns), Some(shown.time_ns));
    assert_eq!(other.is_some(), cause.rules[1].is_some(), "{shown:#?}");
    assert!(shown.ns[slower] > shown.ns[1 - slower] && shown.wait_ns[slower] > shown.wait_ns[1 - slower]);
    assert!(shown.sides.iter().all(|side| side.queue.is_some() && side.event.is_some()), "{shown:#?}");
}

/// The lead of a sleeper is 3 ms.
const COARSE: &str = "kernel = \"6.1\", knobs = { wakeup_granularity = \"100ms\" }";
const FINE: &str = "kernel = \"6.1\", knobs = { wakeup_granularity = \"500us\" }";

/// The hog runs until the tick before the probe does.
#[test]
fn a_check_that_keeps_the_running_task_is_named() {
    for (a, b, slower) in [(COARSE, FINE, 0), (FINE, COARSE, 1)] {
        let found = difference(PROBE_AND_HOG, "probe.latency", a, b);
        check(&found, slower, Question::PreemptCheck);
        let rules = found.causes[0].rules.each_ref().map(words);
        let wanted = ["keep", "preempt"].map(|action| Some((action, "check_preempt_wakeup", "")));
        assert_eq!(rules, wanted, "{found:#?}");
        assert_eq!((found.causes[0].samples, found.same_begin), (found.slow, found.slow), "{found:#?}");
    }
}

/// A sample of wakeup latency is such a wait itself.
#[test]
fn wakeups_are_samples_too() {
    let found = difference(PROBE_AND_HOG, "sched.wakeup_latency", COARSE, FINE);
    check(&found, 0, Question::PreemptCheck);
}

/// The probe is in a group whose quota the hog uses up.
#[test]
fn a_quota_is_named() {
    let body = "cgroup = [{ name = \"web\" }]\nworkload = [{ use = \"hog\", cpus = \"0\", cgroup = \"web\" }, \
                { use = \"cyclictest\", name = \"probe\", cpus = \"0\", interval = \"2ms\", cgroup = \"web\" }]\n";
    for kernel in ["6.1", "6.12.107", "7.2"] {
        let free = format!("kernel = \"{kernel}\", hz = 1000");
        let limited = format!("{free}, cgroups.web = {{ quota = \"20ms\", period = \"100ms\" }}");
        let found = difference(body, "probe.latency", &free, &limited);
        check(&found, 1, Question::Runtime);
        assert_eq!(words(&found.causes[0].rules[0]), Some(("throttle", "throttle_cfs_rq", "")), "{kernel}: {found:#?}");
    }
}

/// The client waits on CPU 0 for a worker on CPU 1, which waits for the hog in one variant.
#[test]
fn the_wait_of_the_task_that_serves_a_request_is_followed() {
    let body = "workload = [{ name = \"web\", task = [\n\
        { name = \"client\", cpus = \"0\", program = [{ loop = \"forever\", do = [\
          { timer = \"next\", period = \"5ms\" }, { begin = \"latency\" }, { post = \"request\" }, { wait = \"answer\" }, \
          { end = \"latency\" }] }] },\n\
        { name = \"worker\", cpus = \"1\", program = [{ loop = \"forever\", do = [{ wait = \"request\" }, \
          { run = \"100us\" }, { post = \"answer\" }] }] }] }, { use = \"hog\", cpus = \"1\" }]\n";
    let found = difference(body, "web.latency", COARSE, FINE);
    check(&found, 0, Question::PreemptCheck);
    let shown = found.shown.as_ref().unwrap();
    assert!(shown.tasks[&shown.sample_pid].ends_with("client"), "{shown:#?}");
    assert!(shown.tasks[&shown.waiter].ends_with("worker") && shown.pid == shown.waiter, "{shown:#?}");
    assert!(2 * shown.wait_ns[0] > shown.ns[0], "{shown:#?}");
}

#[test]
fn runs_without_the_metric_have_no_answer() {
    let text = format!("{HEAD}{PROBE_AND_HOG}variant = [{{ name = \"a\", kernel = \"6.6\" }}]\n");
    let spec = Scenario::parse(&text, "test.toml", None).unwrap().run_spec("a", 1).unwrap();
    for metric in ["probe.nothing", "hog.work", "sched.switches", ""] {
        assert_eq!(explain_metric([&spec, &spec], metric, &AtomicBool::new(false)).unwrap(), None, "{metric}");
    }
    let same = explain_metric([&spec, &spec], "probe.latency", &AtomicBool::new(false)).unwrap().unwrap();
    assert!(same.causes.is_empty() && same.shown.is_none(), "{same:#?}");
}
