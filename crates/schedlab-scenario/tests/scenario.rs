//! Valid scenarios: variants, metrics, runs, description, and the lists.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use schedlab_policy::Version;
use schedlab_scenario::{listing, Scenario, DEFAULT_MARGIN_PCT};
use serde_json::{json, Value};

const SCENARIO: &str = r#"
machine = { base = "laptop-8", topology = { cores-per-llc = 2 } }
duration = "1.5s"
warmup = "0.5s"
seeds = [4, 2]

[[workload]]
use = "hackbench"
groups = 1
repeat = true
nice = 5
delay = "10ms"

[[workload]]
use = "cyclictest"
name = "probe"
threads = 2
interval = "1ms"
cpus = "1"

[[variant]]
name = "plain"
kernel = "6.1.192"

[[variant]]
name = "tuned"
kernel = "6.12.0"
hz = 1000
preempt = "full"
features = { RUN_TO_PARITY = false, PLACE_LAG = true }
knobs = { base_slice = "3ms", nr_migrate = 8 }
tasks.probe = { slice = "0.1ms", nice = -5 }

[[metric]]
of = "sched.run_delay"
stat = "max"

[[metric]]
of = "probe.latency"
stat = "p99"
margin = "7.5%"
unit = "ms"
better = "neither"
"#;

fn scenario() -> Scenario {
    Scenario::parse(SCENARIO, "dir/mine.toml", None).unwrap()
}

#[test]
fn missing_keys_have_defaults() {
    let text = "machine = \"rpi4\"\nworkload = [{ use = \"hog\" }]\nvariant = [{ name = \"a\", kernel = \"6.1\" }]\n";
    let scenario = Scenario::parse(text, "dir/hogs.toml", None).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.file.as_str()), ("hogs", "dir/hogs.toml"));
    assert_eq!((scenario.duration, scenario.warmup, scenario.noise), (10_000_000_000, 0, true));
    assert_eq!(scenario.seeds, (1..=10).collect::<Vec<u64>>());
    assert!(scenario.metrics().iter().all(|metric| metric.margin_pct == DEFAULT_MARGIN_PCT && !metric.declared));
}

#[test]
fn run_specs_contain_the_whole_scenario() {
    let scenario = scenario();
    let plain = scenario.run_spec("plain", 4).unwrap();
    assert_eq!((plain.machine.topology.nr_cpus(), plain.machine.hz, plain.seed), (2, 250, 4));
    assert_eq!((plain.duration, plain.warmup, plain.noise), (1_500_000_000, 500_000_000, true));
    assert_eq!((plain.kernel.hz(), plain.kernel.nr_cpus), (250, 2));
    let tuned = scenario.run_spec("tuned", 4).unwrap();
    assert_eq!((tuned.kernel.hz(), tuned.kernel.preempt.name()), (1000, "full"));
    assert_eq!(tuned.kernel.knobs.base_slice, 3_000_000);
}

#[test]
fn runtime_and_period_of_real_time_tasks_are_set_in_the_order_that_the_kernel_accepts() {
    let with = |knobs: &str| {
        let text =
            SCENARIO.replace("knobs = { base_slice = \"3ms\", nr_migrate = 8 }", &format!("knobs = {{ {knobs} }}"));
        Scenario::parse(&text, "dir/mine.toml", None)
    };
    for (period, runtime) in [(100_000, 50_000), (5_000_000, 4_000_000), (1_000_000, 1_000_000)] {
        let scenario = with(&format!("rt_period_us = {period}, rt_runtime_us = {runtime}")).unwrap();
        let tuned = scenario.variants().iter().find(|variant| variant.name == "tuned").unwrap();
        assert_eq!((tuned.kernel.knobs.rt_period_us, tuned.kernel.knobs.rt_runtime_us), (period, runtime));
        // Since 6.12 only real kernels support them.
        let refused = scenario.run_spec("tuned", 1).err();
        assert_eq!(refused.is_some(), (period, runtime) != (1_000_000, 950_000), "{refused:?}");
        assert_eq!(scenario.real_spec("tuned", 1).unwrap().kernel.knobs, tuned.kernel.knobs);
    }
    let refused = with("rt_runtime_us = 1000001").unwrap_err();
    assert!(refused.to_string().contains("rt_runtime_us"), "{refused}");
}

