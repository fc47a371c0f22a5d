//! Putting a task or a queue into a recorded state, for a replay that starts in the middle of a kernel's life.

use super::entity::EntityId;
use super::Fair;
use schedlab_model::{CpuId, Nanos, TaskId, Vruntime};

/// What a trace can tell of an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskState {
    /// `se.vruntime`.
    pub vruntime: Vruntime,
    /// `se.deadline`.
    pub deadline: Vruntime,
    /// `se.vlag`.
    pub vlag: i64,
    /// `se.slice`.
    pub slice: Nanos,
}

impl Fair {
    /// The task's state as a trace would show it.
    #[must_use]
    pub fn task_state(&self, task: TaskId) -> TaskState {
        let se = self.entity(task);
        TaskState { vruntime: se.vruntime, deadline: se.deadline, vlag: se.vlag, slice: se.slice }
    }

    /// Overwrites it, wherever the task is; sums and queue order follow.
    pub fn restore_task(&mut self, task: TaskId, state: TaskState) {
        let id = EntityId::of(task);
        let rq = self.se(id).cfs_rq as usize;
        let queued = self.se(id).on_rq && self.rqs[rq].curr != id;
        if queued {
            self.tree_erase(rq, id);
        }
        let se = self.se_mut(id);
        (se.vruntime, se.deadline, se.vlag, se.slice) = (state.vruntime, state.deadline, state.vlag, state.slice);
        if queued {
            self.tree_insert(rq, id);
        }
    }

    /// Overwrites a queue's zero point, in either direction; the sum of keys follows.
    pub fn restore_min_vruntime(&mut self, cpu: CpuId, min_vruntime: Vruntime) {
        let q = &mut self.rqs[cpu.index()];
        let moved = min_vruntime.since(q.min_vruntime);
        q.avg_vruntime = q.avg_vruntime.wrapping_sub(q.avg_load.wrapping_mul(moved));
        q.min_vruntime = min_vruntime;
    }
}
