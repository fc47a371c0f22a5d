//! Which CPU a task of the class runs on: at wakeup, pushed away, pulled in (`select_task_rq_dl`, `find_later_rq`,
//! `push_dl_task`, `pull_dl_task`, kernel/sched/deadline.c 6.12; `cpudl_find`).
//!
//! The aim is global EDF: the tasks with the m earliest deadlines run on the m CPUs. Left out: capacities, CPUs that go
//! offline, and that in 6.1 a CPU pushes only while it has two tasks of the class.

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

use super::Dl;
use crate::class::SchedClass;
use crate::core::types::Moves;
use crate::flags::{Dequeue, Enqueue};
use crate::{Core, Resched};

impl Dl {
    /// `dl_entity_preempt`.
    pub(super) fn dl_entity_preempt(&self, a: TaskId, b: TaskId) -> bool {
        self.tasks[a.index()].deadline < self.tasks[b.index()].deadline
    }

    /// The running task keeps its CPU from a task with this deadline: it is earlier, or cannot go elsewhere.
    fn holds(&self, core: &Core, curr: TaskId, task: TaskId) -> bool {
        core.is_pinned(curr) || !self.dl_entity_preempt(task, curr)
    }

    /// `select_task_rq_dl`: the last CPU, unless a deadline task runs there and keeps it. Deadlines are those before
    /// the wakeup rule.
    pub(super) fn select_task_rq_dl(&self, core: &mut Core, task: TaskId, this: CpuId) -> (CpuId, &'static str) {
        let cpu = core.cpu_of(task);
        let Some(curr) = self.curr(cpu).filter(|curr| self.holds(core, *curr, task)) else { return (cpu, "last CPU") };
        debug_assert_ne!(curr, task);
        match self.find_later_rq(core, task, this) {
            Some(target) if self.dl_task_is_earliest_deadline(task, target) => (target, "CPU with a later deadline"),
            _ => (cpu, "last CPU, none has a later deadline"),
        }
    }

    /// `dl_task_is_earliest_deadline`.
    fn dl_task_is_earliest_deadline(&self, task: TaskId, cpu: CpuId) -> bool {
        let earliest = self.rqs[cpu.index()].root.first();
        earliest.is_none_or(|(deadline, _)| self.tasks[task.index()].deadline < deadline)
    }

    /// `cpudl_find`: the allowed CPUs without deadline tasks, or else the one with the latest deadline, if that is
    /// later.
    pub(super) fn cpudl_find(&self, core: &Core, task: TaskId, free: bool) -> Option<CpuMask> {
        let allowed = |cpu: &CpuId| core.allows(task, *cpu);
        let later = CpuMask::from_iter(self.cpudl.free_cpus().iter().filter(allowed));
        if free && !later.is_empty() {
            return Some(later);
        }
        let (deadline, cpu) = self.cpudl.maximum()?;
        (allowed(&cpu) && self.tasks[task.index()].deadline < deadline).then(|| CpuMask::from_iter([cpu]))
    }

    /// `find_later_rq`: the nearest CPU on which the task would run at once; `this`: the executing one.
    fn find_later_rq(&self, core: &mut Core, task: TaskId, this: CpuId) -> Option<CpuId> {
        if core.is_pinned(task) {
            return None;
        }
        let later = self.cpudl_find(core, task, true)?;
        core.nearest_to(task, &later, this)
    }

    /// `push_dl_tasks`: tasks that wait behind the running one go where they can run at once.
    pub(super) fn push_dl_tasks(&mut self, core: &mut Core, cpu: CpuId, now: Nanos, moves: &mut Moves) {
        while self.push_dl_task(core, cpu, cpu, now, moves) {}
    }

    /// `push_dl_task`, executed by CPU `this`; whether to try again.
    pub(super) fn push_dl_task(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        this: CpuId,
        now: Nanos,
        moves: &mut Moves,
    ) -> bool {
        let Some((_, task)) = self.rqs[cpu.index()].pushable_dl_tasks.first() else { return false };
        let curr = self.curr(cpu);
        if curr.is_some_and(|curr| self.dl_entity_preempt(task, curr) && !core.is_pinned(curr)) {
            moves.ask(cpu, Resched::Full);
            return false;
        }
        let later = self.find_later_rq(core, task, this);
        let Some(later) = later.filter(|to| *to != cpu && self.dl_task_is_earliest_deadline(task, *to)) else {
            return false;
        };
        self.move_dl_task(core, task, cpu, later, now, moves);
        self.explain_move(core, task, cpu, later, true, now);
        moves.ask(later, Resched::Full);
        true
    }

    /// `balance_dl`: a CPU whose deadline task has left its queue tries to pull another one.
    pub(super) fn balance_dl(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        if self.curr(cpu).is_some_and(|prev| !self.tasks[prev.index()].queued) {
            self.pull_dl_task(core, cpu, now, &mut moves);
        }
        moves
    }

    /// `pull_dl_task`: fetches tasks that would run here and wait elsewhere.
    fn pull_dl_task(&mut self, core: &mut Core, this: CpuId, now: Nanos, moves: &mut Moves) {
        let mut dmin = Nanos::MAX;
        for src in (0..self.rqs.len() as u32).map(CpuId).filter(|src| *src != this) {
            let waiting = &self.rqs[src.index()].pushable_dl_tasks;
            if self.rqs[src.index()].root.len() <= 1 || waiting.len() == 0 {
                continue;
            }
            let Some(task) = waiting.iter().find(|task| core.allows(*task, this)) else { continue };
            let deadline = self.tasks[task.index()].deadline;
            // One with an earlier deadline than the running task has just woken and will run there.
            let about_to_run = self.curr(src).is_some_and(|curr| self.dl_entity_preempt(task, curr));
            if deadline < dmin && self.dl_task_is_earliest_deadline(task, this) && !about_to_run {
                self.move_dl_task(core, task, src, this, now, moves);
                self.explain_move(core, task, src, this, false, now);
                dmin = deadline;
            }
        }
        if dmin != Nanos::MAX {
            moves.ask(this, Resched::Full);
        }
    }

    fn move_dl_task(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId, now: Nanos, moves: &mut Moves) {
        // dequeue_task_dl charges the running task, which may throttle it.
        let resched = self.update_curr_dl(core, from, now);
        moves.ask(from, resched);
        let out = Dequeue { migrating: true, ..Dequeue::default() };
        self.dequeue_task(core, from, task, out, now);
        core.set_task_cpu(task, to);
        self.enqueue_task(core, to, task, Enqueue { migrated: true, ..Enqueue::default() }, now);
        moves.moved.push((task, from));
    }

    /// `task_woken_dl`, after the wakeup's preemption check: a task that would wait behind the running one is pushed.
    pub(super) fn task_woken_dl(&mut self, core: &mut Core, task: TaskId, need_resched: bool, now: Nanos) -> Moves {
        let (cpu, mut moves) = (core.cpu_of(task), Moves::default());
        let Some(curr) = self.curr(cpu).filter(|curr| *curr != task && !need_resched) else { return moves };
        if !core.is_pinned(task) && self.holds(core, curr, task) {
            self.push_dl_tasks(core, cpu, now, &mut moves);
        }
        moves
    }
}
