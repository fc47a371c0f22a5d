//! `count` of a guest: several guests of one table, each with workloads of its own.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use schedlab_scenario::Scenario;
use schedlab_spec::Guest;

const SCENARIO: &str = r#"
machine = "laptop-8"
duration = "20ms"
[[guest]]
name = "vm"
count = 2
vcpus = 2
platform = "x86-kvm"
cpus = "0-1"
[[guest]]
name = "other"
vcpus = 1
platform = "x86-kvm"
[[workload]]
use = "hog"
name = "app"
guest = "vm"
threads = 3
[[workload]]
use = "hog"
guest = "other"
[[variant]]
name = "a"
kernel = "6.12.0"
guests.vm.features = { VCPU_IS_PREEMPTED = false }
tasks.app.nice = 5
[[variant]]
name = "b"
kernel = "6.12.0"
"#;

fn with(sets: &str) -> schedlab_scenario::Result<Scenario> {
    Scenario::parse(SCENARIO, "guests.toml", Some(&format!("{{\"set\": [{sets}]}}")))
}

fn names(scenario: &Scenario) -> Vec<(String, Vec<String>)> {
    let spec = scenario.run_spec("a", 1).unwrap();
    let inside = |guest: &Guest| guest.run.workloads.iter().map(|workload| workload.name.clone()).collect();
    spec.guests.iter().map(|guest| (guest.name.clone(), inside(guest))).collect()
}

#[test]
fn each_guest_of_a_count_has_a_name_and_workloads_of_its_own() {
    let of = |guest: &str, workload: &str| (guest.to_owned(), vec![workload.to_owned()]);
    assert_eq!(names(&with("").unwrap()), [of("vm", "app"), of("vm-2", "app-2"), of("other", "hog")]);
    assert_eq!(names(&with("\"guest.vm.count=1\"").unwrap()), [of("vm", "app"), of("other", "hog")]);
    assert_eq!(with("\"guest.vm.count=1000\"").unwrap().run_spec("b", 1).unwrap().guests.len(), 1001);
}

#[test]
fn guests_of_a_count_differ_in_nothing_else() {
    let scenario = with("").unwrap();
    for (variant, informed, nice) in [("a", false, 5), ("b", true, 0)] {
        let spec = scenario.run_spec(variant, 1).unwrap();
        let [first, second, other] = &spec.guests[..] else { panic!("{} guests", spec.guests.len()) };
        assert_eq!([first, second, other].map(|guest| guest.vcpu_is_preempted), [informed, informed, true]);
        assert_eq!(first.affinity, second.affinity);
        for guest in [first, second] {
            assert_eq!(guest.run.workloads[0].tasks[0].nice, nice, "{variant} {}", guest.name);
        }
        let mut renamed = second.clone();
        renamed.name.clone_from(&first.name);
        let mut workloads = second.run.workloads.to_vec();
        workloads[0].name.clone_from(&first.run.workloads[0].name);
        renamed.run.workloads = workloads.into();
        assert_eq!(format!("{renamed:?}"), format!("{first:?}"));
    }
    let described = scenario.describe();
    assert_eq!(described["guests"], serde_json::json!(["vm", "vm-2", "other"]));
    assert_eq!(described["workloads"][1]["name"], "app-2");
    assert_eq!(described["workloads"][1]["attributes"]["guest"], "vm-2");
}

#[test]
fn the_text_with_a_count_set_makes_the_same_scenario() {
    let three = with("\"guest.vm.count=3\"").unwrap();
    let text = three.describe()["text"].as_str().unwrap().to_owned();
    let again = Scenario::parse(&text, "guests.toml", None).unwrap();
    assert_eq!(names(&again), names(&three));
}

#[test]
fn a_metric_of_a_later_guest_can_be_judged() {
    let text = format!("{SCENARIO}[[metric]]\nof = \"vm-2.steal\"\n");
    let metrics = Scenario::parse(&text, "guests.toml", None).map(|scenario| scenario.metrics()[0].name.clone());
    assert_eq!(metrics.map_err(|error| error.to_string()), Ok("vm-2.steal".to_owned()));
}

