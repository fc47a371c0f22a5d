//! Names by which the simulator still calls the classes.

use schedlab_model::{CpuId, Nanos, Pid, TaskId};

use super::{Moves, Sched};
use crate::queue_view::RealTimeView;
use crate::rt::Rt;

impl Rt {
    /// Whether any task is or was of this class.
    #[inline]
    #[must_use]
    pub fn in_use(&self) -> bool {
        self.is_used()
    }
}

impl Sched {
    /// [`Sched::balance`].
    pub fn rt_pull(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        self.balance(cpu, now)
    }

    /// [`Sched::balance_callback`].
    pub fn rt_push(&mut self, cpu: CpuId, now: Nanos) -> Moves {
        self.balance_callback(cpu, now)
    }

    /// [`Sched::task_woken`].
    pub fn rt_woken(&mut self, task: TaskId, need_resched: bool, now: Nanos) -> Moves {
        self.task_woken(task, need_resched, now)
    }

    /// [`Sched::next_timer`].
    #[inline]
    #[must_use]
    pub fn rt_timer(&self) -> Option<Nanos> {
        self.next_timer()
    }

    /// [`Sched::timer_expired`].
    pub fn rt_timer_expired(&mut self, now: Nanos) -> Moves {
        self.timer_expired(now)
    }

    /// The queued tasks of the real-time class.
    pub fn real_time_view(&self, cpu: CpuId, pid: impl Fn(TaskId) -> Pid) -> Vec<RealTimeView> {
        self.rt.real_time_view(cpu, pid)
    }
}
