//! Prints one trace digest per variant of the given scenarios.
//!
//! `digests SEED SCENARIO...` prints one line `SCENARIO VARIANT EVENTS DIGEST` per variant.

use std::path::Path;
use std::sync::atomic::AtomicBool;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [seed, paths @ ..] = args.as_slice() else {
        return Err("usage: digests SEED SCENARIO...".into());
    };
    let seed = seed.parse()?;
    for path in paths {
        let scenario = schedlab_scenario::Scenario::load(Path::new(path), None)?;
        for variant in scenario.variants() {
            let spec = scenario.run_spec(&variant.name, seed)?;
            match schedlab_lab::run(&spec, None, &AtomicBool::new(false)) {
                Ok(run) => println!("{path} {} {} {}", variant.name, run.events, run.digest),
                Err(error) => println!("{path} {} {error}", variant.name),
            }
        }
    }
    Ok(())
}
