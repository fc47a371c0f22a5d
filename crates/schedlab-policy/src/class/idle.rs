//! The idle class (kernel/sched/idle.c): the lowest, always runnable, with one task per CPU, all of which are
//! [`super::IDLE_TASK`].

use schedlab_model::{CpuId, Nanos, TaskId};

use super::SchedClass;
use crate::core::class_id::ClassId;
use crate::flags::{Dequeue, Enqueue, WakeFlags};
use crate::{Core, Resched, TaskAttr};

/// `idle_sched_class`.
#[derive(Clone, Copy, Default, Debug)]
pub struct Idle {
    id: ClassId,
}

impl SchedClass for Idle {
    fn id(&self) -> ClassId {
        self.id
    }

    fn set_id(&mut self, id: ClassId) {
        self.id = id;
    }

    fn takes(&self, _: &TaskAttr) -> bool {
        false
    }

    fn on_rq(&self, _: TaskId) -> bool {
        false
    }

    fn enqueue_task(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: Enqueue, _: Nanos) {}

    fn dequeue_task(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: Dequeue, _: Nanos) -> bool {
        true
    }

    /// A task that wakes up belongs to a higher class.
    fn wakeup_preempt(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: WakeFlags, _: bool, _: Nanos) -> Resched {
        Resched::Full
    }

    fn pick_task(&mut self, _: &mut Core, _: CpuId, _: Nanos) -> Option<TaskId> {
        None
    }

    fn put_prev_task(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, now: Nanos) {
        core.end_idle_spell(cpu, now);
    }

    fn set_next_task(&mut self, core: &mut Core, cpu: CpuId, _: TaskId, _: bool, _: Nanos) {
        core.set_idle(cpu, true);
        core.idle.__update_idle_core(cpu);
    }

    fn switched_to(&mut self, _: &mut Core, _: CpuId, _: TaskId, _: bool, _: Nanos) -> Resched {
        Resched::No
    }
}
