//! What the slice-end timer (HRTICK) of a CPU should do.

use schedlab_model::Nanos;

/// What the timer should do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hrtick {
    /// Nothing else is runnable: no timer.
    Off,
    /// Fire after so long, then call [`Fair::hrtick_expired`](crate::fair::Fair::hrtick_expired).
    After(Nanos),
    /// The slice is over already: reschedule.
    Now,
}
