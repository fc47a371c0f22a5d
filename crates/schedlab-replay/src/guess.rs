//! What a task is assumed to have where the trace does not show its state.

/// Parts of [`WHOLE`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Guess {
    /// Its lag, of the largest that the kernel allows a sleeping task.
    pub lag: i64,
    /// What it has used of its slice, if it is queued.
    pub used: i64,
    /// It is queued.
    pub queued: bool,
}

pub const WHOLE: i64 = 1 << 30;

/// The same of a queued task. `update_entity_lag` bounds a lag to twice the slice, at least a tick, where a task is
/// dequeued; a task that stays queued may have overrun its slice by a tick: slice and tick together are at most one and
/// a half of that bound.
pub const QUEUED_WHOLE: i64 = WHOLE + WHOLE / 2;

impl Guess {
    pub fn lag(self, limit: i64) -> i64 {
        part(self.lag, limit)
    }

    pub fn used(self, slice: i64) -> i64 {
        part(self.used, slice)
    }

    pub fn bounded(self) -> Guess {
        let limit = self.limit();
        Guess { lag: self.lag.clamp(-limit, limit), used: self.used.clamp(0, WHOLE), ..self }
    }

    /// The largest lag that is guessed.
    pub fn limit(self) -> i64 {
        if self.queued {
            QUEUED_WHOLE
        } else {
            WHOLE
        }
    }
}

pub fn part(of_whole: i64, number: i64) -> i64 {
    (i128::from(of_whole) * i128::from(number) / i128::from(WHOLE)) as i64
}
