//! Prints one trace digest per random run of the swarm test's generator.
//!
//! `swarm_digests COUNT ROW...` prints `SEED EVENTS DIGEST` for the seeds 0 to COUNT - 1, each a run under one of the
//! named version rows. The rows are arguments because a new row would change what every seed draws.

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::atomic::AtomicBool;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use schedlab_policy::Version;
use schedlab_trace::Digest;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [count, rows @ ..] = args.as_slice() else {
        return Err("usage: swarm_digests COUNT ROW...".into());
    };
    let rows = rows.iter().map(|row| Version::find(row)).collect::<Result<Vec<_>, _>>()?;
    let runs = support::swarm::scenario(rows);
    for seed in 0..count.parse::<u64>()? {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let spec = runs
            .new_tree(&mut TestRunner::new_with_rng(Config::default(), rng))
            .map_err(|why| why.to_string())?
            .current();
        let mut digest = Digest::default();
        match schedlab_sim::run(&spec, &mut digest, &AtomicBool::new(false)) {
            Ok(_) => println!("{seed} {} {}", digest.events(), digest.hex()),
            Err(error) => println!("{seed} {} {} {error}", digest.events(), digest.hex()),
        }
    }
    Ok(())
}
