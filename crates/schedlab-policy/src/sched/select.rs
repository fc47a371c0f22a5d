//! The CPU that a task is placed on (`select_task_rq`, kernel/sched/core.c): its class selects one, and affinity may
//! override it.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{Sched, Selection, TaskAttr, Tested, WakeKind};
use crate::class::ClassList;
use crate::decision::{Action, Class, Decision, Function};
use crate::features::Feature;
use crate::sched::wakeup_request::Wakeup;
use crate::version::placement::RemoteQueue;

impl<L: ClassList> Sched<L> {
    /// `select_task_rq`: the CPU for `task`. `waker_cpu` is the CPU that executes the call.
    pub fn select_task_rq(&mut self, task: TaskId, waker_cpu: CpuId, kind: WakeKind, now: Nanos) -> Selection {
        let sync = kind == WakeKind::Wakeup { sync: true };
        self.select_task_rq_for(Wakeup { task, waker_cpu, sync, here: false, in_task: true }, kind, now)
    }

    /// The same for a wakeup with all that is known of it.
    pub fn select_task_rq_for(&mut self, wakeup: Wakeup, kind: WakeKind, now: Nanos) -> Selection {
        let Wakeup { task, waker_cpu, here, in_task, .. } = wakeup;
        let mut tested = Tested::new(waker_cpu, self.core.log.candidates_on()).asking(self.core.queried());
        (tested.here, tested.in_task) = (here, in_task);
        let exiting = self.curr(waker_cpu).is_some_and(|waker| self.core.tasks[waker.index()].exiting);
        let kind = if exiting { kind.without_sync() } else { kind };
        // `sched_exec` calls the class directly.
        let allowed = self.core.tasks[task.index()].affinity.as_ref().filter(|_| kind != WakeKind::Exec);
        let (mut cpu, mut rule) = match allowed.filter(|mask| mask.count() == 1).and_then(|mask| mask.lowest()) {
            Some(only) => {
                tested.function = Function::SelectTaskRq;
                (only, "only allowed CPU")
            }
            None => self.class_of(task).select_task_rq(task, kind, &mut tested, now),
        };
        if kind == WakeKind::Exec && !self.core.is_active(cpu) {
            (cpu, rule) = (self.cpu_of(task), "the choice is not active");
        } else if !self.core.is_cpu_allowed(task, cpu) {
            (cpu, rule) = (self.select_fallback_rq(task, now), "not allowed on the choice");
            (tested.function, tested.feature) = (Function::SelectFallbackRq, None);
        }
        if self.core.is_recording() {
            self.explain_placement(task, (cpu, rule), &mut tested, now);
        }
        Selection { cpu, tested: tested.counts, scans: tested.scans, hypercalls: tested.hypercalls(), rule }
    }

    /// `select_fallback_rq`: an active CPU of the last CPU's node that the task may use, or else any such CPU. If there
    /// is none, the task may use every CPU from then on (`cpuset_cpus_allowed_fallback`).
    pub fn select_fallback_rq(&mut self, task: TaskId, now: Nanos) -> CpuId {
        let (active, state) = (self.core.topology.all(), &self.core.tasks[task.index()]);
        let allowed = state.affinity.as_ref().map_or(*active, |mask| mask.and(active));
        let near = allowed.and(self.core.topology.node(state.cpu)).lowest();
        if let Some(cpu) = near.or_else(|| allowed.lowest()) {
            return cpu;
        }
        let any = active.lowest().unwrap_or(state.cpu);
        self.core.tasks[task.index()].affinity = None;
        self.class_of(task).set_cpus_allowed(task, now);
        any
    }

    #[cold]
    fn explain_placement(&mut self, task: TaskId, (cpu, rule): (CpuId, &'static str), tested: &mut Tested, now: Nanos) {
        let prev = self.core.cpu_of(task);
        let compared = [("last CPU", i64::from(prev.0)), ("waker's CPU", i64::from(tested.from.0))];
        let action = Action::Place(task, cpu);
        let class = match self.core.attr(task) {
            TaskAttr { dl: Some(_), .. } => Class::Deadline,
            TaskAttr { rt: Some(_), .. } => Class::RealTime,
            _ => Class::Fair,
        };
        let decision = Decision::outside(now, cpu, action, rule, tested.feature, compared);
        self.core.record(Decision { class, decided_by: tested.function, ..decision });
        if let Some(views) = tested.take_views() {
            self.core.log.push_candidates(views);
        }
        self.complete_views();
    }

    /// `ttwu_queue_cond`: whether the wakeup goes through the target's wakelist (and an IPI), so that the target
    /// enqueues it itself. `on_cpu`: the task has not left that CPU yet, so no CPU was selected.
    #[must_use]
    pub fn ttwu_queue_cond(&self, task: TaskId, waker_cpu: CpuId, target: CpuId, on_cpu: bool) -> bool {
        let core = &self.core;
        if !core.features.has(Feature::TtwuQueue) {
            return false;
        }
        let (other_cache, others) = (!core.topology.share_llc(waker_cpu, target), core.nr_running(target));
        let queues = match core.rules.remote_queue {
            RemoteQueue::OtherCache => other_cache && !on_cpu,
            RemoteQueue::OrLeaving => other_cache || (on_cpu && others <= 1),
            RemoteQueue::OrEmpty => other_cache || (target != waker_cpu && others == 0),
        };
        queues && core.is_cpu_allowed(task, target)
    }
}
