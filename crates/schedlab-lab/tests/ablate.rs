//! Hybrids of two rows run: with any single difference the simulator's checks still hold.

use std::sync::atomic::AtomicBool;

use schedlab_lab::explain::explain;
use schedlab_lab::{differences, hybrid};
use schedlab_scenario::Scenario;
use schedlab_spec::{Mechanism, RunSpec};

const BODY: &str = "machine = { base = \"laptop-8\", topology = { cores-per-llc = 1, threads-per-core = 2 } }\nduration = \"40ms\"\n\
    cgroup = [{ name = \"a\", weight = 300 }, { name = \"b\", quota = \"8ms\", period = \"10ms\" }]\n\
    workload = [{ use = \"hackbench\", groups = 1, repeat = true, cgroup = \"a\" }, { use = \"hog\", threads = 3, nice = 3 }, \
    { use = \"hog\", name = \"limited\", cgroup = \"b\" }, { use = \"cyclictest\", interval = \"700us\" }, { use = \"hog\", name = \"rt\", policy = \"rr:5\" }]\n";

fn name(row: &str) -> String {
    row.replace('.', "-")
}

#[test]
fn every_single_difference_passes_the_checks() {
    let rows =
        ["5.2", "5.7", "5.13", "6.1", "6.3", "eevdf-rfc", "6.6", "6.12.0", "6.12.107", "6.18.2", "6.18.44", "7.2"];
    let variants: Vec<String> =
        rows.iter().map(|row| format!("{{ name = \"{}\", kernel = \"{row}\" }}", name(row))).collect();
    let text = format!("{BODY}variant = [{}]\n", variants.join(", "));
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap();
    let far = [("6.1", "6.12.107"), ("eevdf-rfc", "6.18.2"), ("6.6", "7.2"), ("6.12.0", "7.2")];
    let near = rows.windows(2).map(|pair| (pair[0], pair[1]));
    let mut flips = 0;
    for (a, b) in near.chain(far) {
        let [a, b] = [a, b].map(|row| scenario.run_spec(&name(row), 1).unwrap());
        for (from, to) in [(&a, &b), (&b, &a)] {
            for difference in differences(from, to) {
                let one = hybrid(from, to, &[difference.name]);
                let run = schedlab_lab::run(&one, None, &AtomicBool::new(false));
                let pair = (from.kernel.version.name, to.kernel.version.name, difference.name);
                assert!(run.is_ok(), "{pair:?}: {}", run.unwrap_err());
                flips += 1;
            }
        }
    }
    assert!(flips > 150, "{flips}");
}

/// A mechanism is a rule, a feature or a knob, so what it changes first is a decision: or it makes one of the decisions
/// before the first event that differs cost another time, as the width of a search does.
#[test]
fn the_first_difference_of_a_single_mechanism_is_a_decision() {
    let rows = ["5.2", "5.13", "6.1", "6.3", "6.6", "6.12.0", "6.12.107", "6.18.44", "7.0", "7.2", "7.3"];
    let settings = "hz = 250, preempt = \"full\"";
    let variants: Vec<String> =
        rows.iter().map(|row| format!("{{ name = \"{}\", kernel = \"{row}\", {settings} }}", name(row))).collect();
    let text = format!("{BODY}variant = [{}]\n", variants.join(", "));
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap();
    let mut named = 0;
    for pair in rows.windows(2) {
        let [a, b] = [0, 1].map(|index| scenario.run_spec(&name(pair[index]), 1).unwrap());
        for difference in differences(&a, &b).iter().filter(|one| one.kind != "setting") {
            let one = hybrid(&a, &b, &[difference.name]);
            let Some(found) = explain([&a, &one], &AtomicBool::new(false)).unwrap() else { continue };
            let what = (pair, difference.name);
            assert!(found.costs.is_none() || found.first_different.is_some(), "{what:?}: {found:#?}");
            named += usize::from(found.costs.is_none());
        }
    }
    assert!(named > 15, "{named}");
}

