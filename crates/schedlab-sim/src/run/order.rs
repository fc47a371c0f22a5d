//! The order of events: by time, rank, phase and sequence.

use schedlab_model::{Nanos, Ties};

/// What kind of event; events of one instant are handled in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Phase {
    /// The run's own marks: start of a task, end of the warm-up, end of the run.
    Control = 0,
    /// High-resolution timers.
    Timer = 1,
    /// The scheduler tick.
    Tick = 2,
    /// Inter-processor interrupts.
    Ipi = 3,
    /// A CPU leaves an idle state.
    IdleExit = 4,
    /// The running task's current segment ends.
    Segment = 5,
}

/// Time, rank, phase and sequence in one number, so that one comparison orders two events.
pub(super) type Key = u128;

/// Later than every event.
pub(super) const NEVER: Key = Key::MAX;

const SEQUENCE_BITS: u32 = 48;
const PHASE_BITS: u32 = 64 - Ties::BITS - SEQUENCE_BITS;

#[inline]
pub(super) fn key(time: Nanos, rank: u16, phase: Phase, sequence: u64) -> Key {
    let order = u64::from(rank) << PHASE_BITS | phase as u64;
    (Key::from(time) << 64) | Key::from(order << SEQUENCE_BITS | sequence)
}

#[inline]
pub(super) fn time_of(key: Key) -> Nanos {
    (key >> 64) as Nanos
}
