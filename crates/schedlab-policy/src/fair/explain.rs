//! Records why a decision was made, on request.
//!
//! Every level of the hierarchy decides separately and is recorded separately: a pick is one record per level from the
//! root down, the last of which names the task.

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use super::queues::Queues;
use crate::decision::{Action, Decision, Function};
use crate::features::Feature;
use schedlab_model::{rarely, Nanos, Pid, TaskId, Vruntime};

/// Why a decision was made.
#[derive(Clone, Copy)]
pub(super) struct Reason {
    pub rule: &'static str,
    /// The feature that made the difference.
    pub feature: Option<Feature>,
    pub compared: Compared,
}

/// The numbers of a decision.
pub(super) type Compared = [(&'static str, i64); 2];

impl Queues {
    /// Whether decisions are recorded. Callers test it first, so that a run without costs one branch.
    #[inline]
    pub fn is_recording(&self) -> bool {
        rarely(self.log.decisions.is_some())
    }

    /// Appends a decision, and the CPU's queue as it stands if that is asked for too.
    #[cold]
    pub fn record(&mut self, decision: Decision) {
        let Some(decisions) = &mut self.log.decisions else { return };
        decisions.push(decision);
        if self.log.views.is_some() {
            let view = self.view().queue_view(decision.cpu, |task: TaskId| task.0 as Pid);
            self.log.views.get_or_insert_default().push(view);
        }
    }

    /// Records a decision on queue `rq`.
    #[cold]
    pub fn explain(&mut self, rq: usize, now: Nanos, action: Action, reason: Reason) {
        self.explain_by(rq, now, action, EntityId::NIL, reason);
    }

    /// The same about a task that `entity` stands for on that queue.
    #[cold]
    pub fn explain_by(&mut self, rq: usize, now: Nanos, action: Action, entity: EntityId, reason: Reason) {
        let decision = self.decision(rq, now, action, entity, reason);
        self.record(decision);
    }

    fn decision(&self, rq: usize, now: Nanos, action: Action, entity: EntityId, reason: Reason) -> Decision {
        let (q, root) = (&self.arena.rqs[rq], &self.arena.rqs[self.arena.root_of(rq)]);
        let (cpu, queue, resched, by) = (q.cpu, q.group, root.resched, self.arena.stands_for(entity));
        let decision = Decision::outside(now, cpu, action, reason.rule, reason.feature, reason.compared);
        Decision { queue, by, resched, ..decision }
    }

    /// An entity was picked.
    #[cold]
    pub fn explain_pick(&mut self, rq: usize, picked: EntityId, reason: Reason, now: Nanos) {
        let group = self.arena.stands_for(picked);
        self.explain(rq, now, group.map_or(Action::Pick(picked.task_id()), Action::PickGroup), reason);
    }

    /// The turn of the running task ended, because its own or a group's entity has run enough.
    #[cold]
    pub fn explain_end(&mut self, rq: usize, curr: EntityId, decided_by: Function, reason: Reason, now: Nanos) {
        // While a task is being put there is no current one below: the turn is over already.
        if let Some(task) = self.arena.leaf(self.arena.root_of(rq)).task() {
            let decision = self.decision(rq, now, Action::Expire(task), curr, reason);
            self.record(Decision { decided_by, ..decision });
        }
    }

    /// A tick let the running task continue although others wait: at every level where they do.
    #[cold]
    pub fn explain_stay(&mut self, task: TaskId, now: Nanos) {
        let mut id = EntityId::of(task);
        while id.is_some() {
            let rq = self.arena.competes_on(self.arena.entities[id].rq());
            if self.arena.rqs[rq].nr_competing(&self.config) > 1 {
                let reason = self.reason_to_stay(rq, id);
                self.explain_by(rq, now, Action::Stay(task), id, reason);
            }
            id = self.arena.competitor_above(id);
        }
    }

    fn reason_to_stay(&self, rq: usize, id: EntityId) -> Reason {
        let (q, se) = (&self.arena.rqs[rq], &self.arena.entities[id]);
        let ran = (se.sum_exec_runtime - se.prev_sum_exec_runtime) as i64;
        let keys = [("vruntime", q.key(se.vruntime)), ("deadline", q.key(se.deadline))];
        let min_granularity = self.config.knobs.min_granularity as i64;
        let (rule, compared) = match self.config.is_eevdf() {
            true if !self.config.rules.expiry_reschedules => ("still the earliest eligible deadline", keys),
            true => ("slice not used up", keys),
            false if ran < min_granularity => {
                ("ran less than min_granularity", [("ran", ran), ("min_granularity", min_granularity)])
            }
            false => {
                let slice = self.arena.sched_slice(&self.config, rq, id) as i64;
                ("slice not used up", [("ran", ran), ("slice", slice)])
            }
        };
        Reason { rule, feature: None, compared }
    }
}

impl CfsRq {
    /// Two entities' vruntimes as distances from the queue's zero point, for a decision's numbers; an entity that is
    /// missing, or the first one again, has none.
    #[cold]
    pub(super) fn vruntimes(&self, entities: &Entities, named: [(&'static str, EntityId); 2]) -> Compared {
        self.keys(entities, named, |se| se.vruntime)
    }

    /// Two entities' deadlines likewise.
    #[cold]
    pub(super) fn deadlines(&self, entities: &Entities, named: [(&'static str, EntityId); 2]) -> Compared {
        self.keys(entities, named, |se| se.deadline)
    }

    fn keys(
        &self,
        entities: &Entities,
        [a, b]: [(&'static str, EntityId); 2],
        of: impl Fn(&Entity) -> Vruntime,
    ) -> Compared {
        let number = |(name, id): (&'static str, EntityId)| match id.some() {
            Some(id) => (name, self.key(of(&entities[id]))),
            None => ("", 0),
        };
        [number(a), if a.1 == b.1 { ("", 0) } else { number(b) }]
    }
}