#[test]
fn a_hybrid_has_the_mechanisms_of_its_machine_in_its_guests_too() {
    let text = "machine = \"xeon-1s26c-smt2\"\nduration = \"1ms\"\n\
        guest = [{ name = \"vm\", vcpus = 2, platform = \"x86-kvm\" }]\nworkload = [{ use = \"hog\", guest = \"vm\" }]\n\
        variant = [{ name = \"a\", kernel = \"6.12.0\" }, { name = \"b\", kernel = \"6.12.0\", physics = { locks = false } }]\n";
    let scenario = Scenario::parse(text, "test.toml", None).unwrap();
    let [a, b] = ["a", "b"].map(|variant| scenario.run_spec(variant, 1).unwrap());
    let found = differences(&a, &b);
    assert_eq!(found.iter().map(|difference| difference.name).collect::<Vec<_>>(), ["locks"]);
    let one = hybrid(&a, &b, &["locks"]);
    assert!(a.guests[0].run.machine.physics.locks && !one.guests[0].run.machine.physics.locks);
}

/// A machine with the numbers of all mechanisms, and a load that each of them slows down somewhere.
const PHYSICS: &str = r#"
duration = "60ms"
seeds = 1
workload = [
    { name = "near", use = "lmbench-stream", cpus = "0" },
    { name = "far", use = "lmbench-stream", cpus = "1" },
    { name = "sets", count = 3, cpus = "2", working-set = "128KiB", program = [{ loop = "forever", do = [{ run = "100us" }, { sleep = "150us" }] }] },
    { name = "shared", count = 3, program = [{ loop = "forever", do = [{ write = "pipe" }, { read = "pipe" }, { sleep = { exponential = "200us" } }] }] },
    { name = "maps", count = 2, program = [{ loop = "forever", do = [{ mmap = "16KiB" }, { fault = 4, clear = true }, { munmap = "16KiB" }] }] },
    { name = "probe", use = "cyclictest", interval = "3ms", default-system = true },
]
[machine]
base = "xeon-2s28c-smt2"
topology = { nodes = 2, cores-per-llc = 2, threads-per-core = 2 }
memory = { cpu = 12_000, node = 15_000, remote = 5_000, source = "test" }
[machine.frequency]
base = 2500
min = 1000
turbo = [[1, 3800], [8, 3000]]
source = "test"
[machine.caches]
source = "test"
l1 = { size = "32KiB", read = "40ns" }
l2 = { size = "256KiB", read = "50ns" }
llc = { size = "1MiB", read = "60ns" }
memory = { read = "150ns" }
"#;

#[test]
fn every_mechanism_of_the_machine_is_a_difference_of_its_own_that_changes_the_run() {
    let on = |mechanism: Mechanism| !matches!(mechanism, Mechanism::Teo | Mechanism::Schedutil);
    let key = |mechanism: Mechanism, on: bool| format!("{} = {on}", mechanism.name());
    let table = |flipped: Option<Mechanism>| {
        let keys = Mechanism::ALL.map(|mechanism| key(mechanism, on(mechanism) != (flipped == Some(mechanism))));
        format!("kernel = \"6.12.107\", physics = {{ {} }}", keys.join(", "))
    };
    let mut variants = vec![format!("{{ name = \"all\", {} }}", table(None))];
    variants.extend(Mechanism::ALL.map(|one| format!("{{ name = \"{}\", {} }}", one.name(), table(Some(one)))));
    let text = format!("variant = [{}]\n{PHYSICS}", variants.join(", "));
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap();
    let digest = |spec: &RunSpec| schedlab_lab::run(spec, None, &AtomicBool::new(false)).unwrap().digest;
    let all = scenario.run_spec("all", 1).unwrap();
    let before = digest(&all);
    for mechanism in Mechanism::ALL {
        let name = mechanism.name();
        let flipped = scenario.run_spec(name, 1).unwrap();
        let found: Vec<_> = differences(&all, &flipped).into_iter().map(|one| (one.kind, one.name)).collect();
        assert_eq!(found, [("physics", name)]);
        let one = hybrid(&all, &flipped, &[name]);
        assert_eq!(one.machine.physics, flipped.machine.physics, "{name}");
        assert_eq!(hybrid(&flipped, &all, &[name]).machine.physics, all.machine.physics, "{name}");
        assert_ne!(digest(&one), before, "{name} changes nothing");
    }
}
