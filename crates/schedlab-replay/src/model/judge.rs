//! Comparing a decision of the model with the kernel's, and which decisions can be judged.

use schedlab_model::{CpuId, Pid, TaskId};
use schedlab_policy::fair::GroupId;
use schedlab_policy::Resched;

use super::Model;
use crate::decision::{At, Baseline, Decision, DecisionKind, Outcome};
use crate::operation::{Cause, Flag};
use crate::report::Disagreement;
use crate::unjudged::Unjudged;

/// The kernel's decision and the model's, in words.
struct Difference {
    kernel: String,
    model: String,
}

impl Model {
    /// A pick: `next` is the kernel's. Contested if at least two tasks are runnable. `certain`: they were when it was
    /// made.
    pub(super) fn judge_pick(&mut self, cpu: CpuId, next: Pid, certain: bool) {
        let runnable = self.runnable(cpu);
        let picked = self.sched.pick_task(cpu, self.charged_until(cpu)).map(|id| self.pid(id));
        if runnable.len() < 2 {
            return;
        }
        let at = At { time: self.now, cpu, nice: self.nice(next) };
        if !(certain && runnable.iter().all(|id| self.known(*id))) {
            let why = if certain { Unjudged::State } else { Unjudged::Time };
            return self.unjudged(DecisionKind::Pick, at, why);
        }
        let baseline = self.counts.then(|| self.pick_baseline(cpu, &runnable, next));
        let runs = |pid: Option<Pid>| pid.map_or_else(|| "idle".to_owned(), |pid| format!("run {pid}"));
        let agrees = picked == Some(next);
        let difference = (!agrees).then(|| Difference { kernel: runs(Some(next)), model: runs(picked) });
        self.judged(DecisionKind::Pick, at, baseline, difference);
    }

    /// What simple rules would have picked.
    fn pick_baseline(&self, cpu: CpuId, runnable: &[TaskId], next: Pid) -> Baseline {
        let fifo = runnable.iter().copied().min_by_key(|id| self.queued_at(cpu, *id)).map(|id| self.pid(id));
        // The running task comes last here as well.
        let lifo = runnable.iter().copied().max_by_key(|id| self.queued_at(cpu, *id) % u64::MAX).map(|id| self.pid(id));
        let keep = self.sched.curr(cpu).filter(|curr| runnable.contains(curr)).map(|id| self.pid(id)).or(fifo);
        let lowest = runnable.iter().map(|id| self.pid(*id)).min();
        Baseline::Pick {
            fifo: fifo == Some(next),
            lifo: lifo == Some(next),
            keep: keep == Some(next),
            lowest_pid: lowest == Some(next),
        }
    }

    /// Whether the running task is rescheduled. `task`: the wakee, or the running task itself.
    pub(super) fn judge_preemption(&mut self, kind: DecisionKind, cpu: CpuId, task: TaskId, resched: bool, flag: Flag) {
        let Some(curr) = self.sched.curr(cpu) else { return };
        let at = At { time: self.now, cpu, nice: self.fair().entity(task).nice };
        let pending = self.cpus[cpu.index()].pending.take();
        self.judge_flag(kind, at, curr, task, resched, flag);
        self.excuse(pending);
    }

    fn judge_flag(&mut self, kind: DecisionKind, at: At, curr: TaskId, task: TaskId, resched: bool, flag: Flag) {
        let level = self.fair().need_resched(at.cpu);
        let queue = &mut self.cpus[at.cpu.index()];
        if flag.before || queue.preempted != Resched::No {
            if flag.cause == Cause::Own {
                queue.preempted = Resched::No;
            }
            return self.not_asked(kind, at);
        }
        let Some(after) = flag.after else { return self.unjudged(kind, at, Unjudged::Hidden) };
        if !(self.known(curr) && self.known(task)) {
            return self.unjudged(kind, at, Unjudged::State);
        }
        if flag.is_shared() && resched {
            self.cpus[at.cpu.index()].preempted = level.max(Resched::Lazy);
        }
        if flag.is_shared() && flag.cause == Cause::Other {
            return self.unjudged(kind, at, Unjudged::Shared);
        }
        let word = |preempts: bool| if preempts { "preempt" } else { "keep" }.to_owned();
        let difference = (resched != after).then(|| Difference { kernel: word(after), model: word(resched) });
        self.judged(kind, at, Some(Baseline::Preemption { kept: !after }), difference);
        if flag.is_shared() && !resched {
            self.cpus[at.cpu.index()].pending = self.decisions.pop();
        }
    }

