//! The decisions recorded so far, with the queues that they were made on, if requested.

use schedlab_model::{CpuId, Nanos};

use crate::decision::Decision;
use crate::looked::Looked;
use crate::queue_view::QueueView;

/// The log of a scheduler. Each decision has at most one view of its queue. The view of a decision outside the fair class
/// is completed after the class has returned.
#[derive(Clone, Default, Debug)]
pub struct Log {
    on: bool,
    views_on: bool,
    looks_on: bool,
    decisions: Vec<Decision>,
    views: Vec<Option<QueueView>>,
    /// For each placement, the index of its decision and the CPUs that it examined.
    looks: Vec<(usize, Vec<Looked>)>,
}

/// A recorded decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// The decision.
    pub decision: Decision,
    /// The CPU's queue before the decision, if recorded, with tasks named by their ids.
    pub queue: Option<QueueView>,
    /// For a placement: the CPUs that it examined, if recorded.
    pub looked: Vec<Looked>,
}

impl Log {
    /// Starts recording; `views`: with the queues, `looks`: with the CPUs that placements examined.
    pub(super) fn switch_on(&mut self, views: bool, looks: bool) {
        (self.on, self.views_on, self.looks_on) = (true, views, looks);
    }

    /// Whether decisions are recorded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether the CPUs that placements examine are recorded.
    #[inline]
    pub(crate) fn looks_on(&self) -> bool {
        self.looks_on
    }

    pub(crate) fn push(&mut self, decision: Decision, view: Option<QueueView>) {
        self.decisions.push(decision);
        if self.views_on {
            self.views.push(view);
        }
    }

    /// Of the decision recorded last.
    pub(crate) fn push_looks(&mut self, looks: Vec<Looked>) {
        self.looks.push((self.decisions.len().saturating_sub(1), looks));
    }

    /// The decisions whose views are not complete, and their CPUs.
    pub(super) fn incomplete(&self) -> Vec<(usize, CpuId)> {
        let missing = |at: &usize| self.views[*at].is_none();
        (0..self.views.len()).filter(missing).map(|at| (at, self.decisions[at].cpu)).collect()
    }

    /// Completes one of them.
    pub(super) fn complete(&mut self, at: usize, view: QueueView) {
        self.views[at] = Some(view);
    }

    /// The decisions, oldest first.
    pub(super) fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Forgets everything recorded so far.
    pub(super) fn clear(&mut self) {
        self.decisions.clear();
        self.views.clear();
        self.looks.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.decisions.len()
    }

    /// Sets the time of the decisions recorded after the first `from` to `now`, whatever clock they were charged by.
    pub(super) fn set_time(&mut self, from: usize, now: Nanos) {
        self.decisions.iter_mut().skip(from).for_each(|decision| decision.now = now);
    }

    /// Everything recorded since the last call.
    pub(super) fn take(&mut self) -> Vec<Recorded> {
        let (mut views, looks) = (std::mem::take(&mut self.views).into_iter(), std::mem::take(&mut self.looks));
        let mut looks = looks.into_iter().peekable();
        let decisions = std::mem::take(&mut self.decisions).into_iter().enumerate();
        let record = |(index, decision)| {
            let looked = looks.next_if(|(of, _)| *of == index).map(|(_, looked)| looked).unwrap_or_default();
            Recorded { decision, queue: views.next().flatten(), looked }
        };
        decisions.map(record).collect()
    }
}
