//! What a model says of one decision of the kernel's, before it is counted.

use crate::report::Disagreement;
use crate::tally::{Kind, Tally, Unjudged, Where};

/// A decision, judged or not.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub kind: Kind,
    pub at: Where,
    pub outcome: Outcome,
    /// What simple rules would have said, where it was judged.
    pub beside: Option<Beside>,
    /// The difference, where it is to be told.
    pub disagreement: Option<Box<Disagreement>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Agrees,
    Differs,
    Unjudged(Unjudged),
    /// The flag was set already: the kernel made no decision.
    NotAsked,
}

/// Whether rules without a scheduler agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beside {
    Pick { fifo: bool, lowest_pid: bool },
    Preemption { kept: bool },
}

impl Verdict {
    pub fn count(self, tally: &mut Tally) {
        let agrees = match self.outcome {
            Outcome::Unjudged(why) => return tally.unjudged(self.kind, self.at, why),
            Outcome::NotAsked => return tally.not_asked(self.at),
            Outcome::Agrees => true,
            Outcome::Differs => false,
        };
        match self.beside {
            Some(Beside::Pick { fifo, lowest_pid }) => tally.baselines(self.at, fifo, lowest_pid),
            Some(Beside::Preemption { kept }) => tally.never_preempts(self.at, kept),
            None => {}
        }
        tally.judged(self.kind, self.at, agrees);
        tally.disagreements.extend(self.disagreement.map(|told| *told));
    }
}
