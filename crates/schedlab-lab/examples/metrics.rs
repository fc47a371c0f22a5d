//! Runs a variant of a scenario with one seed and prints the named metrics: `metrics SCENARIO VARIANT METRIC...`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, variant, names @ ..] = args.as_slice() else {
        return Err("usage: metrics SCENARIO VARIANT METRIC...".into());
    };
    let scenario = schedlab_scenario::Scenario::load(Path::new(path), None)?;
    let run = schedlab_lab::run(&scenario.run_spec(variant, 1)?, None, &AtomicBool::new(false))?;
    let json = run.to_json();
    let shown: Vec<String> = names.iter().map(|name| format!("{name}={}", json["metrics"][name])).collect();
    println!("{}", shown.join(" "));
    Ok(())
}
