//! `--set KEY=VALUE`: what each key overrides, the exact error of each that is refused, and the scenario that results.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use proptest::prelude::*;
use schedlab_scenario::{Scenario, Set};
use serde_json::{json, Value as Json};

const FILE: &str = r#"
machine = "laptop-8"
duration = "2s"
warmup = "1s"

[[workload]]
use = "hackbench"
groups = 2

[[workload]]
name = "web"
cgroup = "front/end"
task = [
    { name = "server", program = [{ loop = "forever", do = [{ wait = "q" }, { run = "1ms" }] }] },
    { name = "client", count = 2, program = [{ loop = "forever", do = [{ sleep = "3ms" }, { post = "q" }] }] },
]

[[cgroup]]
name = "front/end"
weight = 200

[[variant]]
name = "cfs"
kernel = "6.1"

[[variant]]
name = "eevdf"
kernel = "6.12.107"
knobs = { base_slice = "3ms" }

[[metric]]
of = "hackbench.time"
"#;

fn with(sets: &[&str]) -> schedlab_scenario::Result<Scenario> {
    Scenario::parse(FILE, "s.toml", Some(&json!({ "set": sets }).to_string()))
}

/// A part of the description: members by name, elements of arrays by number.
fn part(shown: &Json, path: &str) -> Json {
    shown.pointer(path).cloned().unwrap_or(Json::Null)
}

