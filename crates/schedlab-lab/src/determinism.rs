//! The determinism check: the same specification is run twice and compared event by event.

use schedlab_sim::{SimError, Watch};
use schedlab_spec::RunSpec;
use schedlab_trace::Divergence;

use crate::erased;

/// The result of the determinism check.
#[derive(Clone, PartialEq, Debug)]
pub enum Determinism {
    /// Equal, event for event.
    Same,
    /// The first event at which they differ.
    Differs(Box<Divergence>),
}

/// Runs the specification twice at the same time and compares every event.
pub fn check_determinism<W: Watch + Sync>(spec: &RunSpec, watch: &W) -> Result<Determinism, SimError> {
    let run = |recorder: &mut schedlab_trace::Recorder| erased::run(spec, recorder, watch);
    let (first, second, divergence) = schedlab_trace::lockstep(run, run);
    first?;
    second?;
    Ok(divergence.map_or(Determinism::Same, |divergence| Determinism::Differs(Box::new(divergence))))
}
