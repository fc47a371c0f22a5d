//! Every result has the bandwidth statistics of its control groups, with the names and meaning of `cpu.stat`.

use std::sync::atomic::AtomicBool;

use schedlab_lab::{run, Run};
use schedlab_scenario::Scenario;

const HEAD: &str =
    "machine = { base = \"laptop-8\", topology = { cores-per-llc = 1 } }\nduration = \"1s\"\nnoise = false\n";

fn run_of(body: &str, variant: &str) -> Run {
    let scenario = Scenario::parse(&format!("{HEAD}{body}"), "test.toml", None).unwrap();
    run(&scenario.run_spec(variant, 1).unwrap(), None, &AtomicBool::new(false)).unwrap()
}

fn stats(run: &Run, path: &str) -> [f64; 5] {
    ["nr_periods", "nr_throttled", "throttled_usec", "nr_bursts", "burst_usec"]
        .map(|name| run.report.metric(&format!("{path}.{name}")).unwrap())
}

#[test]
fn a_hog_is_throttled_beyond_its_quota() {
    for kernel in ["5.2", "6.1", "6.6", "6.12.107", "6.18.2", "7.2"] {
        let body = format!(
            "cgroup = [{{ name = \"top\", quota = \"20ms\", period = \"100ms\" }}, {{ name = \"free\" }}]\n\
             workload = [{{ use = \"hog\", cgroup = \"top\" }}, {{ use = \"hog\", name = \"other\", cgroup = \"free\" }}]\n\
             variant = [{{ name = \"a\", kernel = \"{kernel}\" }}]\n"
        );
        let run = run_of(&body, "a");
        let found = stats(&run, "/top");
        let [periods, throttled, usec, bursts, burst] = found;
        let share = run.report.metric("/top.throttled_periods").unwrap();
        assert_eq!(share, 100.0 * throttled / periods, "{kernel}");
        // The period timer at 1 s coincides with the end of the run; two hogs share the first 20 ms.
        assert!((9.0..=10.0).contains(&periods) && (8.0..=10.0).contains(&throttled), "{kernel}: {found:?}");
        assert!((60_000.0 * throttled - 10_000.0..=82_000.0 * throttled).contains(&usec), "{kernel}: {found:?}");
        assert_eq!((bursts, burst), (0.0, 0.0), "{kernel}");
        // The scheduler's own statistics agree.
        let (path, own) = &run.outcome.bandwidth[0];
        let own = [own.nr_periods as f64, own.nr_throttled as f64, own.throttled_time as f64 / 1e3];
        assert_eq!((path.as_str(), own), ("/top", [periods, throttled, usec]), "{kernel}");
        assert_eq!(run.report.metric("/free.nr_periods"), None, "no variant limits it");
        assert_eq!(run.report.metric("/free.throttled_periods"), None, "no variant limits it");
    }
}

#[test]
fn unused_runtime_is_counted_as_a_burst() {
    let body = "cgroup = [{ name = \"g\", quota = \"20ms\", period = \"100ms\", burst = \"20ms\" }]\n\
        [[workload]]\nname = \"w\"\n[[workload.task]]\nname = \"t\"\ncgroup = \"g\"\n\
        program = [{ loop = \"forever\", do = [{ sleep = \"195ms\" }, { run = \"35ms\" }] }]\n\
        [[variant]]\nname = \"six\"\nkernel = \"6.1\"\n[[variant]]\nname = \"off\"\nkernel = \"6.1\"\n\
        cgroups.g = { quota = \"20ms\", burst = \"0ms\" }\n";
    let [periods, _, _, bursts, burst] = stats(&run_of(body, "six"), "/g");
    assert!(periods > 2.0 && bursts >= 2.0, "{periods} {bursts}");
    assert!((10_000.0 * bursts..=20_000.0 * bursts).contains(&burst), "{burst} in {bursts}");
    assert_eq!(stats(&run_of(body, "off"), "/g")[3..], [0.0, 0.0]);
}

#[test]
fn all_variants_report_a_group_that_one_limits_and_the_warm_up_does_not_count() {
    let body = "warmup = \"500ms\"\ncgroup = [{ name = \"g\" }]\nworkload = [{ use = \"hog\", cgroup = \"g\" }]\n\
        variant = [{ name = \"free\", kernel = \"6.12\" }, \
        { name = \"held\", kernel = \"6.12\", cgroups.g = { quota = \"10ms\", period = \"50ms\" } }]\n\
        metric = [{ of = \"/g.nr_throttled\" }]\n";
    let scenario = Scenario::parse(&format!("{HEAD}{body}"), "test.toml", None).unwrap();
    let names: Vec<&str> = scenario.metrics().iter().map(|metric| metric.name.as_str()).collect();
    assert!(names.starts_with(&["/g.nr_throttled"]) && names.contains(&"/g.throttled_usec"), "{names:?}");
    assert_eq!(stats(&run_of(body, "free"), "/g"), [0.0; 5]);
    let held = run_of(body, "held");
    let [periods, throttled, usec, ..] = stats(&held, "/g");
    assert_eq!(
        (periods, throttled),
        (10.0, 10.0),
        "half of the twenty periods, including the one at the end of the warm-up"
    );
    assert!((390_000.0..=400_100.0).contains(&usec), "{usec}");
    assert!(held.outcome.bandwidth[0].1.nr_periods >= 19);
    let wrong = body.replace("/g.nr_throttled", "/g.nr_throttles");
    let error = Scenario::parse(&format!("{HEAD}{wrong}"), "test.toml", None).unwrap_err();
    assert!(error.to_string().contains("nr_throttle"), "{error}");
}

/// The arithmetic of docs/guides/containers.md: 8 threads use 200 ms up in 25 ms, so each CPU is throttled for 75 ms of
/// each period; two threads cannot use up what two CPUs get, and `max` limits nothing.
#[test]
fn what_a_limit_throttles_follows_from_the_number_of_threads() {
    let text = "machine = \"laptop-8\"\nduration = \"2s\"\nnoise = false\n\
        cgroup = [{ name = \"web\", quota = \"200ms\" }]\n\
        workload = [{ use = \"hog\", cgroup = \"web\", threads = 8 }]\n\
        variant = [{ name = \"eight\", kernel = \"6.12\" }, \
        { name = \"two\", kernel = \"6.12\", workloads.hog.threads = 2 }, \
        { name = \"max\", kernel = \"6.12\", cgroups.web.quota = \"max\" }]\n";
    let scenario = Scenario::parse(text, "test.toml", None).unwrap();
    let metric = |variant: &str, name: &str| {
        let run = run(&scenario.run_spec(variant, 1).unwrap(), None, &AtomicBool::new(false)).unwrap();
        run.report.metric(&format!("/web.{name}"))
    };
    let [periods, usec] = ["nr_periods", "throttled_usec"].map(|name| metric("eight", name).unwrap());
    assert!((19.0..=20.0).contains(&periods) && metric("eight", "throttled_periods") >= Some(90.0), "{periods}");
    // A CPU takes its runtime in slices of 5 ms, and throttling that has not ended does not count.
    let each = usec / periods;
    assert!((0.93 * 600_000.0..=1.02 * 600_000.0).contains(&each), "{each}");
    assert_eq!(metric("two", "nr_throttled"), Some(0.0));
    assert_eq!(metric("two", "throttled_periods"), Some(0.0));
    assert_eq!((metric("max", "nr_periods"), metric("max", "throttled_periods")), (Some(0.0), Some(0.0)));
}
