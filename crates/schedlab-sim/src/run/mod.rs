//! What all parts of a run share: time, the event queue, the sink, the checkers.

mod context;
mod order;
mod queue;
mod source;
mod state;
mod watch;
mod wheel;

pub use context::Context;
pub use order::Phase;
pub use queue::EventQueue;
pub use source::Source;
pub use state::{Run, LOOK_MAX, LOOK_MIN};
pub use watch::Watch;
