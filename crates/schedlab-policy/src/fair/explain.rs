//! Recording why a decision fell, when somebody asked.
//!
//! Every level of the hierarchy decides for itself and is recorded so: a pick is one record per level from the root
//! down, the last of which names the task.

use super::entity::EntityId;
use super::Fair;
use crate::decision::{Decision, During, Verdict};
use crate::features::Feature;
use crate::group_id::GroupId;
use crate::Resched;
use schedlab_model::{Nanos, Pid, TaskId};

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
        compared: Compared,
    ) {
        self.explain_by(rq, now, verdict, EntityId::NIL, (rule, feature), compared);
    }

    /// The same about a task that `entity` stands for.
    #[cold]
    pub(super) fn explain_by(
        &mut self,
        rq: usize,
        now: Nanos,
        verdict: Verdict,
        entity: EntityId,
        (rule, feature): (&'static str, Option<Feature>),
        compared: Compared,
    ) {
        let (cpu, queue, asked) = (self.rqs[rq].cpu, self.rqs[rq].group, self.rqs[self.root_of(rq)].resched);
        let by = self.stands_for(entity);
        let decision = Decision::outside(now, cpu, verdict, rule, feature, compared);
        self.record(Decision { queue, by, asked, ..decision });
    }

    /// The group an entity stands for.
    pub(super) fn stands_for(&self, id: EntityId) -> Option<GroupId> {
        let below = id.is_some().then(|| self.se(id).my_q).flatten()?;
        Some(self.rqs[below as usize].group)
    }

    /// An entity was picked.
    #[cold]
    pub(super) fn explain_pick(
        &mut self,
        rq: usize,
        picked: EntityId,
        rule: (&'static str, Option<Feature>),
        compared: Compared,
        now: Nanos,
    ) {
        let verdict = self.stands_for(picked).map_or(Verdict::Pick(picked.task_id()), Verdict::PickGroup);
        self.explain_by(rq, now, verdict, EntityId::NIL, rule, compared);
    }

    /// The turn of the running task ended, because its own or a group's entity has run enough.
    #[cold]
    pub(super) fn explain_end(
        &mut self,
        rq: usize,
        curr: EntityId,
        rule: (&'static str, Option<Feature>),
        compared: Compared,
        now: Nanos,
    ) {
        // While a task is being put nobody is current below: the turn is over already.
        if let Some(task) = self.leaf(self.root_of(rq)).task() {
            self.explain_by(rq, now, Verdict::Expire(task), curr, rule, compared);
        }
    }

    /// Appends a decision, and the CPU's queue as it stands if that is asked for too.
    #[cold]
    pub(crate) fn record(&mut self, decision: Decision) {
        let Some(log) = &mut self.decisions else { return };
        log.push(decision);
        if self.views.is_some() {
            let view = self.queue_view(decision.cpu, |task: TaskId| task.0 as Pid);
            self.views.get_or_insert_default().push(view);
        }
    }

    /// How many decisions have been recorded; [`Fair::fell_during`] takes it.
    #[inline]
    pub(super) fn recorded(&self) -> usize {
        self.decisions.as_ref().map_or(0, Vec::len)
    }

    /// The decisions since `from` fell in this call, which left the CPU with its present wish. Whether there were any.
    #[cold]
    pub(super) fn fell_during(&mut self, from: usize, during: During, asked: Resched) -> bool {
        let since = self.decisions.as_mut().and_then(|log| log.get_mut(from..)).unwrap_or_default();
        since.iter_mut().for_each(|decision| (decision.during, decision.asked) = (during, asked));
        !since.is_empty()
    }

    /// A tick left the running task alone although others wait: at every level where they do.
    #[cold]
    pub(super) fn explain_stay(&mut self, task: TaskId, now: Nanos) {
        let mut id = EntityId::of(task);
        while id.is_some() {
            let rq = self.se(id).cfs_rq as usize;
            if self.rqs[rq].nr_running > 1 {
                let (rule, compared) = self.why_it_stays(rq, id);
                self.explain_by(rq, now, Verdict::Stay(task), id, (rule, None), compared);
            }
            id = self.se(id).parent;
        }
    }

    fn why_it_stays(&self, rq: usize, id: EntityId) -> (&'static str, Compared) {
        let se = self.se(id);
        let ran = (se.sum_exec_runtime - se.prev_sum_exec_runtime) as i64;
        let (key, deadline) = (self.rqs[rq].key(se.vruntime), self.rqs[rq].key(se.deadline));
        let min_granularity = self.config.knobs.min_granularity as i64;
        match () {
            () if self.eevdf && !self.rules.expiry_reschedules => {
                ("still the earliest eligible deadline", [("vruntime", key), ("deadline", deadline)])
            }
            () if self.eevdf => ("slice not used up", [("vruntime", key), ("deadline", deadline)]),
            () if ran < min_granularity => {
                ("ran less than min_granularity", [("ran", ran), ("min_granularity", min_granularity)])
            }
            () => ("slice not used up", [("ran", ran), ("slice", self.sched_slice(rq, id) as i64)]),
        }
    }

    /// Two entities' vruntimes as distances from the queue's minimum, for a decision's numbers; an entity that is missing,
    /// or the first one again, has none.
    #[cold]
    pub(super) fn vruntimes(&self, rq: usize, a: (&'static str, EntityId), b: (&'static str, EntityId)) -> Compared {
        named(a, b, |id| self.rqs[rq].key(self.se(id).vruntime))
    }

    /// Two entities' deadlines likewise.
    #[cold]
    pub(super) fn deadlines(&self, rq: usize, a: (&'static str, EntityId), b: (&'static str, EntityId)) -> Compared {
        named(a, b, |id| self.rqs[rq].key(self.se(id).deadline))
    }
}

fn named(a: (&'static str, EntityId), b: (&'static str, EntityId), key: impl Fn(EntityId) -> i64) -> Compared {
    let number = |(name, id): (&'static str, EntityId)| if id.is_some() { (name, key(id)) } else { ("", 0) };
    [number(a), if a.1 == b.1 { ("", 0) } else { number(b) }]
}

/// The numbers of a decision.
pub(super) type Compared = [(&'static str, i64); 2];
