//! A snapshot of a CPU's queue for explanations ([`QueueView`]).
//!
//! Numbers are the model's own, up to the last `update_curr`; nothing is charged by reading.

use super::entity::{Entity, EntityId};
use super::view::View;
use crate::queue_view::{EntityState, EntityView, QueueView};
use schedlab_model::{CpuId, Pid, TaskId};

impl View<'_> {
    /// The CPU's queue as it is; `pid` names the tasks.
    #[must_use]
    pub fn queue_view(&self, cpu: CpuId, pid: impl Fn(TaskId) -> Pid) -> QueueView {
        let q = &self.arena.rqs[cpu.index()];
        let named = |id: EntityId| id.task().filter(|_| !self.arena.is_group(id)).map(&pid);
        let eevdf = self.config.is_eevdf();
        let mut entities = Vec::new();
        self.view_level(cpu.index(), 0, &pid, &mut entities);
        QueueView {
            cpu: cpu.0,
            zero_vruntime: q.min_vruntime.0,
            avg_vruntime: eevdf.then(|| q.key(q.average(&self.arena.entities).vruntime())),
            accounted_ns: q.curr.some().map(|curr| self.arena.entities[curr].exec_start),
            next: named(q.next),
            last: named(q.last),
            skip: named(q.skip),
            deadline: Vec::new(),
            real_time: Vec::new(),
            throttled: self.throttled_on(cpu).map(|group| group.0).collect(),
            entities,
        }
    }

    /// One queue's entities, each group's own below it.
    fn view_level(&self, rq: usize, depth: u16, pid: &impl Fn(TaskId) -> Pid, into: &mut Vec<EntityView>) {
        let (q, entities) = (&self.arena.rqs[rq], &self.arena.entities);
        for id in q.curr.some().into_iter().chain(q.tree.iter(&entities.nodes)) {
            into.push(self.entity_view(rq, id, depth, pid));
            if let Some(below) = entities[id].my_q {
                self.view_level(below as usize, depth + 1, pid, into);
            }
        }
    }

    fn entity_view(&self, rq: usize, id: EntityId, depth: u16, pid: &impl Fn(TaskId) -> Pid) -> EntityView {
        let (q, se) = (&self.arena.rqs[rq], &self.arena.entities[id]);
        let (average, eevdf, running) = (q.average(&self.arena.entities), self.config.is_eevdf(), q.curr == id);
        let group = self.arena.stands_for(id);
        EntityView {
            pid: if group.is_some() { 0 } else { pid(id.task_id()) },
            group: group.map(|group| group.0),
            depth,
            state: state_of(se, running),
            weight: se.h_load.scaled(),
            vruntime: q.key(se.vruntime),
            lag: eevdf.then(|| average.vruntime().since(se.vruntime)),
            deadline: eevdf.then(|| q.key(se.deadline)),
            eligible: eevdf.then(|| average.vruntime_eligible(se.vruntime)),
            protected: eevdf.then(|| running && se.protect_slice(self.config)),
            slice_ns: self.slice_on(rq, id),
            ran_ns: se.sum_exec_runtime.saturating_sub(se.prev_sum_exec_runtime),
        }
    }
}

fn state_of(se: &Entity, running: bool) -> EntityState {
    match (running, se.on_rq) {
        _ if se.sched_delayed => EntityState::Delayed,
        (true, true) => EntityState::Running,
        (true, false) => EntityState::Leaving,
        (false, _) => EntityState::Waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::{Enqueue, Fair};
    use crate::{KernelConfig, TaskAttr, Version};

    #[test]
    fn a_view_shows_what_runs_what_waits_and_what_is_eligible() {
        for (kernel, eevdf) in [("6.1", false), ("6.6", true), ("6.12", true), ("7.2", true)] {
            let mut fair = Fair::new(KernelConfig::new(Version::find(kernel).unwrap(), 1, 1000));
            let (cpu, wake) = (CpuId(0), Enqueue { wakeup: true, ..Enqueue::default() });
            for _ in 0..2 {
                let task = fair.add_task(&TaskAttr::default());
                fair.enqueue_task(cpu, task, wake, 0);
            }
            let first = fair.pick_next_task(cpu, 0).unwrap();
            fair.update_curr(cpu, 200_000);
            let view = fair.view().queue_view(cpu, |task| task.0 as Pid + 1);
            let [curr, other] = &view.entities[..] else { panic!("{view:?}") };
            assert_eq!((curr.pid, curr.state), (first.0 as Pid + 1, EntityState::Running), "{kernel}");
            assert_eq!((other.state, other.ran_ns, curr.ran_ns), (EntityState::Waiting, 0, 200_000));
            assert_eq!((curr.vruntime - other.vruntime, view.accounted_ns), (200_000, Some(200_000)));
            assert_eq!((curr.eligible, other.eligible), (eevdf.then_some(false), eevdf.then_some(true)));
            // Lags sum to zero; V rounds down, so the sum may miss by one.
            let owed = curr.lag.zip(other.lag).map(|(a, b)| a + b);
            assert!(owed.is_none_or(|sum| (-1..=0).contains(&sum)) && owed.is_some() == eevdf, "{kernel}: {owed:?}");
        }
    }
}
