//! Comparing a decision of the model with the kernel's, and what counts as one.

use schedlab_model::{CpuId, Pid, TaskId};
use schedlab_policy::Resched;

use super::Model;
use crate::operation::Flag;
use crate::report::Disagreement;
use crate::tally::{Kind, Unjudged, Where};
use crate::verdict::{Beside, Outcome, Verdict};

impl Model {
    /// A pick: `next` is the kernel's. Contested if at least two tasks compete. `sure`: they did when it was made.
    pub(super) fn judge_pick(&mut self, cpu: CpuId, next: Pid, sure: bool) {
        let rivals = self.rivals(cpu);
        let contested = rivals.len() > 1;
        let (known, nice) = (rivals.iter().all(|id| self.known(*id)), self.nice(next));
        let fifo = rivals.iter().copied().min_by_key(|id| self.joined(cpu, *id)).map(|id| self.pid(id));
        let lowest = rivals.iter().map(|id| self.pid(*id)).min();
        let picked = self.fair.pick_task(cpu, self.charged(cpu)).map(|id| self.pid(id));
        if !contested {
            return;
        }
        let at = Where { time: self.now, cpu, nice };
        if !(known && sure) {
            let why = if sure { Unjudged::State } else { Unjudged::Time };
            return self.unjudged(Kind::Pick, at, why);
        }
        let beside = Beside::Pick { fifo: fifo == Some(next), lowest_pid: lowest == Some(next) };
        let agrees = picked == Some(next);
        let differs = (!agrees).then(|| (self.runs(Some(next)), self.runs(picked)));
        self.judged(Kind::Pick, at, beside, differs);
    }

    /// Whether the running task must go. `who`: the wakee, or the running task itself.
    pub(super) fn judge_preemption(&mut self, kind: Kind, cpu: CpuId, who: TaskId, resched: bool, flag: Flag) {
        let Some(curr) = self.fair.curr(cpu) else { return };
        let at = Where { time: self.now, cpu, nice: self.fair.entity(who).nice };
        let preempted = &mut self.cpus[cpu.index()].preempted;
        if flag.before || *preempted {
            *preempted &= flag.shared;
            return self.not_asked(kind, at);
        }
        let Some(after) = flag.after else { return self.unjudged(kind, at, Unjudged::Hidden) };
        if !(self.known(curr) && self.known(who)) {
            return self.unjudged(kind, at, Unjudged::State);
        }
        if flag.shared && after {
            if !resched {
                return self.unjudged(kind, at, Unjudged::Shared);
            }
            self.cpus[cpu.index()].preempted = true;
        }
        let word = |preempts: bool| if preempts { "preempt" } else { "keep" }.to_owned();
        let differs = (resched != after).then(|| (word(after), word(resched)));
        self.judged(kind, at, Beside::Preemption { kept: !after }, differs);
    }

    /// A timer that may have been a slice's own.
    pub(super) fn unjudged_timer(&mut self, cpu: CpuId, curr: TaskId, flag: Flag) {
        let at = Where { time: self.now, cpu, nice: self.fair.entity(curr).nice };
        match flag.before {
            true => self.not_asked(Kind::Tick, at),
            false => self.unjudged(Kind::Tick, at, Unjudged::Timer),
        }
    }

    /// EEVDF ends slices at any accounting; CFS only at the tick.
    pub(super) fn judge_update(&mut self, cpu: CpuId, flag: Flag) {
        let contested = self.eevdf && self.fair.rq(cpu).h_nr_running > 1;
        if let (true, Some(curr)) = (contested, self.fair.curr(cpu)) {
            let resched = self.fair.need_resched(cpu) != Resched::No;
            self.judge_preemption(Kind::Update, cpu, curr, resched, flag);
        }
    }

    /// Everyone who could run now.
    pub(super) fn rivals(&self, cpu: CpuId) -> Vec<TaskId> {
        let awake = |id: &TaskId| self.fair.entity(*id).on_rq && !self.fair.entity(*id).sched_delayed;
        self.fair.cfs_tasks(cpu).filter(awake).collect()
    }

    fn joined(&self, cpu: CpuId, id: TaskId) -> u64 {
        match self.fair.curr(cpu) == Some(id) {
            true => u64::MAX,
            false => self.members.get(&self.pid(id)).map_or(u64::MAX, |member| member.joined),
        }
    }

    fn nice(&self, pid: Pid) -> i8 {
        self.id(pid).map_or(0, |id| self.fair.entity(id).nice)
    }

    fn runs(&self, pid: Option<Pid>) -> String {
        pid.map_or_else(|| "idle".to_owned(), |pid| format!("run {pid}"))
    }

    fn not_asked(&mut self, kind: Kind, at: Where) {
        self.verdicts.push(Verdict { kind, at, outcome: Outcome::NotAsked, beside: None, disagreement: None });
    }

    fn unjudged(&mut self, kind: Kind, at: Where, why: Unjudged) {
        self.verdicts.push(Verdict { kind, at, outcome: Outcome::Unjudged(why), beside: None, disagreement: None });
    }

    /// `differs`: the kernel's decision and the model's in words, where they are not the same.
    fn judged(&mut self, kind: Kind, at: Where, beside: Beside, differs: Option<(String, String)>) {
        let outcome = if differs.is_some() { Outcome::Differs } else { Outcome::Agrees };
        let told = differs.filter(|_| self.tally.wants_disagreement(self.now));
        let disagreement = told.map(|(kernel, model)| Box::new(self.disagreement(kind, at.cpu, kernel, model)));
        self.verdicts.push(Verdict { kind, at, outcome, beside: Some(beside), disagreement });
    }

    fn disagreement(&self, kind: Kind, cpu: CpuId, kernel: String, model: String) -> Disagreement {
        let reason = self.fair.decisions.as_ref().and_then(|all| all.last().copied());
        Disagreement {
            time_ns: self.now,
            cpu: cpu.0,
            kind: kind.name(),
            kernel,
            model,
            rule: reason.map(|reason| reason.rule),
            feature: reason.and_then(|reason| reason.feature).map(|feature| feature.info().name),
            compared: reason.map_or_else(Vec::new, |reason| reason.numbers()),
            min_vruntime: self.fair.rq(cpu).min_vruntime.0,
            avg_vruntime: self.eevdf.then(|| self.fair.avg_vruntime(cpu).0),
            queue: self.queue(cpu),
        }
    }
}
