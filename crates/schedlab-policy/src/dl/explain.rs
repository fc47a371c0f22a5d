//! Records of the decisions of the class. Deadlines and runtimes are in ns from the decision on.

use schedlab_model::{CpuId, Nanos, Pid, TaskId};

use super::{rq_clock, Dl};
use crate::decision::{Action, Class, Decision, During, Function, Pool};
use crate::queue_view::DeadlineView;
use crate::{Core, Resched};

impl Dl {
    /// The queued tasks of the class, for people.
    pub fn deadline_view(&self, cpu: CpuId, pid: impl Fn(TaskId) -> Pid) -> Vec<DeadlineView> {
        let view = |task: TaskId| {
            let se = self.tasks[task.index()];
            let running = self.curr(cpu) == Some(task);
            DeadlineView { pid: pid(task), deadline_ns: self.deadline(task), runtime_left_ns: se.runtime, running }
        };
        self.queued(cpu).map(view).collect()
    }

    /// How far the task's deadline is away.
    fn to_deadline(&self, core: &Core, cpu: CpuId, task: TaskId, now: Nanos) -> i64 {
        self.tasks[task.index()].deadline as i64 - rq_clock(core, cpu, now) as i64
    }

    #[inline]
    pub(super) fn explain_pick(&self, core: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) {
        if core.is_recording() {
            let next = self.queued(cpu).find(|other| *other != task);
            let other = next.map_or(("", 0), |next| ("next deadline in", self.to_deadline(core, cpu, next, now)));
            let compared = [("deadline in", self.to_deadline(core, cpu, task, now)), other];
            let decision = Decision::outside(now, cpu, Action::Pick(task), "earliest deadline", None, compared);
            core.record(Decision { class: Class::Deadline, ..decision });
        }
    }

    #[inline]
    pub(super) fn explain_preempt(
        &self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        rule: &'static str,
        resched: Resched,
        now: Nanos,
    ) {
        let Some(curr) = self.curr(cpu) else { return };
        if core.is_recording() {
            let action = if resched == Resched::No { Action::Keep(task) } else { Action::Preempt(task) };
            let compared = [
                ("deadline in", self.to_deadline(core, cpu, task, now)),
                ("running deadline in", self.to_deadline(core, cpu, curr, now)),
            ];
            let decision = Decision::outside(now, cpu, action, rule, None, compared);
            core.record(Decision { class: Class::Deadline, during: During::Wakeup, resched, ..decision });
        }
    }

    /// The task has used up its runtime, or yielded the rest.
    #[inline]
    pub(super) fn explain_throttle(&self, core: &mut Core, cpu: CpuId, task: TaskId, resched: Resched, now: Nanos) {
        if core.is_recording() {
            let se = self.tasks[task.index()];
            let (throttled, runtime) = (se.dl_throttled, se.runtime);
            let rule = match (throttled, se.dl_yielded) {
                (true, true) => "it has yielded the rest of its runtime",
                (true, false) => "its runtime is used up",
                (false, _) => "its runtime was used up, but its next period has begun",
            };
            let next = se.policy.map_or(0, |dl| se.dl_next_period(dl) as i64 - rq_clock(core, cpu, now) as i64);
            let next = if throttled { next } else { self.to_deadline(core, cpu, task, now) };
            let name = if throttled { "next period in" } else { "deadline in" };
            let action = if throttled { Action::Throttle(Pool::Deadline(task)) } else { Action::Stay(task) };
            let compared = [("runtime left", runtime), (name, next)];
            let decision = Decision::outside(now, cpu, action, rule, None, compared);
            core.record(Decision { class: Class::Deadline, resched, ..decision });
        }
    }

    /// The task's next period has begun.
    #[inline]
    pub(super) fn explain_replenish(&self, core: &mut Core, cpu: CpuId, task: TaskId, resched: Resched, now: Nanos) {
        if core.is_recording() {
            let runtime = self.tasks[task.index()].runtime;
            let compared = [("runtime", runtime), ("deadline in", self.to_deadline(core, cpu, task, now))];
            let action = Action::Unthrottle(Pool::Deadline(task));
            let decision = Decision::outside(now, cpu, action, "its next period has begun", None, compared);
            core.record(Decision { class: Class::Deadline, resched, ..decision });
        }
    }

    /// A task was pushed or pulled.
    #[inline]
    pub(super) fn explain_move(&self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId, push: bool, now: Nanos) {
        if core.is_recording() {
            let (rule, decided_by) = match push {
                true => ("waits here, could run there", Function::PushDlTask),
                false => ("waits there, could run here", Function::Usual),
            };
            let left = i64::from(core.nr_running(from));
            let compared = [("deadline in", self.to_deadline(core, to, task, now)), ("tasks left there", left)];
            let decision = Decision::outside(now, to, Action::Pull(task, from), rule, None, compared);
            core.record(Decision { class: Class::Deadline, decided_by, ..decision });
        }
    }
}
