//! Hybrids of two rows run: with any single difference the simulator's checks still hold.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::atomic::AtomicBool;

use schedlab_lab::{differences, hybrid};
use schedlab_scenario::Scenario;

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
