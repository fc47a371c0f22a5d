//! Every scenario in `scenarios/` loads and yields a description and run specifications.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::{Path, PathBuf};

use schedlab_scenario::Scenario;

fn shipped() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let below = ["validation", "validation-host", "validation-preempt", "bugs", "physics"].map(|name| dir.join(name));
    let dirs = [vec![dir], below.to_vec()].concat();
    let entries = dirs.iter().flat_map(|dir| std::fs::read_dir(dir).unwrap());
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

#[test]
fn every_scenario_loads() {
    let files = shipped();
    assert!(files.len() >= 5);
    for file in files {
        let scenario = match Scenario::load(&file, None) {
            Ok(scenario) => scenario,
            // The rt-app file is part of Debian's package rt-app, which may not be installed.
            Err(error) if error.message.contains("/usr/share/doc/rt-app") => {
                println!("not tested: {error}");
                continue;
            }
            // A scenario about the running kernel needs a kernel that is modelled and has the compared features.
            Err(error) if ["running kernel", "no slices"].iter().any(|why| error.message.contains(why)) => {
                println!("not tested: {error}");
                continue;
            }
            Err(error) => panic!("{error}; hint {:?}", error.hint),
        };
        assert!(!scenario.summary.is_empty() && !scenario.metrics().is_empty(), "{}", file.display());
        for variant in scenario.variants() {
            for seed in &scenario.seeds {
                let spec = scenario.run_spec(&variant.name, *seed).unwrap();
                assert_eq!((spec.seed, spec.kernel.version.name), (*seed, variant.kernel.version.name));
            }
        }
    }
}
