//! A queue for people to read: the model's numbers, and the kernel's where they were shown.

use schedlab_model::{CpuId, TaskId, Vruntime};

use super::Model;
use crate::operation::First;
use crate::report::Queued;

/// What the kernel showed of a task last.
#[derive(Clone, Copy, Default, Debug)]
pub struct Shown {
    pub vruntime: Option<u64>,
    pub deadline: Option<u64>,
}

impl Model {
    /// Slice of a task that is about to be placed, if the trace shows it; its lag, if nothing shows that.
    pub(super) fn take_lag(&mut self, id: TaskId, first: Option<First>) {
        let mut state = self.fair.task_state(id);
        match first {
            Some(First::Probed { probe, .. }) => state.slice = probe.slice,
            Some(First::Guessed) if self.eevdf => state.vlag = self.draw.lag(self.fair.lag_limit(id)),
            _ => return,
        }
        self.fair.restore_task(id, state);
    }

    /// A task that is queued when it is first seen has used a part of its slice.
    pub(super) fn use_slice(&mut self, id: TaskId) {
        let mut state = self.fair.task_state(id);
        let used = self.draw.used(state.deadline.since(state.vruntime));
        state.deadline = state.deadline.plus(-used);
        self.fair.restore_task(id, state);
    }

    /// The queue, the running task first, as the model has it and as the kernel last showed it.
    pub(super) fn queue(&self, cpu: CpuId) -> Vec<Queued> {
        let curr = self.fair.curr(cpu);
        let all = curr.into_iter().chain(self.fair.cfs_tasks(cpu).filter(|id| Some(*id) != curr));
        all.map(|id| {
            let (se, pid) = (self.fair.entity(id), self.pid(id));
            let member = self.members.get(&pid);
            let own = self.fair.group_rq(self.fair.group_of(id), cpu);
            let key = |v: Vruntime| v.since(own.min_vruntime);
            Queued {
                pid,
                name: String::new(),
                nice: se.nice,
                running: Some(id) == curr,
                asleep: se.sched_delayed || !se.on_rq,
                known: member.is_some_and(|member| member.known),
                vruntime: se.vruntime.0,
                key: key(se.vruntime),
                lag: self.eevdf.then(|| self.fair.lag(id)),
                deadline: self.eevdf.then_some(se.deadline.0),
                slice: self.fair.slice_of(id),
                ran: se.sum_exec_runtime - se.prev_sum_exec_runtime,
                kernel_vruntime: member.and_then(|member| member.shown.vruntime),
                kernel_deadline: member.and_then(|member| member.shown.deadline),
            }
        })
        .collect()
    }
}
