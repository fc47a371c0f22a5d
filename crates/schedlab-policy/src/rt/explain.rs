//! Records of the decisions of the class, and of its throttling.

use super::Rt;
use crate::decision::{Action, Class, Decision, During, Function, Pool};
use crate::queue_view::RealTimeView;
use crate::{Core, Resched};
use schedlab_model::{CpuId, Nanos, Pid, TaskId};

impl Rt {
    /// The queued tasks of the class, for people.
    pub fn real_time_view(&self, cpu: CpuId, pid: impl Fn(TaskId) -> Pid) -> Vec<RealTimeView> {
        let view = |task: TaskId| {
            let policy = self.policy(task)?;
            let running = self.curr(cpu) == Some(task);
            let name = if policy.round_robin { "RR" } else { "FIFO" };
            Some(RealTimeView { pid: pid(task), priority: policy.priority, policy: name, running })
        };
        self.queued(cpu).filter_map(view).collect()
    }

    /// `sched_priority`; 0: not of this class.
    fn priority(&self, task: Option<TaskId>) -> i64 {
        task.and_then(|task| self.policy(task)).map_or(0, |policy| i64::from(policy.priority))
    }

    fn against_next(&self, cpu: CpuId, task: TaskId) -> [(&'static str, i64); 2] {
        let next = self.queued(cpu).find(|other| *other != task);
        [("priority", self.priority(Some(task))), ("next priority", self.priority(next))]
    }

    #[inline]
    pub(super) fn explain_pick(&self, core: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) {
        if core.is_recording() {
            let (rule, compared) = ("first of the best priority", self.against_next(cpu, task));
            let decision = Decision::outside(now, cpu, Action::Pick(task), rule, None, compared);
            core.record(Decision { class: Class::RealTime, ..decision });
        }
    }

    /// The tick of a running task; `resched`: the request that follows from it.
    #[inline]
    pub(super) fn explain_tick(&self, core: &mut Core, cpu: CpuId, task: TaskId, resched: Resched, now: Nanos) {
        if core.is_recording() {
            self.record_tick(core, cpu, task, resched, now);
        }
    }

    #[cold]
    fn record_tick(&self, core: &mut Core, cpu: CpuId, task: TaskId, resched: Resched, now: Nanos) {
        if resched == Resched::No && core.nr_running(cpu) < 2 || self.is_throttled(cpu) {
            return;
        }
        let round_robin = self.policy(task).is_some_and(|policy| policy.round_robin);
        let rule = match (resched, round_robin) {
            (Resched::No, true) => "its time slice goes on",
            (Resched::No, false) => "SCHED_FIFO: until it blocks or a better one comes",
            _ => "its time slice is used up, others have its priority",
        };
        let action = if resched == Resched::No { Action::Stay(task) } else { Action::Expire(task) };
        let decision = Decision::outside(now, cpu, action, rule, None, self.against_next(cpu, task));
        core.record(Decision { class: Class::RealTime, during: During::Tick, resched, ..decision });
    }

    /// A task was pushed or pulled.
    pub(super) fn explain_move(&self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId, push: bool, now: Nanos) {
        if core.is_recording() {
            let (rule, decided_by) = match push {
                true => ("waits here, could run there", Function::PushRtTask),
                false => ("waits there, could run here", Function::Usual),
            };
            let left = i64::from(core.nr_running(from));
            let compared = [("priority", self.priority(Some(task))), ("tasks left there", left)];
            let decision = Decision::outside(now, to, Action::Pull(task, from), rule, None, compared);
            core.record(Decision { class: Class::RealTime, decided_by, ..decision });
        }
    }

    /// After anything that may have begun or ended it: whether the class has to leave the CPU to others.
    #[inline]
    pub(super) fn note_limit(&mut self, core: &mut Core, cpu: CpuId, resched: Resched, now: Nanos) {
        if core.is_recording() && self.is_limited(cpu) != self.rqs[cpu.index()].shown_limited {
            self.record_limit(core, cpu, resched, now);
        }
    }

    #[cold]
    fn record_limit(&mut self, core: &mut Core, cpu: CpuId, resched: Resched, now: Nanos) {
        let limited = self.is_limited(cpu);
        self.rqs[cpu.index()].shown_limited = limited;
        let (rule, compared) = self.limit_state(cpu, now);
        let action = if limited { Action::Throttle(Pool::RealTime) } else { Action::Unthrottle(Pool::RealTime) };
        let decision = Decision::outside(now, cpu, action, rule, None, compared);
        core.record(Decision { class: Class::RealTime, resched, ..decision });
    }
}
