//! Runs that reach their sink through a pointer, so that the engine holds one copy of the simulator for all of them.
//!
//! The simulator is compiled anew for every type of sink. Only the run that is judged (`crate::run`) has copies of its
//! own, in which the calls of its sinks are inlined.

use schedlab_sim::{Session, SimError, Watch};
use schedlab_spec::RunSpec;
use schedlab_trace::Sink;

/// A session that is advanced instant by instant.
pub(crate) type ErasedSession<'a> = Session<'a, &'a mut dyn Sink>;

/// Runs one specification, with its guests if it has any.
pub(crate) fn run<W: Watch>(spec: &RunSpec, mut sink: &mut dyn Sink, watch: &W) -> Result<(), SimError> {
    match spec.guests.is_empty() {
        true => schedlab_sim::run(spec, &mut sink, watch).map(|_| ()),
        false => schedlab_sim::run_virtual(spec, &mut sink, watch).map(|_| ()),
    }
}
