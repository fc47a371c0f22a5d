//! Properties of every row, checked on whole runs: the share of a sleeper, the lag bound with a thousand tasks, known
//! bugs.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use schedlab_lab::{run, Run, RunSpec};
use schedlab_scenario::Scenario;

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn ran(spec: &RunSpec) -> Run {
    run(spec, None, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{}: {error}", spec.kernel.version.name))
}

/// The share, in percent, of the task that runs and sleeps 1 ms each.
fn sleepers_share(scenario: &Scenario, variant: &str) -> f64 {
    let report = ran(&scenario.run_spec(variant, 1).unwrap()).report;
    let busy = |name: &str| report.tasks.iter().find(|task| task.name == name).map(|task| task.cpu_ns as f64).unwrap();
    100.0 * busy("sleeper-1ms") / (busy("sleeper-1ms") + busy("runner-1ms"))
}

#[test]
fn the_share_of_a_sleeper_next_to_a_cpu_hog() {
    let text = std::fs::read_to_string(scenarios().join("sleeper-curve.toml")).unwrap();
    let workloads = &text[..text.find("[[variant]]").unwrap()];
    let no_delay = "features = { DELAY_DEQUEUE = false }";
    // With sleeper credit the share is a half. Without it, a third: the sleeper runs, waits and sleeps for equally
    // long. With a delayed dequeue it works off negative lag while it sleeps, which restores almost a half up to 6.18
    // (switch and wakeup overhead count as runtime); 7.2 places it at V, with a later deadline.
    let cases = [
        ("5.2", "", 50.0, 1.0),
        ("5.7", "", 50.0, 1.0),
        ("5.13", "", 50.0, 1.0),
        ("6.1", "", 50.0, 1.0),
        ("6.3", "", 50.0, 1.0),
        ("eevdf-rfc", "", 33.3, 1.0),
        ("eevdf-rfc", "features = { PLACE_BONUS = true }", 50.0, 1.0),
        ("6.6", "", 33.3, 1.0),
        ("6.12.0", no_delay, 33.3, 1.0),
        ("6.12.107", no_delay, 33.3, 1.0),
        ("6.18.2", no_delay, 33.3, 1.0),
        ("7.2", no_delay, 33.3, 1.0),
        ("6.12.0", "", 50.0, 2.5),
        ("6.12.107", "", 50.0, 2.5),
        ("6.18.2", "", 50.0, 2.5),
    ];
    for (kernel, changes, due, within) in cases {
        let file = format!("{workloads}[[variant]]\nname = \"x\"\nkernel = \"{kernel}\"\n{changes}\n");
        let share = sleepers_share(&Scenario::parse(&file, "sleeper-curve", None).unwrap(), "x");
        assert!((share - due).abs() <= within, "{kernel} {changes}: {share:.2}%, due {due}%");
    }
}

#[test]
fn a_thousand_tasks_stay_within_the_lag_bound() {
    for kernel in ["6.6", "6.12.0", "6.12.107", "6.18.2", "7.2"] {
        let slices = kernel != "6.6";
        // The bound holds while the same tasks are queued: threads of the kernel come and go.
        let short = if slices { "slice = \"0.5ms\"" } else { "nice = -3" };
        let file = format!(
            "machine = {{ base = \"laptop-8\", topology = {{ cores-per-llc = 2, threads-per-core = 1 }} }}\n\
             duration = \"20s\"\nvariant = [{{ name = \"x\", kernel = \"{kernel}\", physics = {{ housekeeping = false }} }}]\n\
             [[workload]]\nname = \"mix\"\n\
             task = [\n\
             {{ name = \"hog\", count = 600, program = [{{ loop = \"forever\", do = [{{ run = \"10ms\" }}] }}] }},\n\
             {{ name = \"light\", count = 200, nice = 5, program = [{{ loop = \"forever\", do = [{{ run = \"10ms\" }}] }}] }},\n\
             {{ name = \"short\", count = 200, {short}, program = [{{ loop = \"forever\", do = [{{ run = \"10ms\" }}] }}] }},\n\
             ]\n"
        );
        let scenario = Scenario::parse(&file, "mix", None).unwrap_or_else(|error| panic!("{error}"));
        // The checker stops the run at the first lag beyond the bound.
        let run = ran(&scenario.run_spec("x", 1).unwrap());
        let looked = run.outcome.checks.iter().find(|(name, _)| *name == "lag_bound").map(|(_, looks)| *looks);
        assert!(looked.is_some_and(|looks| looks > 0), "{kernel}: {:?}", run.outcome.checks);
    }
}

/// Every file of `scenarios/bugs` names the commit that fixed the bug in its first line and has metrics whose bounds
/// hold on a correct scheduler. Variants named `buggy...` must violate a bound, all others must keep them.
#[test]
fn a_known_bug_shows_in_buggy_variants_only() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(scenarios().join("bugs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let first = text.lines().next().unwrap_or_default();
        let commit =
            first.strip_prefix("# Fixed by ").and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        let hex = commit.len() >= 12 && commit.chars().all(|c| c.is_ascii_hexdigit());
        assert!(hex, "{name}: the first line must be `# Fixed by COMMIT (\"subject\")`, not {first:?}");
        let scenario = Scenario::load(&file, None).unwrap_or_else(|error| panic!("{error}"));
        let mut has_kind = [false; 2];
        for variant in scenario.variants() {
            let buggy = variant.name.starts_with("buggy");
            has_kind[usize::from(buggy)] = true;
            for seed in &scenario.seeds {
                let (kept, values) = keeps(&scenario, &variant.name, *seed);
                assert_eq!(
                    kept, !buggy,
                    "{name}: {} ({}), seed {seed}: {values}",
                    variant.name, variant.kernel.version.name
                );
            }
        }
        assert_eq!(has_kind, [true; 2], "{name}: a variant `buggy...` and one that is not");
    }
}

/// Whether the run keeps every bound of the file, and the values.
fn keeps(scenario: &Scenario, variant: &str, seed: u64) -> (bool, String) {
    let json = ran(&scenario.run_spec(variant, seed).unwrap()).to_json();
    let bounds: Vec<_> =
        scenario.metrics().iter().filter_map(|m| m.bound.clone().map(|bound| (&m.name, bound))).collect();
    assert!(!bounds.is_empty(), "no metric with at-least or at-most");
    let values: Vec<(&String, f64)> =
        bounds.iter().map(|(name, _)| (*name, json["metrics"][*name].as_f64().expect("a value"))).collect();
    let kept = bounds.iter().zip(&values).all(|((_, bound), (_, value))| bound.contains(value));
    (kept, format!("{values:?}, bounds {bounds:?}"))
}
