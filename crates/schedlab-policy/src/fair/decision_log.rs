//! The decisions recorded so far.

use crate::decision::{Decision, During};
use crate::queue_view::QueueView;
use crate::Resched;

/// The decisions recorded so far.
#[derive(Clone, Debug, Default)]
pub struct DecisionLog {
    /// Decisions with their reasons; `None` while they are not recorded. The caller that switched recording on drains
    /// them.
    pub decisions: Option<Vec<Decision>>,
    /// The CPU's queue as it stood at each decision, if asked for; tasks by their index.
    pub views: Option<Vec<QueueView>>,
}

impl DecisionLog {
    /// How many decisions have been recorded; [`DecisionLog::set_during`] takes the number.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.decisions.as_ref().map_or(0, Vec::len)
    }

    /// The decisions from number `from` on were made in this call, which left the CPU with this request. Whether there
    /// were any.
    #[cold]
    pub(super) fn set_during(&mut self, from: usize, during: During, resched: Resched) -> bool {
        let since = self.decisions.as_mut().and_then(|log| log.get_mut(from..)).unwrap_or_default();
        since.iter_mut().for_each(|decision| (decision.during, decision.resched) = (during, resched));
        !since.is_empty()
    }
}
