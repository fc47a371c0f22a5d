//! An observer of a run from outside: it is called with the simulated time, and may stop the run.

use std::sync::atomic::{AtomicBool, Ordering};

use schedlab_model::Nanos;

/// Watches a run. A flag is the simplest: it stops the run when it is set.
pub trait Watch {
    /// Called every few thousand events with the simulated time. If it returns true, the run stops.
    fn stops(&self, now: Nanos) -> bool;
}

impl Watch for AtomicBool {
    fn stops(&self, _: Nanos) -> bool {
        self.load(Ordering::Relaxed)
    }
}
