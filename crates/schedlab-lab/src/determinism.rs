//! The same specification run twice, event against event.

use schedlab_sim::{SimError, Watch};
use schedlab_spec::RunSpec;
use schedlab_trace::Divergence;

/// What comparing two runs of one specification showed.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// Equal, event for event.
    Same,
    /// They part at an event.
    Parted(Box<Divergence>),
}

/// Runs the specification twice at the same time and compares every event.
pub fn check_determinism<W: Watch + Sync>(spec: &RunSpec, watch: &W) -> Result<Verdict, SimError> {
    let go = |recorder: &mut schedlab_trace::Recorder| schedlab_sim::run(spec, recorder, watch).map(|_| ());
    let (first, second, divergence) = schedlab_trace::lockstep(go, go);
    first?;
    second?;
    Ok(divergence.map_or(Verdict::Same, |divergence| Verdict::Parted(Box::new(divergence))))
}
