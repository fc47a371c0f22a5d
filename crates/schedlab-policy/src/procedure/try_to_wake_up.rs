//! `try_to_wake_up` (kernel/sched/core.c): a sleeping task becomes runnable, here or on another CPU.

use schedlab_model::{CpuId, TaskId};

use super::activate::Activate;
use super::{Context, Effect, Procedure};
use crate::class::ClassList;
use crate::{Sched, WakeKind};

/// `try_to_wake_up` of a task, executed on a CPU.
///
/// In order: the tracepoint `sched_waking`; a task that is still on its way into `__schedule` is left to its CPU, or waited
/// for; one whose dequeue is delayed stays where it is; for any other `select_task_rq` chooses a CPU, which enqueues it itself
/// if it is far enough away.
#[derive(Clone, Copy, Debug)]
pub struct TryToWakeUp {
    task: TaskId,
    waker_cpu: CpuId,
    sync: bool,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Waking,
    OnCpu,
    Runnable,
    Place { cpu: CpuId },
    Queue,
    Activate(Activate),
    Done,
}

impl TryToWakeUp {
    /// Of this task, by CPU `waker_cpu`. `sync`: the waker is about to sleep (WF_SYNC).
    #[inline]
    #[must_use]
    pub fn new(task: TaskId, waker_cpu: CpuId, sync: bool) -> Self {
        TryToWakeUp { task, waker_cpu, sync, step: Step::Waking }
    }

    /// The CPU that executes the procedure, and pays for it.
    #[inline]
    #[must_use]
    pub fn waker_cpu(&self) -> CpuId {
        self.waker_cpu
    }

    /// The task that wakes.
    #[inline]
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Answers [`Effect::Selected`]: the task goes to this CPU instead.
    pub fn place_on(&mut self, cpu: CpuId) {
        if let Step::Place { cpu: chosen } = &mut self.step {
            *chosen = cpu;
        }
    }

    fn kind(&self) -> WakeKind {
        WakeKind::Wakeup { sync: self.sync }
    }

    /// From where the task is on no CPU.
    #[inline(always)]
    fn select<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        let (task, kind) = (self.task, self.kind());
        if let Some(activate) = Activate::requeue(sched, context, task, kind) {
            return self.activate(activate, sched, context);
        }
        let selection = sched.select_task_rq(task, self.waker_cpu, kind, context.clock_task(self.waker_cpu));
        self.step = Step::Place { cpu: selection.cpu };
        Effect::Selected { task, selection }
    }

    /// `set_task_cpu`, `ttwu_queue`.
    #[inline(always)]
    fn queue<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        let (task, cpu) = (self.task, sched.cpu_of(self.task));
        if sched.ttwu_queue_cond(task, self.waker_cpu, cpu, false) {
            return self.queue_on_wakelist(sched, cpu);
        }
        let activate = Activate::enqueue(sched, context, task, cpu, self.kind());
        self.activate(activate, sched, context)
    }

    #[inline(always)]
    fn activate<L: ClassList>(
        &mut self,
        mut activate: Activate,
        sched: &mut Sched<L>,
        context: &impl Context,
    ) -> Effect {
        let effect = activate.resume(sched, context);
        self.step = Step::Activate(activate);
        effect
    }

    #[inline(never)]
    fn queue_on_wakelist<L: ClassList>(&mut self, sched: &mut Sched<L>, cpu: CpuId) -> Effect {
        self.step = Step::Done;
        let first = sched.ttwu_queue_wakelist(self.task, cpu, self.sync);
        Effect::WakelistQueued { task: self.task, cpu, first }
    }
}

impl Procedure for TryToWakeUp {
    #[inline(always)]
    fn resume<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        let task = self.task;
        match self.step {
            Step::Waking => {
                self.step = Step::OnCpu;
                Effect::Waking { task, cpu: sched.cpu_of(task) }
            }
            Step::OnCpu if sched.on_cpu(task) => {
                let cpu = sched.cpu_of(task);
                if sched.ttwu_queue_cond(task, self.waker_cpu, cpu, true) {
                    return self.queue_on_wakelist(sched, cpu);
                }
                self.step = Step::Runnable;
                Effect::WaitOnCpu { task, cpu }
            }
            Step::OnCpu | Step::Runnable => self.select(sched, context),
            Step::Place { cpu } => {
                let from = sched.cpu_of(task);
                sched.set_wakee_cpu(task, cpu, context.clock_task(from));
                if cpu == from {
                    return self.queue(sched, context);
                }
                self.step = Step::Queue;
                Effect::Migrate { task, from, to: cpu }
            }
            Step::Queue => self.queue(sched, context),
            Step::Activate(activate) => self.activate(activate, sched, context),
            Step::Done => Effect::Done,
        }
    }
}
