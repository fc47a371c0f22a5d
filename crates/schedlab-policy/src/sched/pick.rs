//! The steps of `__schedule` (kernel/sched/core.c): deactivating the previous task, picking the next one, the idle
//! task.

use std::ops::ControlFlow;

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{Core, Sched};
use crate::class::{ClassId, ClassList, EachClass, SchedClass, IDLE_TASK};
use crate::flags::Dequeue;
use crate::Resched;

impl<L: ClassList> Sched<L> {
    /// `deactivate_task(DEQUEUE_SLEEP)` of the current task of its CPU; `special`: dead, parked or frozen. Returns
    /// false if its dequeue is delayed and it stays queued. In both cases [`Sched::pick_next_task`] must follow on that
    /// CPU.
    #[inline(always)]
    pub fn block(&mut self, task: TaskId, special: bool, now: Nanos) -> bool {
        let cpu = self.cpu_of(task);
        let flags = Dequeue { sleep: true, special, ..Dequeue::default() };
        let dequeued = self.class_of(task).dequeue_task(cpu, task, flags, now);
        self.complete_views();
        dequeued
    }

    /// `sched_yield` by the current task of the CPU; the caller reschedules.
    pub fn yield_current(&mut self, cpu: CpuId, now: Nanos) {
        if let Some(curr) = self.core.curr(cpu) {
            self.class_of(curr).yield_task(cpu, now);
        }
    }

    /// `yield_to`: the current task of the CPU yields in favour of `task`. Some(false): `task` is on a CPU or of
    /// another class. None (-ESRCH): both CPUs have only one task. After Some(true) the caller reschedules both CPUs.
    pub fn yield_to(&mut self, cpu: CpuId, task: TaskId, now: Nanos) -> Option<bool> {
        let (curr, its_cpu) = (self.core.curr(cpu)?, self.cpu_of(task));
        if self.nr_running(cpu) == 1 && self.nr_running(its_cpu) == 1 {
            return None;
        }
        if self.on_cpu(task) || self.core.class_of(curr) != self.core.class_of(task) {
            return Some(false);
        }
        Some(self.class_of(curr).yield_to_task(cpu, task, now))
    }

    /// The next task of the CPU, which becomes current. `None`: nothing is queued; try
    /// [`Sched::sched_balance_newidle`], then pick again or call [`Sched::idle_enter`].
    #[inline(always)]
    pub fn pick_next_task(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        if self.core.is_mixed() || self.core.has_higher() && self.core.is_mixed_on(cpu, Self::LOWEST) {
            return self.pick_among_classes(cpu, now);
        }
        let picked = self.class(Self::LOWEST).pick_next_task(cpu, now);
        let rq = &mut self.core.rqs[cpu.index()];
        rq.curr = picked;
        if picked.is_some() && rq.idle {
            self.idle_is_over(cpu, now);
        }
        picked
    }

    /// The same over all classes, from the highest to the lowest.
    #[inline(never)]
    fn pick_among_classes(&mut self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        self.every_class().update_curr(cpu, now);
        self.serve(Serve::Queued, cpu, now);
        self.serve(Serve::Update { record: true }, cpu, now);
        self.complete_views();
        let picked = self.pick_class(false, cpu, now).or_else(|| self.pick_class(true, cpu, now));
        self.every_class().clear_resched(cpu);
        self.core.set_curr(cpu, picked);
        self.serve(Serve::Update { record: false }, cpu, now);
        self.serve(Serve::Queued, cpu, now);
        self.complete_views();
        if picked.is_some() {
            self.idle_exit(cpu, now);
        }
        picked
    }

    /// Whether newidle balancing is a part of the pick of the fair class, which it repeats, as in
    /// `pick_next_task_fair`. Up to 7.1 it is not where the task that leaves is of a higher class: `balance_fair` calls
    /// it before the pick, once and only if nothing is queued.
    #[must_use]
    pub fn newidle_repeats(&self, cpu: CpuId) -> bool {
        let leaves_class = |prev: TaskId| self.core.class_of(prev) < Self::LOWEST;
        !self.core.has_higher() || self.core.rules.newidle_in_pick || !self.executes(cpu).is_some_and(leaves_class)
    }

