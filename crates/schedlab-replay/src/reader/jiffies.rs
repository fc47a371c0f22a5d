//! The tick count, where no probe reads it.
//!
//! `jiffies` advances with the time. Other probes show tick counts that are past or present: when a task's flips were
//! last halved (`wakee_flip_decay_ts`), when the part of a queue in its CPU's load was computed (`last_h_load_update`).
//! The one that is furthest ahead is the present count, or a little less.

use schedlab_model::Nanos;

use super::Reader;

impl Reader {
    /// A record shows a tick count that the kernel had reached at `time`.
    pub(super) fn saw_jiffies(&mut self, shown: Option<u64>, time: Nanos) {
        let at_0 = shown.map(|shown| shown.saturating_sub(time / self.kernel.tick));
        self.jiffies_at_0 = self.jiffies_at_0.max(at_0);
    }

    /// The tick count at this time, as far as records have shown one.
    pub(super) fn jiffies(&self, time: Nanos) -> Option<u64> {
        self.jiffies_at_0.map(|at_0| at_0.saturating_add(time / self.kernel.tick))
    }
}
