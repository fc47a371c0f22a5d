//! State that probes show: compared, and kept beside the model's for people to read.

use schedlab_model::{CpuId, TaskId, Vruntime};

use super::Model;
use crate::operation::First;
use crate::report::{Queued, StateMiss};
use crate::step::{Point, Probe};

/// What the kernel showed of a task last.
#[derive(Clone, Copy, Default, Debug)]
pub struct Shown {
    pub vruntime: Option<u64>,
    pub deadline: Option<u64>,
}

impl Model {
    /// A probe. What a task carries from its sleep is taken over once; anything later is compared.
    pub(super) fn show(&mut self, probe: &Probe) {
        let Some(member) = self.members.get_mut(&probe.pid) else { return };
        member.shown = Shown { vruntime: Some(probe.vruntime), deadline: Some(probe.deadline) };
        let se = self.fair.entity(member.id);
        if probe.point == Point::Waking {
            if !member.known && !probe.queued && !se.on_rq {
                let mut state = self.fair.task_state(member.id);
                (state.vlag, state.slice) = (probe.lag, probe.slice);
                let id = member.id;
                self.fair.restore_task(id, state);
            }
            return;
        }
        if !member.known && matches!(probe.point, Point::Woken | Point::Next) {
            return self.take_over(probe.pid, Some(First::Probed { probe: *probe, ran: 0 }));
        }
        if member.known && self.eevdf && matches!(probe.point, Point::Woken | Point::Next) && se.on_rq {
            let (kernel, model) = ((probe.vruntime, probe.deadline), (se.vruntime.0, se.deadline.0));
            self.tally.state(StateMiss { time_ns: self.now, pid: probe.pid, kernel, model });
        }
    }

    /// Lag of a task that is about to be placed, if the trace shows it.
    pub(super) fn take_lag(&mut self, id: TaskId, first: Option<First>) {
        if let Some(First::Probed { probe, .. }) = first {
            let mut state = self.fair.task_state(id);
            state.slice = probe.slice;
            self.fair.restore_task(id, state);
        }
    }

    /// The queue, the running task first, as the model has it and as the kernel last showed it.
    pub(super) fn queue(&self, cpu: CpuId) -> Vec<Queued> {
        let curr = self.fair.curr(cpu);
        let all = curr.into_iter().chain(self.fair.queued(cpu));
        all.map(|id| {
            let (se, pid) = (self.fair.entity(id), self.pid(id));
            let member = self.members.get(&pid);
            let key = |v: Vruntime| v.since(self.fair.rq(cpu).min_vruntime);
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
