//! Recording why a decision fell, when somebody asked.

use super::entity::EntityId;
use super::Fair;
use crate::decision::{Decision, During, Verdict};
use crate::features::Feature;
use crate::Resched;
use schedlab_model::{CpuId, Nanos, Pid, TaskId};

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
        let (Verdict::Pick(who) | Verdict::Expire(who) | Verdict::Delay(who)) = verdict else {
            return self.explain_any(rq, now, verdict, rule, feature, compared);
        };
        // Decisions between groups are not told: a record names tasks.
        if who.index() < self.nr_tasks {
            self.explain_any(rq, now, verdict, rule, feature, compared);
        }
    }

    fn explain_any(
        &mut self,
        rq: usize,
        now: Nanos,
        verdict: Verdict,
        rule: &'static str,
        feature: Option<Feature>,
        compared: [(&'static str, i64); 2],
    ) {
        let (cpu, asked) = (self.rqs[rq].cpu, self.rqs[self.root_of(rq)].resched);
        self.record(Decision { now, cpu, verdict, during: During::Other, asked, rule, feature, compared });
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

    /// A tick left the running task alone although others wait.
    #[cold]
    pub(super) fn explain_stay(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        let rq = self.queue_of(EntityId::of(task), cpu.index());
        let se = self.se(EntityId::of(task));
        let ran = (se.sum_exec_runtime - se.prev_sum_exec_runtime) as i64;
        let (key, deadline) = (self.rqs[rq].key(se.vruntime), self.rqs[rq].key(se.deadline));
        let min_granularity = self.config.knobs.min_granularity as i64;
        let (rule, compared) = match () {
            () if self.eevdf && !self.rules.expiry_reschedules => {
                ("still the earliest eligible deadline", [("vruntime", key), ("deadline", deadline)])
            }
            () if self.eevdf => ("slice not used up", [("vruntime", key), ("deadline", deadline)]),
            () if ran < min_granularity => {
                ("ran less than min_granularity", [("ran", ran), ("min_granularity", min_granularity)])
            }
            () => ("slice not used up", [("ran", ran), ("slice", self.slice_of(task) as i64)]),
        };
        self.explain(rq, now, Verdict::Stay(task), rule, None, compared);
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
