//! `wake_up_new_task` (kernel/sched/core.c): a forked task becomes runnable for the first time.

use schedlab_model::{CpuId, TaskId};

use super::activate::Activate;
use super::{Context, Effect, Procedure};
use crate::class::ClassList;
use crate::{Sched, WakeKind};

/// `wake_up_new_task`, executed on the parent's CPU.
#[derive(Clone, Copy, Debug)]
pub struct WakeUpNewTask {
    task: TaskId,
    parent_cpu: CpuId,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Select,
    Place { cpu: CpuId },
    Enqueue { cpu: CpuId },
    Activate(Activate),
}

impl WakeUpNewTask {
    /// Of this task, which [`Sched::fork`] or [`Sched::add_task`] has made.
    #[must_use]
    pub fn new(task: TaskId, parent_cpu: CpuId) -> Self {
        WakeUpNewTask { task, parent_cpu, step: Step::Select }
    }

    /// Answers [`Effect::Selected`]: the task goes to this CPU instead.
    pub fn place_on(&mut self, cpu: CpuId) {
        if let Step::Place { cpu: chosen } = &mut self.step {
            *chosen = cpu;
        }
    }

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
}

impl Procedure for WakeUpNewTask {
    fn resume<L: ClassList>(&mut self, sched: &mut Sched<L>, context: &impl Context) -> Effect {
        let (task, kind) = (self.task, WakeKind::Fork);
        match self.step {
            Step::Select => {
                let now = context.clock_task(self.parent_cpu);
                let selection = sched.select_task_rq(task, self.parent_cpu, kind, now);
                self.step = Step::Place { cpu: selection.cpu };
                Effect::Selected { task, selection }
            }
            Step::Place { cpu } if cpu != sched.cpu_of(task) => {
                self.step = Step::Enqueue { cpu };
                Effect::Migrate { task, from: sched.cpu_of(task), to: cpu }
            }
            Step::Place { cpu } | Step::Enqueue { cpu } => {
                let activate = Activate::enqueue(sched, context, task, cpu, kind);
                self.activate(activate, sched, context)
            }
            Step::Activate(activate) => self.activate(activate, sched, context),
        }
    }
}
