//! The decisions recorded so far, with the queues that they were made on, if requested.

use schedlab_model::{CpuId, Nanos};

use crate::candidate::CandidateView;
use crate::decision::Decision;
use crate::queue_view::QueueView;

/// The log of a scheduler. Each decision has at most one view of its queue. The view of a decision outside the fair
/// class is completed after the class has returned.
#[derive(Clone, Default, Debug)]
pub struct Log {
    on: bool,
    views_on: bool,
    candidates_on: bool,
    decisions: Vec<Decision>,
    views: Vec<Option<QueueView>>,
    /// For each placement, the index of its decision and the CPUs that it examined.
    candidates: Vec<(usize, Vec<CandidateView>)>,
}

/// A recorded decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// The decision.
    pub decision: Decision,
    /// The CPU's queue before the decision, if recorded, with tasks named by their ids.
    pub queue: Option<QueueView>,
    /// For a placement: the CPUs that it examined, if recorded.
    pub candidates: Vec<CandidateView>,
}

impl Log {
    /// Starts recording; `views`: with the queues, `candidates`: with the CPUs that placements examined.
    pub(crate) fn switch_on(&mut self, views: bool, candidates: bool) {
        (self.on, self.views_on, self.candidates_on) = (true, views, candidates);
    }

    /// Whether decisions are recorded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether the CPUs that placements examine are recorded.
    #[inline]
    pub(crate) fn candidates_on(&self) -> bool {
        self.candidates_on
    }

    pub(crate) fn push(&mut self, decision: Decision, view: Option<QueueView>) {
        self.decisions.push(decision);
        if self.views_on {
            self.views.push(view);
        }
    }

    /// Of the decision recorded last.
    pub(crate) fn push_candidates(&mut self, candidates: Vec<CandidateView>) {
        self.candidates.push((self.decisions.len().saturating_sub(1), candidates));
    }

    /// The decisions whose views are not complete, and their CPUs.
    pub(crate) fn incomplete(&self) -> Vec<(usize, CpuId)> {
        let missing = |at: &usize| self.views[*at].is_none();
        (0..self.views.len()).filter(missing).map(|at| (at, self.decisions[at].cpu)).collect()
    }

    /// Completes one of them.
    pub(crate) fn complete(&mut self, at: usize, view: QueueView) {
        self.views[at] = Some(view);
    }

    /// The decisions, oldest first.
    pub(crate) fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Forgets everything recorded so far.
    pub(crate) fn clear(&mut self) {
        self.decisions.clear();
        self.views.clear();
        self.candidates.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.decisions.len()
    }

    /// Sets the time of the decisions recorded after the first `from` to `now`, whatever clock they were charged by.
    pub(crate) fn set_time(&mut self, from: usize, now: Nanos) {
        self.decisions.iter_mut().skip(from).for_each(|decision| decision.now = now);
    }

    /// Everything recorded since the last call.
    pub(crate) fn take(&mut self) -> Vec<Recorded> {
        let (mut views, candidates) =
            (std::mem::take(&mut self.views).into_iter(), std::mem::take(&mut self.candidates));
        let mut candidates = candidates.into_iter().peekable();
        let decisions = std::mem::take(&mut self.decisions).into_iter().enumerate();
        let record = |(index, decision)| {
            let candidates =
                candidates.next_if(|(of, _)| *of == index).map(|(_, candidates)| candidates).unwrap_or_default();
            Recorded { decision, queue: views.next().flatten(), candidates }
        };
        decisions.map(record).collect()
    }
}
