//! Decisions and how many of them agreed, with an interval that allows for their dependence.
//!
//! One wrong state makes several decisions in a row differ, so decisions close in time are not independent. They are
//! counted in blocks of [`BLOCK`]. With n decisions of which a share p agrees, in B blocks of n_b decisions of which
//! d_b differ, the design effect is
//!
//! ```text
//! deff = B / (B - 1) * sum_b (d_b - (1 - p) n_b)^2 / (n p (1 - p)), at least 1,
//! ```
//!
//! and the interval is Wilson's for n / deff decisions. Where all decisions agree, or none, nothing shows their
//! dependence; it is then assumed to be complete within a block (deff = sum_b n_b^2 / n), and so it is where there is
//! one block.

use schedlab_model::{Nanos, MSEC};

/// The length of a block: several ticks, longer than most waits.
pub const BLOCK: Nanos = 10 * MSEC;

/// A count in time order.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Count {
    pub decisions: u64,
    pub agreed: u64,
    /// The block of the last decision, its number of decisions, and the number of those that differ.
    block: u64,
    current: Block,
    /// Of the earlier blocks.
    sums: Sums,
}

#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Block {
    decisions: f64,
    differing: f64,
}

/// Sums over blocks, from which the variance between blocks follows for any share.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Sums {
    blocks: f64,
    decisions_squared: f64,
    differing_squared: f64,
    product: f64,
}

impl Count {
    /// Adds a decision.
    pub fn add(&mut self, time: Nanos, agreed: bool) {
        let block = time / BLOCK;
        if self.decisions > 0 && block != self.block {
            self.sums = self.sums.with(std::mem::take(&mut self.current));
        }
        self.block = block;
        self.decisions += 1;
        self.agreed += u64::from(agreed);
        self.current.decisions += 1.0;
        self.current.differing += f64::from(u8::from(!agreed));
    }

    /// The share that agrees with its 95% interval; 1 within 0 to 1 if nothing was counted.
    pub fn interval(&self) -> (f64, f64, f64) {
        if self.decisions == 0 {
            return (1.0, 0.0, 1.0);
        }
        let n = self.decisions as f64;
        let share = self.agreed as f64 / n;
        let (low, high) = wilson(share, n / self.design_effect(share));
        (share, low, high)
    }

    fn design_effect(&self, share: f64) -> f64 {
        let (n, Sums { blocks, decisions_squared, differing_squared, product }) =
            (self.decisions as f64, self.sums.with(self.current));
        let binomial = n * share * (1.0 - share);
        if binomial == 0.0 || blocks < 2.0 {
            return decisions_squared / n;
        }
        let q = 1.0 - share;
        let between = differing_squared - 2.0 * q * product + q * q * decisions_squared;
        (blocks / (blocks - 1.0) * between / binomial).max(1.0)
    }
}

impl Sums {
    fn with(self, Block { decisions, differing }: Block) -> Sums {
        Sums {
            blocks: self.blocks + 1.0,
            decisions_squared: self.decisions_squared + decisions * decisions,
            differing_squared: self.differing_squared + differing * differing,
            product: self.product + decisions * differing,
        }
    }
}

/// The 95% Wilson interval of a share among `n` independent decisions.
fn wilson(share: f64, n: f64) -> (f64, f64) {
    let z = 1.959_963_984_540_054_f64;
    let (z2, scale) = (z * z, 1.0 + z * z / n);
    let centre = (share + z2 / (2.0 * n)) / scale;
    let half = z / scale * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(blocks: impl IntoIterator<Item = (u64, u64)>) -> Count {
        let mut count = Count::default();
        for (nth, (agreed, differing)) in blocks.into_iter().enumerate() {
            (0..agreed + differing).for_each(|one| count.add(nth as u64 * BLOCK, one < agreed));
        }
        count
    }

    #[test]
    fn independent_decisions_have_wilsons_interval() {
        // Reference values: Newcombe 1998, 81 of 263 and 0 of 20.
        let (share, low, high) = count((0..263).map(|nth| (u64::from(nth < 81), u64::from(nth >= 81)))).interval();
        assert!((share - 0.3080).abs() < 1e-4 && (low - 0.2553).abs() < 1e-3 && (high - 0.3662).abs() < 1e-3);
        let (_, low, high) = count((0..20).map(|_| (0, 1))).interval();
        assert!(low < 1e-12 && (high - 0.1611).abs() < 1e-4);
        assert_eq!(Count::default().interval(), (1.0, 0.0, 1.0));
    }

    #[test]
    fn decisions_that_differ_together_count_less() {
        let width = |blocks: Vec<(u64, u64)>| {
            let (_, low, high) = count(blocks).interval();
            high - low
        };
        let spread = width(vec![(9, 1); 40]);
        let together = width([vec![(10, 0); 36], vec![(0, 10); 4]].concat());
        assert!(together > 2.5 * spread, "{together} {spread}");
        // 400 decisions in 40 blocks that all agree are 40 observations.
        let (_, low, _) = count(vec![(10, 0); 40]).interval();
        let (_, forty, _) = count(vec![(1, 0); 40]).interval();
        assert!((low - forty).abs() < 1e-12);
        let (_, one, _) = count(vec![(400, 0)]).interval();
        assert!(one < 0.3, "{one}");
    }
}
