//! A spinlock in user space whose holders take page faults: the scenarios lock-holder-preempted, lock-holder-2mib and
//! lock-holder-clients in short form.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use schedlab_lab::run;
use schedlab_model::MSEC;
use schedlab_scenario::Scenario;

/// Transactions per second, the mean time spun for the lock in us, and page faults.
fn measured(file: &str, variant: &str) -> [f64; 3] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let mut spec = Scenario::parse(&text, file, None).unwrap().run_spec(variant, 1).unwrap();
    (spec.duration, spec.warmup) = (200 * MSEC, 20 * MSEC);
    let report = run(&spec, None, &AtomicBool::new(false)).unwrap().report;
    ["pgbench.transactions", "pgbench.buffers.spin.mean", "sched.faults"].map(|name| report.metric(name).unwrap())
}

#[test]
fn huge_pages_take_the_faults_out_of_the_lock() {
    for variant in ["none", "voluntary", "full", "lazy"] {
        let [small, spun, faults] = measured("lock-holder-preempted.toml", variant);
        let [huge, _, few] = measured("lock-holder-2mib.toml", variant);
        // Two faults per transaction in 180 ms; with huge pages one in 256.
        assert!((faults / (small * 0.18) - 2.0).abs() < 0.01, "{variant}: {faults} faults");
        assert!(few < faults / 400.0, "{variant}: {few} faults");
        assert!(spun > 0.0 && huge > small, "{variant}: {small} and {huge} transactions/s, {spun} us spun");
    }
}

/// Transactions per second of lock-holder-clients with pages of this size.
fn with_clients(page: &str, variant: &str, seed: u64) -> f64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lock-holder-clients.toml");
    let text = std::fs::read_to_string(path).unwrap().replace("fault = \"4KiB\"", &format!("fault = \"{page}\""));
    let mut spec = Scenario::parse(&text, "lock-holder-clients.toml", None).unwrap().run_spec(variant, seed).unwrap();
    (spec.duration, spec.warmup) = (120 * MSEC, 20 * MSEC);
    run(&spec, None, &AtomicBool::new(false)).unwrap().report.metric("pgbench.tps").unwrap()
}

/// Wakeups from other CPUs take effect at the end of a fault under the lock, if they send no interrupt.
#[test]
fn only_lazy_preemption_switches_out_holders_that_fault() {
    let total = |page, variant| (1..=4).map(|seed| with_clients(page, variant, seed)).sum::<f64>();
    let none = total("4KiB", "none");
    for (page, variant, least, most) in
        [("4KiB", "full", 0.98, 1.02), ("4KiB", "lazy", 0.0, 0.9), ("2MiB", "lazy", 1.02, f64::INFINITY)]
    {
        let ratio = total(page, variant) / none;
        assert!((least..most).contains(&ratio), "{page}, {variant}: {ratio} of none with 4 KiB");
    }
}