#[test]
fn each_key_overrides_what_it_names() {
    let cases = [
        ("duration=1500ms", "/duration_ns", json!(1_500_000_000)),
        ("warmup=0s", "/warmup_ns", json!(0)),
        ("variant.cfs.kernel=6.6", "/variants/0/kernel", json!("6.6")),
        ("noise=false", "/noise", json!(false)),
        ("seeds=[4, 2]", "/seeds", json!([4, 2])),
        ("name=a b", "/name", json!("a b")),
        ("name=2026-11-23", "/name", json!("2026-11-23")),
        ("name=\"1\"", "/name", json!("1")),
        ("machine=rpi4", "/machine/cpus", json!(4)),
        ("machine.topology={ nodes = 1, cores-per-llc = 3 }", "/machine/cpus", json!(3)),
        ("machine.topology.cores-per-llc=1", "/machine/cpus", json!(1)),
        ("machine.costs.tick.constant=7us", "/machine/costs/tick", json!(7000)),
        ("workload.hackbench.groups=5", "/workloads/0/options/groups", json!(5)),
        ("workload.web.nice=3", "/workloads/1/attributes/nice", json!(3)),
        ("workload.web.task.client.count=7", "/workloads/1/tasks", json!(8)),
        ("variant.eevdf.knobs.base_slice=0.5ms", "/variants/1/changes/knobs", json!({"base_slice_ns": "500us"})),
        ("variant.eevdf.knobs.migration_cost=1ms", "/variants/1/changes/knobs/base_slice_ns", json!("3ms")),
        ("variant.cfs.kernel=6.12.0", "/variants/0/kernel", json!("6.12.0")),
        ("knobs.migration_cost=1ms", "/variants/0/changes/knobs", json!({"migration_cost_ns": "1ms"})),
        ("variant.features.NEXT_BUDDY=true", "/variants/0/changes/features", json!({"NEXT_BUDDY": true})),
        ("tasks.hackbench.nice=5", "/variants/1/changes/tasks", json!({"hackbench": {"nice": 5}})),
        ("hz=1000", "/variants/1/changes/hz", json!(1000)),
        ("cgroup.\"front/end\".weight=300", "/cgroups/~1front~1end/weight", json!(300)),
        ("cgroup.weight=300", "/cgroups/~1front~1end/weight", json!(300)),
        ("metric.margin=5%", "/metrics/0/margin_pct", json!(5.0)),
        ("metric.\"hackbench.time\".margin=5%", "/metrics/0/margin_pct", json!(5.0)),
        ("metric.hackbench.time.margin=5%", "/metrics/0/margin_pct", json!(5.0)),
        ("arm.host.order=blocks", "/arms/host/order", json!("blocks")),
    ];
    let mut wrong = Vec::new();
    for (set, path, want) in cases {
        let scenario = with(&[set]).unwrap_or_else(|error| panic!("{set}: {error}; {:?}", error.hint));
        let shown = scenario.describe();
        let found = part(&shown, path);
        if found != want || shown["overrides"] != json!([set]) {
            wrong.push(format!("{set}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A benchmark with a dot in its name, and a workload whose name begins like it.
#[test]
fn names_with_dots_need_no_quotes() {
    let file = FILE
        .replace(
            "use = \"hackbench\"\ngroups = 2",
            "use = \"schbench-1.0\"\nthreads = 2\n\n[[workload]]\nname = \"schbench-1\"\nuse = \"hog\"",
        )
        .replace("of = \"hackbench.time\"", "of = \"schbench-1.0.wakeup_latency\"\nstat = \"p99\"");
    let cases = [
        ("workload.schbench-1.0.threads=5", "/workloads/0/options/threads", json!(5)),
        ("workload.\"schbench-1.0\".threads=5", "/workloads/0/options/threads", json!(5)),
        ("workload.schbench-1.nice=5", "/workloads/1/attributes/nice", json!(5)),
        ("tasks.schbench-1.0.nice=5", "/variants/1/changes/tasks", json!({"schbench-1.0": {"nice": 5}})),
        ("variant.cfs.tasks.schbench-1.nice=5", "/variants/0/changes/tasks", json!({"schbench-1": {"nice": 5}})),
        ("metric.schbench-1.0.wakeup_latency.margin=5%", "/metrics/0/margin_pct", json!(5.0)),
        ("metric.\"schbench-1.0.wakeup_latency\".margin=5%", "/metrics/0/margin_pct", json!(5.0)),
    ];
    for (set, path, want) in cases {
        let scenario = Scenario::parse(&file, "s.toml", Some(&json!({ "set": [set] }).to_string()));
        let shown = scenario.unwrap_or_else(|error| panic!("{set}: {error}; {:?}", error.hint)).describe();
        assert_eq!(part(&shown, path), want, "{set}");
        assert_eq!(shown["metrics"][0]["name"], "schbench-1.0.wakeup_latency.p99");
    }
}

#[test]
fn without_overrides_the_description_is_that_of_the_file() {
    let shown = Scenario::parse(FILE, "s.toml", None).unwrap().describe();
    assert_eq!((&shown["text"], shown.get("overrides")), (&json!(FILE), None));
}

#[test]
fn later_overrides_and_flags_have_precedence() {
    let overrides =
        r#"{"set": ["duration=3s", "seeds=2", "duration=4s", "machine.hz=100"], "seeds": 3, "noise": false}"#;
    let scenario = Scenario::parse(FILE, "s.toml", Some(overrides)).unwrap();
    assert_eq!((scenario.duration, scenario.seeds.len(), scenario.machine.hz), (4_000_000_000, 3, 100));
    assert_eq!(
        scenario.describe()["overrides"],
        json!(["duration=3s", "seeds=2", "duration=4s", "machine.hz=100", "noise=false"])
    );
}

#[test]
fn an_invalid_override_is_named_with_the_nearest_name() {
    let cases = [
        ("", "--set : there is no key; expected KEY=VALUE", ""),
        ("duration", "--set duration: there is no key; expected KEY=VALUE", ""),
        (
            "duraton=1s",
            "--set duraton=1s: duraton: unknown key \"duraton\"; expected a key of the scenario, or of every variant",
            "did you mean \"duration\"?",
        ),
        (
            "hackbench.groups=3",
            "--set hackbench.groups=3: hackbench.groups: unknown key \"hackbench\"; expected a key of the scenario, or of every variant",
            "did you mean \"workload.hackbench.groups\"?",
        ),
        (
            "duration=1",
            "--set duration=1: duration: 1: the unit is missing; expected a duration such as \"10ms\" (a number and one of ns us ms s min h)",
            "write the number and its unit in one string",
        ),
        (
            "workload.hackbench.group=3",
            "--set workload.hackbench.group=3: workload.group: unknown key \"group\"; expected an option of hackbench or a key of [[workload]]",
            "did you mean \"groups\"?",
        ),
        (
            "workload.hackbenhc.groups=3",
            "--set workload.hackbenhc.groups=3: workload.hackbenhc.groups: unknown workload \"hackbenhc\"; expected one of hackbench, web",
            "did you mean \"hackbench\"?",
        ),
        (
            "workload.web.task.clent.count=3",
            "--set workload.web.task.clent.count=3: workload.web.task.clent.count: unknown element \"clent\"",
            "did you mean \"client\"?",
        ),
        (
            "variant.eevdv.hz=100",
            "--set variant.eevdv.hz=100: variant.eevdv.hz: unknown variant \"eevdv\"; expected one of cfs, eevdf",
            "did you mean \"eevdf\"?",
        ),
        (
            "variant.eevdf.knobs.base_slise=3ms",
            "--set variant.eevdf.knobs.base_slise=3ms: variant.knobs.base_slise: kernel 6.12.107 has no knob base_slise",
            "did you mean base_slice_ns?",
        ),
        (
            "knobs.base_slise=3ms",
            "--set knobs.base_slise=3ms: variant.knobs.base_slise: kernel 6.1 has no knob base_slise",
            "did you mean base_slice_ns, which this kernel does not have?",
        ),
        (
            "machine=rpi5",
            "--set machine=rpi5: machine: unknown machine \"rpi5\"; expected a preset, \"host\" or a path that ends in .toml",
            "did you mean \"rpi4\"?",
        ),
        ("guest.vm.vcpus=2", "--set guest.vm.vcpus=2: guest.vm.vcpus: the scenario has no guest; expected a [[guest]] table", ""),
        ("workload.hackbench=3", "--set workload.hackbench=3: workload.hackbench: this is a whole table; expected workload.NAME.KEY", ""),
        ("seeds=[1,", "--set seeds=[1,: seeds: not valid TOML: unclosed array, expected `]`", ""),
        ("duration.x=3", "--set duration.x=3: duration.x: what contains \"x\" is not a table", ""),
        ("a..b=3", "--set a..b=3: a..b: not a key; expected words separated by dots, such as knobs.base_slice", ""),
        (
            "duration=1s",
            "--set duration=1s: duration: the warm-up of 1s is not shorter than the run of 1s; expected a warmup shorter than duration",
            "",
        ),
    ];
    let mut wrong = Vec::new();
    for (set, want, hint) in cases {
        let error = match with(&[set]) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => format!("{error} | {}", error.hint.clone().unwrap_or_default()),
        };
        if error != format!("{want} | {hint}") {
            wrong.push(error);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The text of a result is a scenario of its own: it loads without the overrides, and everything in it is the same.
fn check_text(sets: &[&str]) {
    let mut shown = with(sets).unwrap().describe();
    let text = shown["text"].as_str().unwrap().to_owned();
    let again = Scenario::parse(&text, "s.toml", None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut again = again.describe();
    for shown in [&mut shown, &mut again] {
        let shown = shown.as_object_mut().unwrap();
        shown.remove("overrides");
        shown.remove("text");
    }
    assert_eq!(shown, again, "{text}");
}

#[test]
fn the_text_of_a_result_contains_the_overrides() {
    check_text(&["workload.web.task.client.count=7", "machine.topology.cores-per-llc=1", "hz=1000"]);
    check_text(&["name=\"a \\\"b\\\" \\\\ c\"", "metric.margin=5%", "seeds=[1, 2]", "noise=false"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_override_is_accepted_or_refused_by_name(
        key in prop::sample::select(vec!["duration", "machine.topology.nodes", "workload.web.task.server.nice", "knobs.base_slice",
            "workload.hackbench", "variant.x", "cgroup.weight", "metric.margin", "machine", "seeds", "workload.web.task"]),
        value in "[ -~\n]{0,12}",
        tail in "[.a-z\"=]{0,4}",
    ) {
        let set = format!("{key}{tail}={value}");
        match with(&[&set]) {
            Ok(scenario) => prop_assert_eq!(scenario.describe()["overrides"].as_array().map(Vec::len), Some(1)),
            Err(error) => prop_assert!(error.to_string().starts_with("--set ") || error.file.as_deref() == Some("s.toml"), "{}", error),
        }
    }

    #[test]
    fn what_is_shown_is_what_was_read(key in "[a-z]{1,9}(\\.[a-z]{1,9}){0,2}", value in "[!-~]{0,9}") {
        let set = Set::parse(&format!("{key}={value}")).unwrap();
        prop_assert_eq!(set.show(), format!("{key}={value}"));
    }
}
