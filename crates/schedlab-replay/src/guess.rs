//! What a task is assumed to have where the trace does not show its state.

/// Parts of [`WHOLE`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Guess {
    /// Its lag, of the largest that the kernel allows.
    pub lag: i64,
    /// What it has used of its slice, if it is queued.
    pub used: i64,
}

pub const WHOLE: i64 = 1 << 30;

impl Guess {
    pub fn lag(self, limit: i64) -> i64 {
        part(self.lag, limit)
    }

    pub fn used(self, slice: i64) -> i64 {
        part(self.used, slice)
    }

    pub fn bounded(self) -> Guess {
        Guess { lag: self.lag.clamp(-WHOLE, WHOLE), used: self.used.clamp(0, WHOLE) }
    }
}

pub fn part(of_whole: i64, number: i64) -> i64 {
    (i128::from(of_whole) * i128::from(number) / i128::from(WHOLE)) as i64
}
