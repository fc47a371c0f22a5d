//! Which lags are tried: drawn at random, the same ones in every run.

use schedlab_model::{stream, Stream};

use crate::guess::{part, Guess, WHOLE};

pub(super) struct Dice(Stream);

impl Dice {
    pub(super) fn new() -> Self {
        Dice(stream(0, "lags"))
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.below(end.max(1) as u64) as usize
    }

    fn within(&mut self, from: i64, to: i64) -> i64 {
        from + self.0.below((to - from).max(1) as u64) as i64
    }

    /// No lag, as most sleepers have.
    pub(super) fn none(&mut self, queued: bool) -> Guess {
        Guess { lag: 0, used: self.within(0, WHOLE), queued }
    }

    /// The `nth` of so many models that share the range out; the ends first. A queued task's wider range is left to the
    /// search.
    pub(super) fn some(&mut self, nth: usize, models: usize, queued: bool) -> Guess {
        let step = 2 * WHOLE / models as i64;
        let lag = match nth {
            1 => WHOLE,
            2 => -WHOLE,
            _ => (nth as i64 * step - WHOLE + self.within(0, step)).clamp(-WHOLE, WHOLE),
        };
        Guess { lag, used: self.within(0, WHOLE), queued }
    }

    /// Guesses like `one`, changed in one place: to nothing, to anything, or by a distance of any size.
    pub(super) fn change(&mut self, one: &[Guess]) -> Option<Vec<Guess>> {
        let mut guesses = one.to_vec();
        let nth = self.below(guesses.len());
        let guess = guesses.get_mut(nth)?;
        let near = WHOLE >> self.below(24);
        match self.below(8) {
            0 => guess.lag = 0,
            1 => guess.lag = self.within(-guess.limit(), guess.limit()),
            2 => guess.used += self.within(-near, near),
            _ => guess.lag += self.within(-near, near),
        }
        *guess = guess.bounded();
        Some(guesses)
    }

    /// Guesses like `one`, all changed together the way by which two others differ: what is known of lags binds them to
    /// each other more than it bounds any of them.
    pub(super) fn shift(&mut self, one: &[Guess], a: &[Guess], b: &[Guess]) -> Option<Vec<Guess>> {
        let much = self.within(-WHOLE, WHOLE);
        let moved = |one: i64, a: i64, b: i64| one + part(much, b - a);
        let all = one.iter().zip(a.iter().zip(b));
        let guesses = all.map(|(one, (a, b))| Guess {
            lag: moved(one.lag, a.lag, b.lag),
            used: moved(one.used, a.used, b.used),
            queued: one.queued,
        });
        (a != b && a.len() == one.len()).then(|| guesses.map(Guess::bounded).collect())
    }
}
