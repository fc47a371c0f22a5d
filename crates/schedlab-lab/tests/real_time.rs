//! Real-time tasks in whole runs: their latency under load and their effect on other tasks.

use std::sync::atomic::AtomicBool;

use schedlab_scenario::Scenario;

/// The metrics of one run of one variant.
fn metric(text: &str, variant: &str, name: &str) -> f64 {
    let scenario = Scenario::parse(text, "test.toml", None).unwrap();
    let spec = scenario.run_spec(variant, 1).unwrap();
    let run = schedlab_lab::run(&spec, None, &AtomicBool::new(false)).unwrap();
    run.report.metric(name).unwrap_or_else(|| panic!("no {name} in {:?}", run.report.metrics))
}

const VARIANTS: &str =
    "variant = [{ name = \"cfs\", kernel = \"6.1\" }, { name = \"eevdf\", kernel = \"6.12\" }, { name = \"lazy\", kernel = \"7.2\" }]\n";

#[test]
fn a_real_time_thread_does_not_wait_for_hackbench() {
    let beside = |options: &str| {
        format!(
            "machine = \"laptop-8\"\nduration = \"1s\"\n\nworkload = [{{ use = \"hackbench\", groups = 2, repeat = true }}, \
             {{ use = \"cyclictest\", name = \"rt\", smp = true, interval = \"1ms\"{options} }}]\n{VARIANTS}"
        )
    };
    for variant in ["cfs", "eevdf", "lazy"] {
        let [fair, fifo] = ["", ", priority = 80"].map(|o| metric(&beside(o), variant, "rt.latency.max"));
        // In us. There is no timer slack and no queueing; idle exits, interrupts and non-preemptible sections remain.
        assert!(fifo < 100.0 && fair > 5.0 * fifo, "{variant}: {fair} us as a fair task, {fifo} us as fifo");
    }
}

#[test]
fn mixed_classes_with_noise_pass_the_checks() {
    for (variant, policy) in [("cfs", "rr:10"), ("eevdf", "fifo:10"), ("lazy", "rr:99")] {
        let text = format!(
            "machine = \"laptop-8\"\nduration = \"3s\"\n\n\
             workload = [{{ use = \"hackbench\", groups = 2, fifo = true }}, {{ use = \"hog\", threads = 3, policy = \"{policy}\" }}, \
             {{ name = \"wanderer\", program = [{{ loop = \"forever\", do = [{{ run = \"1ms\" }}, {{ policy = \"fifo:3\" }}, {{ run = \"1ms\" }}, {{ sleep = \"1ms\" }}, {{ policy = \"normal\" }}, {{ sleep = \"1ms\" }}] }}] }}]\n{VARIANTS}"
        );
        let time = metric(&text, variant, "hackbench.time");
        assert!(time > 0.0 && time < 3.0, "{variant}: {time} s");
    }
}