    /// The first class that has a task to run. `deferring`: the classes that let lower classes run first.
    fn pick_class(&mut self, deferring: bool, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        for class in (0..L::LEN).map(ClassId) {
            if self.defers(class, cpu) == deferring {
                let picked = self.pick_of(class, cpu, now);
                if picked.is_some() {
                    return picked;
                }
            } else if self.core.curr(cpu).is_some_and(|curr| self.core.class_of(curr) == class) {
                self.put_prev_task(cpu, now);
            }
        }
        None
    }

    /// Picks the task of this class that runs next: puts the running task and sets the next one.
    fn pick_of(&mut self, class: ClassId, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let lower = self.core.curr(cpu).filter(|curr| self.core.class_of(*curr) != class);
        if lower.is_none() {
            let picked = self.class(class).pick_next_task(cpu, now);
            self.core.set_curr(cpu, picked);
            return picked;
        }
        let picked = self.class(class).pick_task(cpu, now)?;
        self.put_prev_task(cpu, now);
        self.class(class).set_next_task(cpu, picked, true, now);
        Some(picked)
    }

    /// Maintains the server of a class that lets the classes below it run for some time. It serves nothing before a
    /// task can keep them from running for long.
    pub(super) fn serve(&mut self, what: Serve, cpu: CpuId, now: Nanos) -> Resched {
        if !self.core.is_mixed() {
            return Resched::No;
        }
        let mut serving = Serving { core: &mut self.core, what, cpu, now, out: Resched::No };
        self.classes.walk(&mut serving);
        serving.out
    }

    /// Starts the servers of the classes above a task that has been queued.
    #[inline(never)]
    pub(super) fn start_servers(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        let below = self.core.class_of(task);
        self.serve(Serve::Start { below }, cpu, now);
    }

    /// The idle task is switched in (and the tick stops).
    pub fn idle_enter(&mut self, cpu: CpuId, now: Nanos) {
        self.idle_class().set_next_task(cpu, IDLE_TASK, true, now);
        self.every_class().idle_changed(cpu, true, now);
    }

    /// The idle task is switched out. A pick that finds a task implies it.
    #[inline(always)]
    pub fn idle_exit(&mut self, cpu: CpuId, now: Nanos) {
        if self.core.rqs[cpu.index()].idle {
            self.idle_is_over(cpu, now);
        }
    }

    #[inline(never)]
    fn idle_is_over(&mut self, cpu: CpuId, now: Nanos) {
        self.idle_class().put_prev_task(cpu, IDLE_TASK, now);
        self.every_class().idle_changed(cpu, false, now);
    }
}

/// A step of the server by which a class lets the classes below it run for some time (`struct sched_dl_entity` as a
/// server).
#[derive(Clone, Copy)]
pub(super) enum Serve {
    /// `dl_server_start`: a task of this class has been queued.
    Start { below: ClassId },
    /// `dl_server_start`, `dl_server_stop`: whether anything is queued.
    Queued,
    /// `dl_server_update`.
    Update { record: bool },
}

struct Serving<'a> {
    core: &'a mut Core,
    what: Serve,
    cpu: CpuId,
    now: Nanos,
    out: Resched,
}

impl EachClass for Serving<'_> {
    fn each<C: SchedClass>(&mut self, class: &mut C, id: ClassId) -> ControlFlow<()> {
        let (cpu, now) = (self.cpu, self.now);
        match self.what {
            Serve::Start { below } if id >= below => return ControlFlow::Break(()),
            Serve::Start { .. } => class.server_queued(self.core, cpu, true, now),
            Serve::Queued => {
                let queued = self.core.lower_queued(cpu, id);
                class.server_queued(self.core, cpu, queued, now);
            }
            Serve::Update { record } => {
                let runs = self.core.lower_runs(cpu, id);
                self.out = self.out.max(class.dl_server_update(self.core, cpu, runs, record, now));
            }
        }
        ControlFlow::Continue(())
    }
}
