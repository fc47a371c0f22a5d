//! The time that a task loses to refills while it is on a CPU, spread over its work: the formula is in warmth.rs.

/// What is left of a task's debt while it is on a CPU, in units of work.
#[derive(Clone, Copy, Default, Debug)]
pub struct Refill {
    /// Time that it still has to lose.
    pub debt: u64,
    /// Work over which this time is spread.
    pub touch: u64,
}

impl Refill {
    /// What the debt adds to the next `work`, rounded up.
    #[inline]
    pub fn of(&self, work: u64) -> u64 {
        if self.touch <= work {
            return self.debt;
        }
        part(self.debt, work, self.touch, true)
    }

    /// How much of the `work` left is done while the CPU executes for `done`.
    #[inline]
    pub fn progress(&mut self, done: u64, work: u64) -> u64 {
        if done >= work + self.of(work) {
            let paid = self.of(work);
            self.pay(work, paid);
            return work;
        }
        let whole = self.touch + self.debt;
        if done >= whole {
            let work = done - self.debt;
            *self = Refill::default();
            return work;
        }
        let worked = part(self.touch, done, whole, false);
        self.pay(worked, done - worked);
        worked
    }

    fn pay(&mut self, work: u64, paid: u64) {
        if work >= self.touch {
            *self = Refill::default();
        } else {
            self.touch -= work;
            self.debt = self.debt.saturating_sub(paid);
        }
    }
}

/// amount * of / whole, for `of` below `whole`.
pub fn part(amount: u64, of: u64, whole: u64, up: bool) -> u64 {
    let product = u128::from(amount) * u128::from(of);
    let whole = u128::from(whole.max(1));
    (if up { product.div_ceil(whole) } else { product / whole }) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_debt_is_spread_over_one_pass_of_the_set() {
        let refill = Refill { debt: 300, touch: 100 };
        assert_eq!([0, 1, 50, 100, 1000].map(|work| refill.of(work)), [0, 3, 150, 300, 300]);
    }

    proptest! {
        /// However the time is divided, work and debt are spent completely, and neither of them too early.
        #[test]
        fn pieces_of_time_add_up(
            debt in 0u64..1 << 40,
            touch in 1u64..1 << 40,
            work in 0u64..1 << 40,
            pieces in prop::collection::vec(0u64..1 << 38, 0..50),
        ) {
            let mut refill = Refill { debt, touch };
            let whole = work + refill.of(work);
            let (mut left, mut spent) = (work, 0);
            for piece in pieces {
                let piece = piece.min(left + refill.of(left));
                left -= refill.progress(piece, left);
                spent += piece;
            }
            let rest = left + refill.of(left);
            // Each piece rounds by less than two units, of which a nanosecond has 1024.
            prop_assert!((spent + rest).abs_diff(whole) <= 100, "{} of {whole}", spent + rest);
            prop_assert!(refill.debt <= debt && refill.touch <= touch && left <= work);
        }
    }
}
