//! A queue for reports: the model's numbers, and the kernel's where the trace shows them.

use schedlab_model::{CpuId, Vruntime};
use schedlab_policy::fair::GroupId;

use super::Model;
use crate::report::Queued;

/// What the trace showed of a task last.
#[derive(Clone, Copy, Default, Debug)]
pub struct Shown {
    pub vruntime: Option<u64>,
    pub deadline: Option<u64>,
}

impl Model {
    /// The queue, the running task first.
    pub(super) fn queue(&self, cpu: CpuId) -> Vec<Queued> {
        let curr = self.sched.curr(cpu);
        let all = curr.into_iter().chain(self.fair().cfs_tasks(cpu).filter(|id| Some(*id) != curr));
        all.map(|id| {
            let (se, pid) = (self.fair().entity(id), self.pid(id));
            let task = self.tasks.of(id);
            let flat = self.fair().config.rules.flat_hierarchy;
            let group = if flat { GroupId::ROOT } else { self.fair().group_of(id) };
            let zero = self.fair().group_rq(group, cpu).min_vruntime;
            let key = |v: Vruntime| v.since(zero);
            Queued {
                pid,
                name: String::new(),
                nice: se.nice,
                running: Some(id) == curr,
                asleep: se.sched_delayed || !se.on_rq,
                known: task.is_some_and(|task| task.known),
                vruntime: se.vruntime.0,
                key: key(se.vruntime),
                lag: self.eevdf.then(|| self.fair().view().lag(id)),
                deadline: self.eevdf.then_some(se.deadline.0),
                slice: self.fair().view().slice(id),
                ran: se.sum_exec_runtime - se.prev_sum_exec_runtime,
                kernel_vruntime: task.and_then(|task| task.shown.vruntime),
                kernel_deadline: task.and_then(|task| task.shown.deadline),
            }
        })
        .collect()
    }
}
