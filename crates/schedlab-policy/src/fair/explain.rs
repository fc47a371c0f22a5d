//! Recording why a decision fell, when somebody asked.

use super::entity::EntityId;
use super::Fair;
use crate::decision::{Decision, Verdict};
use crate::features::Feature;
use schedlab_model::Nanos;

impl Fair {
    /// Appends a decision. Callers test `decisions.is_some()` first, so that a run without costs one branch.
    #[cold]
    pub(super) fn explain(
        &mut self,
        rq: usize,
        now: Nanos,
        verdict: Verdict,
        rule: &'static str,
        feature: Option<Feature>,
        compared: [(&'static str, i64); 2],
    ) {
        let cpu = self.rqs[rq].cpu;
        if let Some(log) = &mut self.decisions {
            log.push(Decision { now, cpu, verdict, rule, feature, compared });
        }
    }

    /// Two entities' vruntimes as distances from the queue's minimum, for a decision's numbers.
    #[cold]
    pub(super) fn vruntimes(&self, rq: usize, a: (&'static str, EntityId), b: (&'static str, EntityId)) -> Compared {
        let key = |id: EntityId| if id.is_some() { self.rqs[rq].key(self.se(id).vruntime) } else { 0 };
        [(a.0, key(a.1)), (b.0, key(b.1))]
    }

    /// Two entities' deadlines likewise.
    #[cold]
    pub(super) fn deadlines(&self, rq: usize, a: (&'static str, EntityId), b: (&'static str, EntityId)) -> Compared {
        let key = |id: EntityId| if id.is_some() { self.rqs[rq].key(self.se(id).deadline) } else { 0 };
        [(a.0, key(a.1)), (b.0, key(b.1))]
    }
}

/// The numbers of a decision.
pub(super) type Compared = [(&'static str, i64); 2];
