//! Explain looks into the first guest: what a halted vCPU reads as is why a wakee goes elsewhere.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::AtomicBool;

use schedlab_lab::explain::explain;
use schedlab_scenario::Scenario;

const PAIR: &str = r#"
machine = "rpi4"
duration = "100ms"
guest = [{ name = "vm", vcpus = 4, platform = "arm64-kvm-pvsched" }]
workload = [{ use = "perf-pipe", guest = "vm" }]

[[variant]]
name = "blind"
kernel = "5.7"
guests.vm.features = { VCPU_IS_PREEMPTED = false }

[[variant]]
name = "informed"
kernel = "5.7"
"#;

#[test]
fn the_first_difference_of_a_blind_and_an_informed_guest_is_available_idle_cpu() {
    let scenario = Scenario::parse(PAIR, "pair.toml", None).unwrap();
    let [blind, informed] = ["blind", "informed"].map(|variant| scenario.run_spec(variant, 1).unwrap());
    let cancel = AtomicBool::new(false);
    assert_eq!(explain([&informed, &informed], &cancel).unwrap(), None);
    let found = explain([&blind, &informed], &cancel).unwrap().unwrap();
    assert_eq!(found.question, "placement");
    let told = serde_json::to_string(&found).unwrap();
    assert!(told.contains("available_idle_cpu"), "{told}");
}
