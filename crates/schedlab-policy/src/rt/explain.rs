//! Recording what the real-time class decided, and what kept it from running, when somebody asked.

use crate::decision::{Class, Decision, During, Pool, Verdict, PUSHED};
use crate::fair::RealTimeView;
use crate::{Resched, Sched};
use schedlab_model::{CpuId, Nanos, Pid, TaskId};

type Compared = [(&'static str, i64); 2];

impl Sched {
    fn record_rt(&mut self, class: Class, decision: Decision) {
        self.fair.record(Decision { class, ..decision });
        let tasks = self.real_time_view(decision.cpu, |task| task.0 as Pid);
        if let Some(view) = self.fair.views.as_mut().and_then(|views| views.last_mut()) {
            view.real_time = tasks;
        }
    }

    /// The queued tasks of the class, for people.
    pub fn real_time_view(&self, cpu: CpuId, pid: impl Fn(TaskId) -> Pid) -> Vec<RealTimeView> {
        let view = |task: TaskId| {
            let policy = self.rt.policy(task)?;
            let running = self.rt.curr(cpu) == Some(task);
            let name = if policy.round_robin { "RR" } else { "FIFO" };
            Some(RealTimeView { pid: pid(task), priority: policy.priority, policy: name, running })
        };
        self.rt.queued(cpu).filter_map(view).collect()
    }

    /// `sched_priority`; 0: not of this class.
    fn rt_priority(&self, task: Option<TaskId>) -> i64 {
        task.and_then(|task| self.rt.policy(task)).map_or(0, |policy| i64::from(policy.priority))
    }

    #[cold]
    pub(super) fn explain_rt_pick(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        let next = self.rt.queued(cpu).find(|other| *other != task);
        let compared = [("priority", self.rt_priority(Some(task))), ("next priority", self.rt_priority(next))];
        let rule = "first of the best priority";
        self.record_rt(Class::RealTime, Decision::outside(now, cpu, Verdict::Pick(task), rule, None, compared));
    }

    #[cold]
    pub(super) fn explain_rt_preempt(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        (class, rule): (Class, &'static str),
        asked: Resched,
        now: Nanos,
    ) {
        let verdict = if asked == Resched::No { Verdict::Keep(task) } else { Verdict::Preempt(task) };
        let running = self.rt_priority(self.rt.curr(cpu));
        let compared = [("priority", self.rt_priority(Some(task))), ("running priority", running)];
        let decision = Decision::outside(now, cpu, verdict, rule, None, compared);
        self.record_rt(class, Decision { during: During::Wakeup, asked, ..decision });
    }

    /// The tick of a running real-time task; `asked`: it must go.
    #[cold]
    pub(super) fn explain_rt_tick(&mut self, cpu: CpuId, task: TaskId, asked: Resched, now: Nanos) {
        if asked == Resched::No && self.nr_running(cpu) < 2 || self.rt.is_throttled(cpu) {
            return;
        }
        let round_robin = self.rt.policy(task).is_some_and(|policy| policy.round_robin);
        let rule = match (asked, round_robin) {
            (Resched::No, true) => "its time slice goes on",
            (Resched::No, false) => "SCHED_FIFO: until it blocks or a better one comes",
            _ => "its time slice is used up, others have its priority",
        };
        let verdict = if asked == Resched::No { Verdict::Stay(task) } else { Verdict::Expire(task) };
        let next = self.rt.queued(cpu).find(|other| *other != task);
        let compared = [("priority", self.rt_priority(Some(task))), ("next priority", self.rt_priority(next))];
        let decision = Decision::outside(now, cpu, verdict, rule, None, compared);
        self.record_rt(Class::RealTime, Decision { during: During::Tick, asked, ..decision });
    }

    /// A task was pushed or pulled.
    #[cold]
    pub(super) fn explain_rt_move(&mut self, task: TaskId, from: CpuId, to: CpuId, pushed: bool, now: Nanos) {
        let rule = if pushed { PUSHED } else { "waits there, could run here" };
        let compared =
            [("priority", self.rt_priority(Some(task))), ("tasks left there", i64::from(self.nr_running(from)))];
        self.record_rt(Class::RealTime, Decision::outside(now, to, Verdict::Pull(task, from), rule, None, compared));
    }

    /// After anything that may have begun or ended it: whether the class has to leave the CPU to others.
    #[inline]
    pub(crate) fn note_rt_limit(&mut self, cpu: CpuId, asked: Resched, now: Nanos) {
        if self.fair.decisions.is_some() && self.rt.is_limited(cpu) != self.rt_limited[cpu.index()] {
            self.explain_rt_limit(cpu, asked, now);
        }
    }

    #[cold]
    fn explain_rt_limit(&mut self, cpu: CpuId, asked: Resched, now: Nanos) {
        let limited = self.rt.is_limited(cpu);
        self.rt_limited[cpu.index()] = limited;
        let (rule, compared): (_, Compared) = self.rt.limit_state(cpu, now);
        let verdict = if limited { Verdict::Throttle(Pool::RealTime) } else { Verdict::Unthrottle(Pool::RealTime) };
        let decision = Decision::outside(now, cpu, verdict, rule, None, compared);
        self.record_rt(Class::RealTime, Decision { asked, ..decision });
    }
}
