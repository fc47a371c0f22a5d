//! How hard unknown lags are searched for: bounded by the length of the trace, so that the time of a replay is
//! proportional to it.

/// How many models follow a row while something is unknown.
const MODELS: usize = 128;

/// How many are tried to fill the gaps when some were dropped.
const TRIES: usize = 400;

/// How many are tried where none agrees with a decision; half as many after each time that it was in vain.
const PATIENCE: usize = 3200;

/// Operations that models may follow besides the one that every row has, those of the search included; half as many
/// after each search that was in vain. All recordings of the corpus with lags that the search finds need fewer.
const ALLOWED: u64 = 12_500_000;

/// So many more for each operation of the trace.
const ALLOWED_EACH: u64 = 2;

/// The fewest models that follow a row while something is unknown: as many as each operation allows for.
const FEWEST_MODELS: usize = 1 + ALLOWED_EACH as usize;

/// Operations that all models must be able to follow.
const HORIZON: u64 = 1024;

/// How hard unknown lags are searched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// How many models follow a row while something is unknown.
    pub models: usize,
    /// How many are tried to fill the gaps when some were dropped.
    pub tries: usize,
    /// How many are tried where none agrees with a decision.
    pub patience: usize,
    /// How many operations they may still follow.
    pub(super) allowed: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Effort { models: MODELS, tries: TRIES, patience: PATIENCE, allowed: ALLOWED }
    }
}

impl Effort {
    /// A part of it.
    #[must_use]
    pub fn divided(self, by: usize) -> Effort {
        let Effort { models, tries, patience, allowed } = self;
        Effort { models: models / by, tries: tries / by, patience: patience / by, allowed }
    }

    /// An operation of the trace was followed by so many models.
    pub fn followed_by(&mut self, models: usize) {
        self.allowed += ALLOWED_EACH;
        self.spend(models as u64 - 1);
    }

    /// How many models may follow the next operations: as many as can do so for [`HORIZON`] operations.
    pub fn affordable(&self) -> usize {
        self.models.min((self.allowed / HORIZON) as usize).max(FEWEST_MODELS)
    }

    /// So many operations were followed again.
    pub fn spend(&mut self, operations: u64) {
        self.allowed = self.allowed.saturating_sub(operations);
    }

    /// A search found nothing: what else is searched for is less likely to be found.
    pub fn halve(&mut self) {
        self.allowed /= 2;
    }

    /// Nothing more is tried.
    pub fn is_spent(&self) -> bool {
        self.allowed == 0
    }
}
