//! The end of every wakeup: the task is enqueued, may preempt, and is pushed away if it would have to wait
//! (`ttwu_do_activate`, `ttwu_runnable`, the end of `wake_up_new_task`, kernel/sched/core.c).

use schedlab_model::{CpuId, TaskId};

use super::{Context, Effect, Timer};
use crate::class::ClassList;
use crate::{Sched, WakeKind};

/// The task from its enqueue on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activate {
    pub task: TaskId,
    pub cpu: CpuId,
    pub kind: WakeKind,
    step: Step,
}

/// What comes next. A new task's tracepoint precedes the preemption check, a waking task's follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Preempt,
    Wakeup,
    Hrtick,
    TaskWoken,
    Timer,
    Done,
}

impl Activate {
    pub fn new(task: TaskId, cpu: CpuId, kind: WakeKind) -> Self {
        let step = if kind == WakeKind::Fork { Step::Wakeup } else { Step::Preempt };
        Activate { task, cpu, kind, step }
    }

    /// `ttwu_runnable` of a task whose dequeue is delayed, which stays where it is.
    #[inline(always)]
    pub fn requeue<L: ClassList>(
        sched: &mut Sched<L>,
        context: &impl Context,
        task: TaskId,
        kind: WakeKind,
    ) -> Option<Activate> {
        let cpu = sched.cpu_of(task);
        sched.requeue_delayed(task, context.clock_task(cpu)).then(|| Activate::new(task, cpu, kind))
    }

    /// `activate_task`.
    #[inline(always)]
    pub fn enqueue<L: ClassList>(
        sched: &mut Sched<L>,
        context: &impl Context,
        task: TaskId,
        cpu: CpuId,
        kind: WakeKind,
    ) -> Activate {
        sched.activate(task, cpu, kind, context.clock_task(cpu));
        Activate::new(task, cpu, kind)
    }

    /// Runs to the next effect, from the enqueue on.
    #[inline(always)]
    pub fn resume<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        let (task, cpu, new) = (self.task, self.cpu, self.kind == WakeKind::Fork);
        match self.step {
            Step::Preempt => {
                self.step = if new { Step::Hrtick } else { Step::Wakeup };
                let (now, need_resched) = (context.clock_task(cpu), context.need_resched(cpu));
                let resched = sched.wakeup_preempt(cpu, task, self.kind, need_resched, now);
                Effect::Preempt { cpu, resched }
            }
            Step::Wakeup => {
                self.step = if new { Step::Preempt } else { Step::Hrtick };
                Effect::Wakeup { task, cpu, new }
            }
            _ => self.finish(sched, context),
        }
    }

    #[inline(always)]
    fn finish<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        if self.step == Step::Hrtick {
            self.step = Step::TaskWoken;
            if let Some(hrtick) = sched.hrtick_update(self.cpu) {
                return Effect::Program(Timer::Hrtick { cpu: self.cpu, hrtick, update: true });
            }
        }
        if sched.is_mixed() && self.step != Step::Done {
            return self.task_woken(sched, context);
        }
        Effect::Done
    }

    #[inline(never)]
    fn task_woken<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        if self.step == Step::TaskWoken {
            self.step = Step::Timer;
            let (now, need_resched) = (context.clock_task(self.cpu), context.need_resched(self.cpu));
            return sched.balanced(|sched| sched.task_woken(self.task, need_resched, now));
        }
        self.step = Step::Done;
        Effect::Program(Timer::Classes(sched.next_timer()))
    }
}
