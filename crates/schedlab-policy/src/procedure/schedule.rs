//! `__schedule` (kernel/sched/core.c): which task a CPU runs next.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::{Context, Effect, Procedure, Timer};
use crate::class::ClassList;
use crate::{Resched, Sched};

/// Why the running task does not stay runnable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaving {
    /// It sleeps.
    Sleeps,
    /// It has exited.
    Exits,
}

/// `__schedule` on a CPU.
///
/// In order: the running task is dequeued if it leaves; the stopper's work, which has no task of its own here; the classes'
/// balance; the pick; where that finds nothing, newidle balancing and another pick; the switch; the slice's timer; balance
/// callbacks.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    cpu: CpuId,
    leaving: Option<Leaving>,
    /// The task that the stopper migrates, and where to.
    migrate: Option<(TaskId, CpuId)>,
    /// How long after its beginning the last wakeup read the clock.
    clock_read: Nanos,
    /// The clock by which the running task is charged.
    clock: Nanos,
    /// Decisions recorded before.
    decided: usize,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    Migrated { resched: Resched },
    Stopper,
    Balance,
    Pick,
    Newidle,
    Hrtick,
    Callbacks,
    Timer,
    Done,
}

impl Schedule {
    /// Of this CPU, whose running task stays runnable.
    #[inline]
    #[must_use]
    pub fn new(cpu: CpuId) -> Self {
        let (leaving, migrate) = (None, None);
        Schedule { cpu, leaving, migrate, clock_read: 0, clock: 0, decided: 0, step: Step::Begin }
    }

    /// The running task leaves.
    #[inline]
    #[must_use]
    pub fn leaving(self, leaving: Option<Leaving>) -> Self {
        Schedule { leaving, ..self }
    }

    /// The stopper moves this task of the CPU to another one, where alone it may run (`migration_cpu_stop`).
    #[inline]
    #[must_use]
    pub fn migrating(self, migrate: Option<(TaskId, CpuId)>) -> Self {
        Schedule { migrate, ..self }
    }

    /// The last wakeup check read the clock so long after its beginning; a skipped update leaves what it read.
    #[inline]
    #[must_use]
    pub fn clock_read(self, clock_read: Nanos) -> Self {
        Schedule { clock_read, ..self }
    }

    /// The clock, and the task that leaves.
    #[inline(always)]
    fn begin<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        let now = context.clock_task(self.cpu);
        self.decided = sched.decided();
        self.clock = (sched.schedule_clock(self.cpu, now) + self.clock_read).min(now);
        if let Some(leaving) = self.leaving {
            self.try_to_block_task(sched, leaving);
        }
        if self.migrate.is_some() || sched.active_balance_pending(self.cpu) {
            return self.stop(sched, context);
        }
        self.balance(sched, context)
    }

    #[inline(always)]
    fn try_to_block_task<L: ClassList>(&mut self, sched: &mut Sched<L>, leaving: Leaving) {
        let Some(curr) = sched.executes(self.cpu) else { return };
        sched.block(curr, leaving == Leaving::Exits, self.clock);
        if leaving == Leaving::Exits {
            sched.task_dead(curr);
        }
    }

    /// The stopper's work on the CPU. It updates the clock.
    #[inline(never)]
    fn stop<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        let now = context.clock_task(self.cpu);
        self.clock = now;
        match (self.step, self.migrate) {
            (Step::Begin, Some((task, to))) => {
                let resched = sched.move_task(task, to, now);
                self.step = Step::Migrated { resched };
                Effect::Migrate { task, from: self.cpu, to }
            }
            (Step::Migrated { resched }, Some((_, cpu))) => {
                self.step = Step::Stopper;
                Effect::Resched { cpu, resched }
            }
            _ => {
                self.step = Step::Balance;
                sched.balanced(|sched| sched.active_load_balance_cpu_stop(self.cpu, now))
            }
        }
    }

    #[inline(always)]
    fn balance<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        if sched.is_mixed() {
            self.step = Step::Pick;
            return sched.balanced(|sched| sched.balance(self.cpu, context.clock_task(self.cpu)));
        }
        self.pick(sched, context)
    }

    #[inline(always)]
    fn pick<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        let next = sched.pick_next_task(self.cpu, self.clock);
        if next.is_none() && sched.wakelist(self.cpu).is_empty() {
            self.step = Step::Newidle;
            return sched.balanced(|sched| sched.sched_balance_newidle(self.cpu, context.clock(self.cpu)));
        }
        self.switch(sched, context, next)
    }

    /// After newidle balancing: what it has brought, or anything that came meanwhile.
    #[inline(always)]
    fn pick_again<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        let queued = sched.nr_running(self.cpu) > 0;
        let now = context.clock_task(self.cpu);
        let next = if queued { sched.pick_next_task(self.cpu, now) } else { None };
        self.switch(sched, context, next)
    }

    #[inline(always)]
    fn switch<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context, next: Option<TaskId>) -> Effect {
        let now = context.clock_task(self.cpu);
        self.step = Step::Hrtick;
        sched.date_decisions(self.decided, now);
        let prev = sched.executes(self.cpu);
        if prev == next {
            return Effect::Repicked { next };
        }
        sched.set_on_cpu(self.cpu, next);
        if next.is_none() {
            sched.idle_enter(self.cpu, now);
        }
        Effect::Switch { prev, next }
    }

    #[inline(always)]
    fn hrtick<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        self.step = Step::Callbacks;
        match sched.hrtick_start(self.cpu) {
            Some(hrtick) => Effect::Program(Timer::Hrtick { cpu: self.cpu, hrtick, update: false }),
            None => self.callbacks(sched, context),
        }
    }

    #[inline(always)]
    fn callbacks<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        self.step = Step::Done;
        if !sched.is_mixed() {
            return Effect::Done;
        }
        self.step = Step::Timer;
        sched.balanced(|sched| sched.balance_callback(self.cpu, context.clock_task(self.cpu)))
    }
}

impl Procedure for Schedule {
    #[inline(always)]
    fn resume<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        match self.step {
            Step::Begin => self.begin(sched, context),
            Step::Migrated { .. } | Step::Stopper => self.stop(sched, context),
            Step::Balance => self.balance(sched, context),
            Step::Pick => self.pick(sched, context),
            Step::Newidle => self.pick_again(sched, context),
            Step::Hrtick => self.hrtick(sched, context),
            Step::Callbacks => self.callbacks(sched, context),
            Step::Timer => {
                self.step = Step::Done;
                Effect::Program(Timer::Classes(sched.next_timer()))
            }
            Step::Done => Effect::Done,
        }
    }
}
