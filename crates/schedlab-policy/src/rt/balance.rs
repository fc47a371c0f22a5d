//! Which CPU a task of the class runs on: at wakeup, pushed away, pulled in (`select_task_rq_rt`, `find_lowest_rq`,
//! `push_rt_task`, `pull_rt_task`, `cpupri_find`; kernel/sched/rt.c 6.1).
//!
//! The aim is that the n best tasks of the machine run on its n CPUs. Left out: pushes by interrupt (with
//! RT_PUSH_IPI an IPI makes other CPUs push; here the CPU pulls itself), migration-disabled tasks, capacities.

use super::{Rt, MAX_RT_PRIO};
use crate::class::SchedClass;
use crate::core::types::Moves;
use crate::{Core, Resched};
use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

impl Rt {
    /// `select_task_rq_rt`: the last CPU unless a task at least as good runs there, or one that cannot go away.
    pub(super) fn select_task_rq_rt(&self, core: &mut Core, task: TaskId, this: CpuId) -> (CpuId, &'static str) {
        let prev = core.cpu_of(task);
        let prio = self.prio(task);
        let stays = self.curr(prev).is_none_or(|curr| !core.is_pinned(curr) && self.prio(curr) > prio);
        if stays {
            return (prev, "last CPU");
        }
        match self.find_lowest_rq(core, task, this) {
            Some(cpu) if prio < self.highest_prio(cpu) => (cpu, "lowest priority CPU"),
            _ => (prev, "last CPU, none is lower"),
        }
    }

    /// Whether the running task may go elsewhere and the wakee may not.
    pub(super) fn makes_room(&self, core: &Core, wakee: TaskId, curr: TaskId) -> bool {
        let free = |task: TaskId| !core.is_pinned(task) && self.cpupri_find(core, task, self.prio(task)).is_some();
        free(curr) && !free(wakee)
    }

    /// `cpupri_find`: the allowed CPUs whose best real-time task is worst, if it is worse than `prio`. CPUs with
    /// deadline tasks are out of reach (CPUPRI_HIGHER).
    fn cpupri_find(&self, core: &Core, task: TaskId, prio: u8) -> Option<CpuMask> {
        let mut found = (prio, CpuMask::default());
        let free = |cpu: &CpuId| core.is_cpu_allowed(task, *cpu) && !core.higher_queued(*cpu, self.id());
        for cpu in (0..self.rqs.len() as u32).map(CpuId).filter(free) {
            let there = self.highest_prio(cpu);
            if there > found.0 {
                found = (there, CpuMask::default());
            }
            if there == found.0 && there > prio {
                found.1.set(cpu);
            }
        }
        (!found.1.is_empty()).then_some(found.1)
    }

    /// `find_lowest_rq`: the nearest CPU on which the task would run at once; `this`: the executing one.
    fn find_lowest_rq(&self, core: &mut Core, task: TaskId, this: CpuId) -> Option<CpuId> {
        if core.is_pinned(task) {
            return None;
        }
        let lowest = self.cpupri_find(core, task, self.prio(task))?;
        core.nearest_to(task, &lowest, this)
    }

    /// `push_rt_tasks`: tasks that wait behind the running one go where they can run at once.
    pub(super) fn push_rt_tasks(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        while self.push_rt_task(core, cpu, now, &mut moves) {}
        moves
    }

    /// `pick_next_pushable_task` and `pick_highest_pushable_task`: the first task of `rt.pushable_tasks` that suits.
    /// The list holds the tasks that wait on the CPU and may run elsewhere, in order of priority; equal ones in the
    /// order in which they began to wait. A preempted task is added behind its equals, although it runs before them.
    fn pick_pushable_task(&self, core: &Core, cpu: CpuId, suits: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let curr = self.curr(cpu);
        let waiting = self.queued(cpu).filter(|task| Some(*task) != curr && !core.is_pinned(*task) && suits(*task));
        waiting.min_by_key(|task| (self.prio(*task), self.tasks[task.index()].pushable))
    }

    /// `push_rt_task`; whether to try again.
    fn push_rt_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos, moves: &mut Moves) -> bool {
        let curr = self.curr(cpu);
        let Some(task) = self.pick_pushable_task(core, cpu, |_| true) else { return false };
        if !core.higher_runs(cpu, self.id()) && curr.is_none_or(|curr| self.prio(task) < self.prio(curr)) {
            moves.ask(cpu, Resched::Full);
            return false;
        }
        let target = self.find_lowest_rq(core, task, cpu);
        let Some(target) = target.filter(|to| *to != cpu && self.prio(task) < self.highest_prio(*to)) else {
            return false;
        };
        self.move_rt_task(core, task, cpu, target, now, moves);
        self.explain_move(core, task, cpu, target, true, now);
        moves.ask(target, Resched::Full);
        true
    }

    /// `pull_rt_task`: fetches tasks that are better than what is queued here and wait elsewhere.
    fn pull_rt_task(&mut self, core: &mut Core, this: CpuId, now: Nanos, moves: &mut Moves) {
        if !core.is_active(this) {
            return;
        }
        for src in (0..self.rqs.len() as u32).map(CpuId).filter(|src| *src != this) {
            let curr = self.curr(src);
            let Some(task) = self.pick_pushable_task(core, src, |task| core.allows(task, this)) else { continue };
            let prio = self.prio(task);
            // A better one than the running task has just woken and will run there.
            let about_to_run =
                !core.higher_runs(src, self.id()) && prio < curr.map_or(MAX_RT_PRIO, |curr| self.prio(curr));
            if prio < self.highest_prio(this) && !about_to_run {
                self.move_rt_task(core, task, src, this, now, moves);
                self.explain_move(core, task, src, this, false, now);
            }
        }
    }

    fn move_rt_task(&mut self, core: &mut Core, task: TaskId, from: CpuId, to: CpuId, now: Nanos, moves: &mut Moves) {
        self.dequeue_task_rt(core, from, task, now);
        core.set_task_cpu(task, to);
        self.enqueue_task_rt(core, to, task, false, now);
        moves.moved.push((task, from));
    }

    /// `balance_rt`, before a pick: a CPU whose real-time task has left or is outranked tries to pull another one.
    pub(super) fn balance_rt(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        // need_pull_rt_task of a deadline task that has left the CPU to the classes below.
        let higher_left = core.higher_runs(cpu, self.id()) && !core.higher_queued(cpu, self.id());
        if higher_left || self.curr(cpu).is_some_and(|prev| self.highest_prio(cpu) > self.prio(prev)) {
            self.pull_rt_task(core, cpu, now, &mut moves);
        }
        moves
    }

    /// `task_woken_rt`, after the wakeup's preemption check: a task that would wait behind the running one is pushed.
    pub(super) fn task_woken_rt(&mut self, core: &mut Core, task: TaskId, need_resched: bool, now: Nanos) -> Moves {
        let cpu = core.cpu_of(task);
        if core.higher_runs(cpu, self.id()) && !need_resched && self.on_rq(task) && !core.is_pinned(task) {
            return self.push_rt_tasks(core, cpu, now);
        }
        let (Some(curr), false) = (self.curr(cpu), need_resched) else { return Moves::default() };
        let waits = core.is_pinned(curr) || self.prio(curr) <= self.prio(task);
        if self.on_rq(task) && curr != task && waits && !core.is_pinned(task) {
            return self.push_rt_tasks(core, cpu, now);
        }
        Moves::default()
    }
}