    /// `schedule()` clears need-resched: no further decision shares it.
    pub(super) fn end_series(&mut self, cpu: CpuId) {
        let queue = &mut self.cpus[cpu.index()];
        queue.preempted = Resched::No;
        // Last, so that models without such a decision count the same decisions before it.
        self.decisions.extend(queue.pending.take());
    }

    /// A timer that may have been the hrtick.
    pub(super) fn unjudged_timer(&mut self, cpu: CpuId, curr: TaskId, flag: Flag) {
        let at = At { time: self.now, cpu, nice: self.fair().entity(curr).nice };
        match flag.before {
            true => self.not_asked(DecisionKind::Tick, at),
            false => self.unjudged(DecisionKind::Tick, at, Unjudged::Timer),
        }
        self.excuse_pending(cpu);
    }

    pub(super) fn excuse_pending(&mut self, cpu: CpuId) {
        let pending = self.cpus[cpu.index()].pending.take();
        self.excuse(pending);
    }

    /// A later decision may have set the flag of this one as well.
    fn excuse(&mut self, pending: Option<Decision>) {
        let outcome = Outcome::Unjudged(Unjudged::Shared);
        self.decisions.extend(pending.map(|pending| Decision {
            outcome,
            baselines: None,
            disagreement: None,
            ..pending
        }));
    }

    /// EEVDF ends slices in `update_curr`; CFS only at the tick.
    pub(super) fn judge_update(&mut self, cpu: CpuId, flag: Flag) {
        let contested = self.eevdf && self.fair().rq(cpu).h_nr_running > 1;
        if let (true, Some(curr)) = (contested, self.sched.curr(cpu)) {
            let resched = self.fair().need_resched(cpu) != Resched::No;
            self.judge_preemption(DecisionKind::Update, cpu, curr, resched, flag);
        }
    }

    /// The tasks that a pick chooses from.
    pub(super) fn runnable(&self, cpu: CpuId) -> Vec<TaskId> {
        let awake = |id: &TaskId| self.sched.on_rq(*id) && !self.fair().entity(*id).sched_delayed;
        self.fair().cfs_tasks(cpu).filter(awake).collect()
    }

    /// The running task comes last.
    fn queued_at(&self, cpu: CpuId, id: TaskId) -> u64 {
        match self.sched.curr(cpu) == Some(id) {
            true => u64::MAX,
            false => self.tasks.of(id).map_or(u64::MAX, |task| task.queued_at),
        }
    }

    fn nice(&self, pid: Pid) -> i8 {
        self.task(pid).map_or(0, |id| self.fair().entity(id).nice)
    }

    fn not_asked(&mut self, kind: DecisionKind, at: At) {
        self.decided(kind, at, Outcome::NotAsked);
    }

    fn unjudged(&mut self, kind: DecisionKind, at: At, why: Unjudged) {
        self.decided(kind, at, Outcome::Unjudged(why));
    }

    fn decided(&mut self, kind: DecisionKind, at: At, outcome: Outcome) {
        self.decisions.push(Decision { kind, at, outcome, baselines: None, disagreement: None });
    }

    fn judged(&mut self, kind: DecisionKind, at: At, baselines: Option<Baseline>, difference: Option<Difference>) {
        let outcome = if difference.is_some() { Outcome::Differs } else { Outcome::Agrees };
        let described = difference.filter(|_| self.tally.describes_disagreement(self.now));
        let disagreement = described.map(|difference| Box::new(self.disagreement(kind, at.cpu, difference)));
        self.decisions.push(Decision { kind, at, outcome, baselines, disagreement });
    }

    fn disagreement(&self, kind: DecisionKind, cpu: CpuId, difference: Difference) -> Disagreement {
        let reason = self.sched.decisions().last().copied();
        Disagreement {
            time_ns: self.now,
            cpu: cpu.0,
            kind: kind.name(),
            kernel: difference.kernel,
            model: difference.model,
            rule: reason.map(|reason| reason.rule),
            feature: reason.and_then(|reason| reason.feature).map(|feature| feature.info().name),
            compared: reason.map_or_else(Vec::new, |reason| reason.numbers()),
            min_vruntime: self.fair().rq(cpu).min_vruntime.0,
            avg_vruntime: self.eevdf.then(|| self.fair().view().avg_vruntime(GroupId::ROOT, cpu).0),
            queue: self.queue(cpu),
        }
    }
}