#[test]
fn every_kernel_is_simulated_with_control_groups() {
    for version in Version::all() {
        let text = format!(
            "machine = \"laptop-8\"\n[[cgroup]]\nname = \"web\"\n[[variant]]\nname = \"a\"\nkernel = \"{}\"\n[[workload]]\nuse = \"hog\"\n",
            version.name
        );
        let scenario = Scenario::parse(&text, "a.toml", None).unwrap();
        scenario.run_spec("a", 1).unwrap();
        scenario.real_spec("a", 1).unwrap();
    }
}

#[test]
fn variants_differ_only_in_task_attributes() {
    let scenario = scenario();
    let (plain, tuned) = (&scenario.variants()[0].workloads, &scenario.variants()[1].workloads);
    let asks = |workloads: &[schedlab_workload::Workload]| {
        let task = &workloads[1].tasks[0];
        (task.nice, task.slice, task.affinity.map(|mask| mask.to_list()))
    };
    assert_eq!(asks(plain), (0, None, Some("1".into())));
    assert_eq!(asks(tuned), (-5, Some(100_000), Some("1".into())));
    assert!(plain[0].tasks.iter().all(|task| task.nice == 5 && task.delay >= 10_000_000));
    assert_eq!(plain[0], tuned[0]);
    assert_eq!(plain[1].programs, tuned[1].programs);
}

