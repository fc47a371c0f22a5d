//! `sched_ttwu_pending` (kernel/sched/core.c): a CPU enqueues what other CPUs have put on its wakelist.

use schedlab_model::CpuId;

use super::activate::Activate;
use super::{Context, Effect, Procedure};
use crate::class::ClassList;
use crate::{Sched, WakeKind};

/// `sched_ttwu_pending`, executed on the CPU itself. Tasks that come onto the list meanwhile wait for the next one.
#[derive(Clone, Copy, Debug)]
pub struct SchedTtwuPending {
    cpu: CpuId,
    /// Entries of the list that are done with, and all that were on it at the beginning.
    done: usize,
    all: Option<usize>,
    activate: Option<Activate>,
}

impl SchedTtwuPending {
    /// Of this CPU.
    #[must_use]
    pub fn new(cpu: CpuId) -> Self {
        SchedTtwuPending { cpu, done: 0, all: None, activate: None }
    }

    /// The next task of the list is enqueued.
    fn next<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Option<Activate> {
        let all = *self.all.get_or_insert(sched.wakelist(self.cpu).len());
        if self.done == all {
            sched.finish_wakelist(self.cpu, all);
            (self.done, self.all) = (0, Some(0));
            return None;
        }
        let (task, sync) = sched.wakelist(self.cpu)[self.done];
        self.done += 1;
        let kind = WakeKind::Wakeup { sync };
        let requeued = Activate::requeue(sched, context, task, kind);
        Some(requeued.unwrap_or_else(|| Activate::enqueue(sched, context, task, self.cpu, kind)))
    }
}

impl Procedure for SchedTtwuPending {
    fn resume<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        loop {
            if let Some(activate) = &mut self.activate {
                let effect = activate.resume(sched, context);
                if effect != Effect::Done {
                    return effect;
                }
            }
            self.activate = self.next(sched, context);
            if self.activate.is_none() {
                return Effect::Done;
            }
        }
    }
}
