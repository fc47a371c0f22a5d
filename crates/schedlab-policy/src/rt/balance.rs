//! Which CPU a task of the class runs on: at wakeup, pushed away, pulled in (`select_task_rq_rt`, `find_lowest_rq`,
//! `push_rt_task`, `pull_rt_task`, `cpupri_find`; kernel/sched/rt.c 6.1).
//!
//! The aim is that the n best tasks of the machine run on its n CPUs. Left out: pushes by interrupt (RT_PUSH_IPI tells
//! other CPUs to push; here the CPU pulls itself), migration-disabled tasks, capacities.

use super::MAX_RT_PRIO;
use crate::sched::types::Moves;
use crate::{Resched, Sched};
use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

impl Sched {
    /// `select_task_rq_rt`: the last CPU unless a task at least as good runs there, or one that cannot go away.
    pub(crate) fn select_task_rq_rt(&mut self, task: TaskId, this: CpuId) -> (CpuId, &'static str) {
        let prev = self.cpu_of(task);
        let prio = self.rt.prio(task);
        let stays = self.rt.curr(prev).is_none_or(|curr| !self.is_pinned(curr) && self.rt.prio(curr) > prio);
        if stays {
            return (prev, "last CPU");
        }
        match self.find_lowest_rq(task, this) {
            Some(cpu) if prio < self.rt.highest_prio(cpu) => (cpu, "lowest priority CPU"),
            _ => (prev, "last CPU, none is lower"),
        }
    }

    fn is_pinned(&self, task: TaskId) -> bool {
        self.tasks[task.index()].affinity.as_ref().is_some_and(|mask| mask.count() == 1)
    }

    /// Whether the running task may go elsewhere and the wakee may not.
    pub(super) fn makes_room(&self, wakee: TaskId, curr: TaskId) -> bool {
        let free = |task: TaskId| !self.is_pinned(task) && self.cpupri_find(task, self.rt.prio(task)).is_some();
        free(curr) && !free(wakee)
    }

    /// `cpupri_find`: the allowed CPUs whose best real-time task is worst, if it is worse than `prio`.
    fn cpupri_find(&self, task: TaskId, prio: u8) -> Option<CpuMask> {
        let mut found = (prio, CpuMask::default());
        for cpu in (0..self.topology.nr_cpus() as u32).map(CpuId).filter(|cpu| self.allows(task, *cpu)) {
            let there = self.rt.highest_prio(cpu);
            if there > found.0 {
                found = (there, CpuMask::default());
            }
            if there == found.0 && there > prio {
                found.1.set(cpu);
            }
        }
        (!found.1.is_empty()).then_some(found.1)
    }

    /// `find_lowest_rq`: the task's own CPU, else the executing one or any in the smallest domain around its own.
    fn find_lowest_rq(&mut self, task: TaskId, this: CpuId) -> Option<CpuId> {
        if self.is_pinned(task) {
            return None;
        }
        let lowest = self.cpupri_find(task, self.rt.prio(task))?;
        let home = self.cpu_of(task);
        if lowest.has(home) {
            return Some(home);
        }
        for level in 0..self.domains.depth(home) {
            let span = &self.domains.at(home, level).span;
            if lowest.has(this) && span.has(this) {
                return Some(this);
            }
            let near = lowest.and(span);
            if let Some(cpu) = self.any_and_distribute(&near) {
                return Some(cpu);
            }
        }
        if lowest.has(this) {
            return Some(this);
        }
        self.any_and_distribute(&lowest)
    }

    /// `push_rt_tasks`: sends waiting tasks of the class where they may run at once.
    fn push_rt_tasks(&mut self, cpu: CpuId, now: Nanos, moves: &mut Moves) {
        loop {
            let curr = self.rt.curr(cpu);
            let waiting = self.rt.queued(cpu).find(|task| Some(*task) != curr && !self.is_pinned(*task));
            let Some(task) = waiting else { return };
            if curr.is_none_or(|curr| self.rt.prio(task) < self.rt.prio(curr)) {
                moves.ask(cpu, Resched::Full);
                return;
            }
            let target = self.find_lowest_rq(task, cpu);
            let Some(target) = target.filter(|to| *to != cpu && self.rt.prio(task) < self.rt.highest_prio(*to)) else {
                return;
            };
            self.move_rt_task(task, cpu, target, now, moves);
            if self.fair.decisions.is_some() {
                self.explain_rt_move(task, cpu, target, true, now);
            }
            moves.ask(target, Resched::Full);
        }
    }

    /// `pull_rt_task`: fetches tasks that are better than what is queued here and wait elsewhere.
    fn pull_rt_task(&mut self, this: CpuId, now: Nanos, moves: &mut Moves) {
        for src in (0..self.topology.nr_cpus() as u32).map(CpuId).filter(|src| *src != this) {
            let curr = self.rt.curr(src);
            let waits = |task: &TaskId| Some(*task) != curr && !self.is_pinned(*task) && self.allows(*task, this);
            let Some(task) = self.rt.queued(src).find(waits) else { continue };
            let prio = self.rt.prio(task);
            // A better one than the running task has just woken and will run there.
            let about_to_run = prio < curr.map_or(MAX_RT_PRIO, |curr| self.rt.prio(curr));
            if prio < self.rt.highest_prio(this) && !about_to_run {
                self.move_rt_task(task, src, this, now, moves);
                if self.fair.decisions.is_some() {
                    self.explain_rt_move(task, src, this, false, now);
                }
            }
        }
    }

    /// `move_queued_task` of this class.
    pub(crate) fn move_rt(&mut self, task: TaskId, from: CpuId, to: CpuId, now: Nanos) -> Resched {
        if self.rt.curr(from) == Some(task) {
            self.rt.set_curr(from, None, now);
        }
        self.move_rt_task(task, from, to, now, &mut Moves::default());
        self.preempt_by_class(to, task, false, now).unwrap_or(Resched::No)
    }

    fn move_rt_task(&mut self, task: TaskId, from: CpuId, to: CpuId, now: Nanos, moves: &mut Moves) {
        self.rt.dequeue(from, task, now);
        self.sync(from);
        self.set_task_cpu(task, to, now);
        self.rt.enqueue(to, task, false, now);
        self.sync(to);
        moves.moved.push((task, from));
    }

    /// `balance_rt`, before a pick: a CPU whose real-time task is done or outranked looks for another.
    pub fn rt_pull(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        let left = self.rt.curr(cpu).is_some_and(|prev| self.rt.highest_prio(cpu) > self.rt.prio(prev));
        if left {
            self.pull_rt_task(cpu, now, &mut moves);
        }
        moves
    }

    /// `rt_queue_push_tasks`, after a pick: whoever waits behind the picked task goes where he can run.
    pub fn rt_push(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        if self.rt.curr(cpu).is_some() {
            self.push_rt_tasks(cpu, now, &mut moves);
        }
        moves
    }

    /// `task_woken_rt`, after the wakeup's preemption check: a task that would wait behind the running one is pushed.
    pub fn rt_woken(&mut self, task: TaskId, need_resched: bool, now: Nanos) -> Moves {
        let mut moves = Moves::default();
        let cpu = self.cpu_of(task);
        let (Some(curr), false) = (self.rt.curr(cpu), need_resched) else { return moves };
        let waits = self.is_pinned(curr) || self.rt.prio(curr) <= self.rt.prio(task);
        if self.rt.on_rq(task) && curr != task && waits && !self.is_pinned(task) {
            self.push_rt_tasks(cpu, now, &mut moves);
        }
        moves
    }
}
