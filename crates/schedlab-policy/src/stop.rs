//! The stop class (kernel/sched/stop_task.c): the highest, with one task per CPU, the stopper `migration/N`
//! (`sched_set_stop_task`). It runs until it blocks, and nothing preempts it.
//!
//! Only the work of a stopper that is a task here, such as the watchdog's, goes through this class. The migrations that
//! stoppers carry out for the balancer and for `sched_setaffinity` are steps of
//! [`__schedule`](crate::procedure::__schedule()) instead.

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::class::{ClassId, SchedClass};
use crate::decision::{Action, Class, Decision};
use crate::flags::{Dequeue, Enqueue, WakeFlags};
use crate::{Core, Resched, TaskAttr};

/// `stop_sched_class`.
#[derive(Clone, Default, Debug)]
pub struct Stop {
    id: ClassId,
    /// The stopper of each CPU while it is queued or running (`rq->stop`, `sched_stop_runnable`).
    runnable: Vec<Option<TaskId>>,
}

impl Stop {
    fn sched_stop_runnable(&self, cpu: CpuId) -> Option<TaskId> {
        self.runnable.get(cpu.index()).copied().flatten()
    }

    fn set(&mut self, core: &mut Core, cpu: CpuId, task: Option<TaskId>) {
        if self.runnable.len() <= cpu.index() {
            self.runnable.resize(cpu.index() + 1, None);
        }
        self.runnable[cpu.index()] = task;
        core.set_nr_running(cpu, self.id, u32::from(task.is_some()));
    }
}

impl SchedClass for Stop {
    fn id(&self) -> ClassId {
        self.id
    }

    fn set_id(&mut self, id: ClassId) {
        self.id = id;
    }

    fn takes(&self, attr: &TaskAttr) -> bool {
        attr.stop
    }

    /// `balance_stop` pulls nothing, and the class has neither timers nor a server.
    fn is_bare(&self) -> bool {
        true
    }

    fn on_rq(&self, task: TaskId) -> bool {
        self.runnable.contains(&Some(task))
    }

    fn enqueue_task(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, _: Enqueue, _: Nanos) {
        self.set(core, cpu, Some(task));
    }

    fn dequeue_task(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, _: Dequeue, _: Nanos) -> bool {
        self.set(core, cpu, None);
        true
    }

    /// A stopper is never preempted (`wakeup_preempt_stop`). The idle task is.
    fn wakeup_preempt(
        &mut self,
        core: &mut Core,
        cpu: CpuId,
        task: TaskId,
        _: WakeFlags,
        _: bool,
        now: Nanos,
    ) -> Resched {
        match core.curr(cpu) {
            Some(_) => Resched::No,
            None => core.preempts_lower(cpu, task, now),
        }
    }

    fn pick_task(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let stop = self.sched_stop_runnable(cpu)?;
        if core.is_recording() {
            let rule = "the stopper has work";
            let decision = Decision::outside(now, cpu, Action::Pick(stop), rule, None, Default::default());
            core.record(Decision { class: Class::Stop, ..decision });
        }
        Some(stop)
    }

    fn put_prev_task(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: Nanos) {}

    fn set_next_task(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: bool, _: Nanos) {}

    /// A stopper belongs to its class for as long as it exists (`switched_to_stop` is a bug in the kernel).
    fn switched_to(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: bool, _: Nanos) -> Resched {
        Resched::No
    }

    /// Its sleeps have no slack: its policy is SCHED_FIFO (`sched_set_stop_task`).
    fn is_precise(&self) -> bool {
        true
    }
}