#[test]
fn counts_that_are_refused() {
    let cases = [
        ("\"guest.vm.count=0\"", "0: out of range; expected a whole number from 1 to 1000"),
        ("\"guest.vm.count=1001\"", "1001: out of range; expected a whole number from 1 to 1000"),
        ("\"guest.other.name=vm-2\", \"workload.hog.guest=vm-2\"", "two guests are named \"vm-2\""),
        ("\"workload.hog.name=app-2\"", "two workloads are named \"app-2\""),
        ("\"workload.hog.name=vm-2\"", "\"vm-2\" already names something else in results"),
        ("\"workload.hog.guest=vm-2\"", "unknown guest \"vm-2\""),
        ("\"variant.a.guests={vm-2={nice=1}}\"", "unknown guest \"vm-2\""),
        ("\"variant.a.tasks={app-2={nice=1}}\"", "unknown workload \"app-2\""),
    ];
    for (sets, message) in cases {
        let error = with(sets).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_guest_runs_on_the_processor_of_its_host_as_the_variant_has_it() {
    let text = format!("{SCENARIO}physics = {{ locks = false, teo = true }}\n");
    let scenario = Scenario::parse(&text.replace("laptop-8", "xeon-1s26c-smt2"), "guests.toml", None).unwrap();
    for (variant, differs) in [("a", false), ("b", true)] {
        let spec = scenario.run_spec(variant, 1).unwrap();
        assert_eq!(spec.machine.physics.teo, differs, "{variant}");
        assert_eq!(spec.machine.physics.locks, !differs, "{variant}");
        for guest in spec.guests.iter() {
            assert_eq!(guest.run.machine.physics, spec.machine.physics, "{variant}: {}", guest.name);
        }
    }
}

const NESTED: &str = r#"
machine = "laptop-8"
duration = "20ms"
[[guest]]
name = "outer"
count = 2
vcpus = 4
platform = "x86-kvm"
kernel = "6.1"
[[guest]]
name = "inner"
in = "outer"
count = 2
vcpus = 2
platform = "x86-kvm"
pinned = true
cpus = "2-3"
[[workload]]
use = "hog"
guest = "inner"
[[variant]]
name = "a"
kernel = "6.12.0"
"#;

/// Each of the two outer guests hosts two; what an inner guest has of its host it has of the outer guest.
#[test]
fn a_guest_in_a_guest_is_one_of_each_outer_guest() {
    let spec = Scenario::parse(NESTED, "nested.toml", None).unwrap().run_spec("a", 1).unwrap();
    let found: Vec<_> = spec.guests.iter().map(|guest| (guest.name.as_str(), guest.host.0)).collect();
    assert_eq!(found, [("outer", 0), ("outer-2", 0), ("inner", 1), ("inner-2", 1), ("inner-3", 2), ("inner-4", 2)]);
    for guest in &spec.guests[2..] {
        assert_eq!(guest.run.kernel.version.name, "6.1");
        assert_eq!(guest.run.machine.costs.vm_exit, spec.machine.costs.vm_exit_nested);
        assert_eq!(guest.affinity[1].as_ref().unwrap().lowest().unwrap().0, 3);
        assert_eq!(guest.run.workloads.len(), 1);
    }
}

#[test]
fn guests_in_guests_that_are_refused() {
    let third = "platform = \"x86-kvm\"\npinned = true\ncpus = \"2-3\"\n";
    let deeper = format!("{third}[[guest]]\nname = \"deepest\"\nin = \"inner\"\nvcpus = 1\nplatform = \"x86-kvm\"\n");
    for (from, to, message) in [
        ("in = \"outer\"", "in = \"inner\"", "unknown guest \"inner\""),
        ("in = \"outer\"", "in = \"other\"", "unknown guest \"other\""),
        (third, deeper.as_str(), "the cost of an exit of a guest in a guest in a guest is not known"),
        ("in = \"outer\"", "in = \"outer\"\ncgroup = \"a\"", "control groups inside a guest are not modelled"),
        ("in = \"outer\"", "in = \"outer\"\nenable_apicv = true", "the outer guest has no posted interrupts"),
        ("in = \"outer\"", "in = \"outer\"\nenable_ipiv = true", "IPI virtualization needs posted interrupts"),
        ("cpus = \"2-3\"", "cpus = \"2-4\"", "4"),
        ("platform = \"x86-kvm\"\nkernel", "platform = \"arm64-kvm\"\nkernel", "only for platform \"x86-kvm\""),
        ("machine = \"laptop-8\"", "machine = \"power9-176\"", "the machine states no cost \"vm-exit-nested\""),
        ("count = 2\nvcpus = 4", "count = 1000\nvcpus = 4", "a scenario has at most 10000 guests"),
    ] {
        let text = NESTED.replacen(from, to, 1).replace(
            "count = 2\nvcpus = 2",
            if message.contains("10000") { "count = 1000\nvcpus = 2" } else { "count = 2\nvcpus = 2" },
        );
        let error = Scenario::parse(&text, "nested.toml", None).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}
