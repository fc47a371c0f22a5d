//! If the trace cannot be written, the run still has its metrics.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const SCENARIO: &str = r#"
machine = "rpi4"
duration = "50ms"
workload = [{ use = "hackbench", groups = 1, loops = 20, repeat = true }]
variant = [{ name = "a", kernel = "6.1" }]
"#;

#[test]
fn a_full_disk_keeps_the_metrics() {
    if !Path::new("/dev/full").exists() {
        let _ = writeln!(std::io::stdout(), "\nskipped: a full disk: there is no /dev/full here");
        return;
    }
    let spec = schedlab_scenario::Scenario::parse(SCENARIO, "s.toml", None).unwrap().run_spec("a", 1).unwrap();
    let full = std::env::temp_dir().join(format!("schedlab-full-{}.ftrace", std::process::id()));
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let run = schedlab_lab::run(&spec, Some(&full), &AtomicBool::new(false));
    std::fs::remove_file(&full).unwrap();
    let run = run.unwrap();
    assert!(run.trace_error.as_ref().unwrap().contains("No space left on device"), "{:?}", run.trace_error);
    assert!(run.to_json()["trace_error"].is_string());
    let without = schedlab_lab::run(&spec, None, &AtomicBool::new(false)).unwrap();
    assert_eq!((&run.digest, run.events), (&without.digest, without.events));
    assert!(without.to_json().get("trace_error").is_none());
}