/// As in the kernel, `cpu.max` keeps the period if only the quota is written.
#[test]
fn values_that_a_variant_does_not_set_are_kept() {
    let max = |files: &str| {
        let text = format!(
            "machine = \"laptop-8\"\n[[cgroup]]\nname = \"g\"\nquota = \"10ms\"\nperiod = \"20ms\"\nburst = \"5ms\"\n\
             [[workload]]\nuse = \"hog\"\ncgroup = \"g\"\n[[variant]]\nname = \"a\"\nkernel = \"6.12.0\"\ncgroups.g = {{ {files} }}\n"
        );
        let scenario = Scenario::parse(&text, "s.toml", None).unwrap();
        let max = scenario.variants()[0].cgroups[0].bandwidth.unwrap();
        let changes = &scenario.describe()["variants"][0]["changes"]["cgroups"]["/g"];
        (max.quota / 1_000_000, max.period / 1_000_000, max.burst / 1_000_000, changes.to_string())
    };
    assert_eq!(max("quota = \"6ms\""), (6, 20, 5, r#"{"quota":"6ms"}"#.into()));
    assert_eq!(max("period = \"50ms\""), (10, 50, 5, r#"{"period":"50ms"}"#.into()));
    assert_eq!(max("burst = \"0s\""), (10, 20, 0, r#"{"burst":"0s"}"#.into()));
    assert_eq!(max("weight = 300"), (10, 20, 5, r#"{"weight":300}"#.into()));
}

#[test]
fn listed_metrics_come_first_and_replace_their_defaults() {
    let scenario = scenario();
    let names: Vec<&str> = scenario.metrics().iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(names[..3], ["sched.run_delay.max", "probe.latency.p99", "hackbench.time"]);
    assert_eq!(names.iter().filter(|name| **name == "probe.latency.p99").count(), 1);
    for always in ["sched.switches", "sched.migrations", "sched.wakeup_latency.p99"] {
        assert!(names.contains(&always), "{always}");
    }
    let declared = scenario.metrics().iter().filter(|metric| metric.declared).count();
    assert_eq!(declared, 2);
}

#[test]
fn the_description_has_all_keys() {
    let described = scenario().describe();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let top = [
        "arm",
        "arms",
        "cgroups",
        "check_groups",
        "duration_ns",
        "file",
        "guests",
        "machine",
        "metrics",
        "name",
        "noise",
        "other_grouping",
        "seeds",
        "summary",
        "text",
        "variants",
        "warmup_ns",
        "workloads",
    ];
    assert_eq!(keys(&described), top);
    assert_eq!(
        keys(&described["machine"]),
        ["calibrated", "costs", "cpus", "hz", "name", "ranges", "sources", "summary", "topology"]
    );
    assert_eq!(described["machine"]["summary"], "like laptop-8 with 2 instead of 8 CPUs");
    assert_eq!(described["seeds"], json!([4, 2]));
    assert_eq!((&described["arm"], &described["name"]), (&json!("sim"), &json!("mine")));
    let want = json!({
        "name": "tuned",
        "kernel": "6.12.0",
        "summary": described["variants"][1]["summary"],
        "release": "6.12",
        "in_debian": false,
        "changes": {
            "features": { "PLACE_LAG": true, "RUN_TO_PARITY": false },
            "knobs": { "base_slice_ns": "3ms", "nr_migrate": 8 },
            "hz": 1000,
            "preempt": "full",
            "tasks": { "probe": { "nice": -5, "slice": "100us" } },
        },
        "boot": {
            "kernel": "6.12.0", "config": null, "config_source": null, "hz": 1000, "preempt": "full",
            "preempt_default": "none", "autogroup": false, "groups": [], "ungrouped": true,
            "features": { "RUN_TO_PARITY": false },
        },
        "settings": described["variants"][1]["settings"],
        "not_simulated": null,
    });
    assert_eq!(described["variants"][1], want);
    assert_eq!(described["variants"][0]["kernel"], "6.1");
    assert_eq!(described["variants"][0]["changes"]["hz"], Value::Null);
    let metric = &described["metrics"][1];
    let want = json!({
        "name": "probe.latency.p99",
        "of": "probe.latency",
        "stat": "p99",
        "unit": "ms",
        "better": "neither",
        "margin_pct": 7.5,
        "help": metric["help"],
        "declared": true,
    });
    assert_eq!(*metric, want);
    let probe = &described["workloads"][1];
    assert_eq!((&probe["name"], &probe["use"], &probe["tasks"]), (&json!("probe"), &json!("cyclictest"), &json!(3)));
    assert_eq!(probe["given"], json!(["threads", "interval"]));
    assert_eq!((&probe["options"]["threads"], &probe["options"]["interval"]), (&json!(2), &json!("1ms")));
    assert_eq!(probe["attributes"], json!({ "cpus": "1" }));
    let load = &described["workloads"][0];
    assert_eq!(load["attributes"], json!({ "repeat": true, "nice": 5, "delay": "10ms" }));
    assert_eq!((&load["options"]["groups"], &load["options"]["loops"]), (&json!(1), &json!(100)));
    assert_eq!(described["text"], SCENARIO);
    assert_eq!(described["machine"]["costs"]["tick"], 1500);
    assert_eq!(described["machine"]["costs"]["ipi"], json!([0, 700, 700, 900, 1200]));
}

#[test]
fn a_factor_multiplies_a_cost() {
    let costs =
        |overrides| Scenario::parse(SCENARIO, "x", Some(overrides)).map(|s| s.describe()["machine"]["costs"].clone());
    let plain = costs("{}").unwrap();
    let changed = costs(r#"{"costs": {"tick": 2, "ipi": 0.5, "idle.C1": 3}}"#).unwrap();
    assert_eq!(changed["tick"], 3000);
    assert_eq!(changed["ipi"], json!([0, 350, 350, 450, 600]));
    assert_eq!(changed["idle.C1"].as_u64().unwrap(), 3 * plain["idle.C1"].as_u64().unwrap());
    assert_eq!(changed["wakeup"], plain["wakeup"]);
    let error = costs(r#"{"costs": {"tik": 2}}"#).unwrap_err();
    assert_eq!(error.to_string(), "command line: costs: there is no cost \"tik\"");
    assert_eq!(error.hint.unwrap(), "did you mean \"tick\"?");
}

#[test]
fn lists_have_ids_and_summaries() {
    for (kind, id) in [
        ("machines", "power10-480"),
        ("machines", "host"),
        ("kernels", "6.12.0"),
        ("features", "RUN_TO_PARITY"),
        ("knobs", "base_slice_ns"),
        ("workloads", "schbench-1.0"),
        ("metrics", "sched.wakeup_latency"),
    ] {
        let list = listing(kind, None).unwrap();
        let rows = list.as_array().unwrap();
        assert!(rows.iter().all(|row| row["id"].is_string() && !row["summary"].as_str().unwrap().is_empty()), "{kind}");
        assert!(rows.iter().any(|row| row["id"] == id), "{kind} {id}");
    }
    let of_61 = listing("features", Some("6.1")).unwrap();
    assert!(of_61.as_array().unwrap().iter().all(|row| row["id"] != "RUN_TO_PARITY"));
    assert_eq!(listing("kernel", None).unwrap_err().hint.unwrap(), "did you mean \"kernels\"?");
    assert!(listing("knobs", Some("6.2")).unwrap_err().hint.unwrap().contains("6.1"));
}

#[test]
fn settings_of_a_real_kernel_are_files_and_values() {
    let scenario = scenario();
    let settings = scenario.variants()[1].settings.iter();
    let mut written: Vec<(&str, &str)> = settings.map(|(file, value)| (file.as_str(), value.as_str())).collect();
    written.sort_unstable();
    let want = [
        ("/sys/kernel/debug/sched/base_slice_ns", "3000000"),
        ("/sys/kernel/debug/sched/features", "NO_RUN_TO_PARITY"),
        ("/sys/kernel/debug/sched/features", "PLACE_LAG"),
        ("/sys/kernel/debug/sched/nr_migrate", "8"),
        ("/sys/kernel/debug/sched/preempt", "full"),
    ];
    assert_eq!(written, want);
}

#[test]
fn arm_defaults_are_filled_in() {
    let text = "machine = \"rpi4\"\nduration = \"2s\"\nworkload = [{ use = \"hog\" }]\n\
                variant = [{ name = \"a\", kernel = \"6.1\", sysctl = { \"kernel.sched_autogroup_enabled\" = 0 } }]\n";
    let arms = |more: &str| {
        let scenario = Scenario::parse(&format!("{text}{more}"), "mine.toml", None).unwrap();
        scenario.describe()["arms"].clone()
    };
    let usual = json!({
        "driver": null,
        "host": { "order": "abba", "noise_limit_pct": 5.0, "time_limit_s": 80.0 },
        "vm": {
            "images": {}, "repeatable": false, "memory_mb": 1024, "cgroup": "v2", "append": "", "time_limit_s": 360.0,
        },
    });
    assert_eq!(arms(""), usual);
    let own = arms("arm.driver = \"agent\"\narm.vm.image = \"bzImage\"\narm.host.noise-limit = \"1%\"\n");
    assert_eq!((&own["driver"], &own["vm"]["images"]), (&json!("agent"), &json!({ "a": "bzImage" })));
    assert_eq!(arms("arm.vm.image = { a = \"bzImage\" }\n")["vm"]["images"], json!({ "a": "bzImage" }));
    assert_eq!(own["host"]["noise_limit_pct"], 1.0);
    let scenario = Scenario::parse(text, "mine.toml", None).unwrap();
    let autogroup = ("/proc/sys/kernel/sched_autogroup_enabled".to_owned(), "0".to_owned());
    assert_eq!(scenario.variants()[0].settings, [autogroup]);
}

#[test]
fn a_quota_of_a_variant_keeps_the_period_of_the_group() {
    let text = r#"
machine = "rpi4"
[[cgroup]]
name = "g"
quota = "10ms"
period = "50ms"
[[workload]]
use = "hog"
cgroup = "g"
[[variant]]
name = "own"
kernel = "6.12"
[[variant]]
name = "more"
kernel = "6.12"
cgroups.g.quota = "20ms"
[[variant]]
name = "other"
kernel = "6.12"
cgroups.g = { quota = "20ms", period = "100ms" }
"#;
    let scenario = Scenario::parse(text, "a.toml", None).unwrap();
    for (variant, quota, period) in [("own", 10, 50), ("more", 20, 50), ("other", 20, 100)] {
        let spec = scenario.run_spec(variant, 1).unwrap();
        let limit = spec.cgroups.iter().find_map(|group| group.bandwidth).unwrap();
        assert_eq!((limit.quota, limit.period), (quota * 1_000_000, period * 1_000_000), "{variant}");
    }
}

/// Only a real kernel boosts the holder of a lock with priority inheritance; among fair tasks that changes nothing.
#[test]
fn locks_with_priority_inheritance_are_not_simulated_for_real_time_tasks() {
    let file = |policy: &str| {
        format!(
            r#"machine = "laptop-8"
duration = "10ms"
[[workload]]
name = "w"
object = [{{ name = "m", kind = "mutex", pi = true }}]
task = [{{ name = "t", policy = "{policy}", program = [{{ lock = "m" }}, {{ unlock = "m" }}] }}]
[[variant]]
name = "a"
kernel = "6.1"
"#
        )
    };
    let spec = |policy: &str| Scenario::parse(&file(policy), "s.toml", None).unwrap().run_spec("a", 1).map(|_| ());
    assert!(spec("normal").is_ok());
    for policy in ["fifo:10", "rr:10"] {
        let error = spec(policy).unwrap_err().to_string();
        assert!(error.contains("priority inheritance, which is not simulated"), "{error}");
    }
}

#[test]
fn settings_without_an_effect_on_the_machine_are_named() {
    let caches = "l2 = { size = \"1MiB\", read = \"20ns\" }, llc = { size = \"8MiB\", read = \"60ns\" }, \
                  memory = { read = \"150ns\" }, front-end = { size = \"128KiB\", warm = \"48ns\", cold = \"105ns\" }";
    let cold = format!("{{ base = \"laptop-8\", caches = {{ {caches} }} }}");
    let off = "{ base = \"laptop-8\", physics = { warmth = false } }";
    let no_front_end = "`code` of a, b has no effect: machine laptop-8 states no `front-end` in [caches]";
    let cases: [(&str, &str, &str, &[&str]); 6] = [
        ("\"laptop-8\"", "", "", &[]),
        ("\"laptop-8\"", "code = \"64KiB\"", "", &[no_front_end]),
        (&cold, "code = \"64KiB\"\nworking-set = \"64KiB\"", "", &[]),
        (
            off,
            "working-set = \"64KiB\"",
            "",
            &["`working-set` of a, b has no effect: `warmth` is off on machine inline"],
        ),
        (&cold, "code = \"64KiB\"", "physics = { warmth = false }", &["`code` of a, b has no effect: `warmth` is off"]),
        (
            off,
            "code = \"64KiB\"",
            "physics = { warmth = true }",
            &["`code` of a, b has no effect: machine inline states"],
        ),
    ];
    for (machine, own, variant, want) in cases {
        let workload = |name: &str| format!("[[workload]]\nname = \"{name}\"\nuse = \"schbench-1.0\"\n{own}\n");
        let text = format!(
            "machine = {machine}\n{}{}[[variant]]\nname = \"v\"\nkernel = \"6.12.0\"\n{variant}\n",
            workload("a"),
            workload("b"),
        );
        let described = Scenario::parse(&text, "s.toml", None).unwrap().describe();
        let lines: Vec<&str> =
            described["inactive"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert_eq!(lines.len(), want.len(), "{text}{lines:?}");
        lines.iter().zip(want).for_each(|(line, want)| assert!(line.starts_with(want), "{line}: {want}"));
    }
}

#[test]
fn objects_of_which_steps_use_one_side_are_named() {
    let cases: [(&str, &[&str]); 11] = [
        ("{ write = \"a\", bytes = 8 }, { read = \"a\", bytes = 8 }, { lock = \"l\" }, { unlock = \"l\" }", &[]),
        (
            "{ write = \"reqests\", bytes = 8 }, { read = \"requests\", bytes = 8 }",
            &[
                "no step of s reads from reqests, while others write to it",
                "no step of s writes to requests, while others read from it",
            ],
        ),
        ("{ lock = \"log\" }", &["no step of s unlocks log, while others lock it"]),
        ("{ wait = \"go\" }", &["no step of s posts go, while others wait for it"]),
        ("{ post = \"go\" }", &[]),
        ("{ sem-wait = \"closed\" }", &["no step of s posts closed, while others wait for it"]),
        ("{ sem-wait = \"open\" }", &[]),
        ("{ sem-wait = \"closed\" }, { sem-post = \"closed\" }", &[]),
        ("{ send = \"q\" }", &["no step of s receives from q, while others send to it"]),
        ("{ receive = \"q\" }", &["no step of s sends to q, while others receive from it"]),
        ("{ loop = 2, do = [{ send = \"q\" }] }, { receive = \"q\" }", &[]),
    ];
    for (steps, want) in cases {
        let open = "[[workload.object]]\nname = \"open\"\nkind = \"semaphore\"\ninitial = 1\n";
        let object = if steps.contains("open") { open } else { "" };
        let text = format!(
            "machine = \"laptop-8\"\nduration = \"10ms\"\n[[workload]]\nname = \"s\"\nprogram = [{steps}]\n{object}[[variant]]\nname = \"v\"\nkernel = \"6.12.0\"\n"
        );
        let described = Scenario::parse(&text, "s.toml", None).unwrap().describe();
        let lines: Vec<&str> =
            described["inactive"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert_eq!(lines, want, "{steps}");
    }
}

#[test]
fn clients_on_other_machines_become_remotes() {
    let text = |keys: &str| {
        format!(
            "machine = \"laptop-8\"\n[[workload]]\nname = \"w\"\nprogram = [{{ loop = \"forever\", do = \
             [{{ receive = \"q\", sample = \"s\" }}, {{ run = \"1ms\" }}, {{ end = \"s\" }}, {{ send = \"r\" }}] }}]\n\
             [[workload.remote]]\nsend = \"q\"\nsample = \"s\"\nsoftirq = \"2us\"\n{keys}\n\
             [[variant]]\nname = \"a\"\nkernel = \"6.12.0\"\n"
        )
    };
    let closed = "Closed { clients: 3, think: Drawn(0), network: Fixed(50000), replies: 1 }";
    for (keys, sends, irq_cpus) in [
        ("rate = 1000", "Every(Drawn(0))", None),
        ("every = \"1ms\"\nirq-cpus = \"0,2\"", "Every(Fixed(1000000))", Some(2)),
        ("clients = 3\nthink = { exponential = \"1ms\" }\nnetwork = \"50us\"\nreceive = \"r\"", closed, None),
    ] {
        let scenario = Scenario::parse(&text(keys), "x.toml", None).unwrap();
        let spec = scenario.run_spec("a", 1).unwrap();
        let [remote] = &spec.workloads[0].remotes[..] else { panic!("{keys}: one remote") };
        assert_eq!(format!("{:?}", remote.sends), sends, "{keys}");
        assert_eq!(remote.irq_cpus.map(|cpus| cpus.count()), irq_cpus, "{keys}");
    }
}

#[test]
fn variants_have_their_own_options_of_workloads() {
    let text = r#"
machine = "laptop-8"
cgroup = [{ name = "g", quota = "200ms" }]
workload = [{ use = "hog", name = "load", threads = 8, cgroup = "g" }, { use = "cyclictest", name = "probe" }]
variant = [{ name = "a", kernel = "6.12" }, { name = "b", kernel = "6.12", workloads.load.threads = 2 },
           { name = "free", kernel = "6.12", cgroups.g.quota = "max", workloads = { load = { threads = 3 } } }]
metric = [{ of = "probe.latency", stat = "p99" }, { of = "/g.nr_throttled" }]
"#;
    let scenario = Scenario::parse(text, "own.toml", None).unwrap();
    let tasks = |variant: &str| {
        let spec = scenario.run_spec(variant, 1).unwrap();
        spec.workloads.iter().map(|workload| workload.tasks.iter().map(|task| task.count).sum()).collect::<Vec<u32>>()
    };
    assert_eq!(["a", "b", "free"].map(|name| tasks(name)[0]), [8, 2, 3]);
    assert_eq!(tasks("a")[1], tasks("b")[1], "what is not named stays");
    assert_eq!(scenario.variants()[1].changes["workloads"], serde_json::json!({ "load": { "threads": 2 } }));
    let limited = ["a", "free"]
        .map(|name| scenario.run_spec(name, 1).unwrap().cgroups.iter().any(|cgroup| cgroup.bandwidth.is_some()));
    assert_eq!(limited, [true, false], "max is no limit");
    assert_eq!(scenario.variants()[2].changes["cgroups"]["/g"]["quota"], "max");
    // The option of one variant from the command line.
    let set = r#"{ "set": ["variant.b.workloads.load.threads=5"] }"#;
    let other = Scenario::parse(text, "own.toml", Some(set)).unwrap().run_spec("b", 1).unwrap();
    assert_eq!(other.workloads[0].tasks.iter().map(|task| task.count).sum::<u32>(), 5);
}

#[test]
fn options_that_change_the_metrics_are_refused() {
    let text = "machine = \"laptop-8\"\nvariant = [{ name = \"a\", kernel = \"6.12\" }, { name = \"b\", kernel = \"6.12\", \
                workloads.w.program = [{ loop = \"forever\", do = [{ run = \"1ms\" }] }] }]\n\
                [[workload]]\nname = \"w\"\nprogram = [{ loop = \"forever\", do = [{ begin = \"s\" }, { run = \"1ms\" }, \
                { end = \"s\" }] }]\n";
    let error = Scenario::parse(text, "own.toml", None).unwrap_err().to_string();
    assert!(error.contains("only some of the variants would have the metric w.s"), "{error}");
}
