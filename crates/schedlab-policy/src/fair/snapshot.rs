//! A queue at one moment as plain data: what a person needs to see why one task runs and another waits.
//!
//! Numbers are the model's own, up to the last `update_curr`; nothing is charged by reading. Vruntimes and deadlines
//! are distances from the zero point of their own queue (`entity_key`), so that they fit a line.

use super::entity::{Entity, EntityId};
use super::is_eevdf;
use super::view::View;
use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use serde::Serialize;

/// One queue.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct QueueView {
    /// Its CPU.
    pub cpu: u32,
    /// v0, from which vruntimes and deadlines count (min_vruntime, or zero_vruntime).
    pub zero_vruntime: u64,
    /// V - v0; EEVDF only.
    pub avg_vruntime: Option<i64>,
    /// Up to when the running entity is charged.
    pub accounted_ns: Option<Nanos>,
    /// The next buddy.
    pub next: Option<Pid>,
    /// The last buddy (CFS).
    pub last: Option<Pid>,
    /// The skip buddy (CFS).
    pub skip: Option<Pid>,
    /// Tasks of the real-time class, in the order in which they run; before all others, unless the class is throttled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub real_time: Vec<RealTimeView>,
    /// Groups whose quota is used up on this CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<u32>,
    /// The running entity, then the others in the order of the tree; below a group its own, likewise.
    pub entities: Vec<EntityView>,
}

/// A task of the real-time class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct RealTimeView {
    /// The task.
    pub pid: Pid,
    /// `sched_priority`.
    pub priority: u8,
    /// `FIFO` or `RR`.
    pub policy: &'static str,
    /// It is current.
    pub running: bool,
}

/// What an entity of a queue does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntityState {
    /// It is current.
    Running,
    /// It is still current but has gone to sleep: the next pick replaces it.
    Leaving,
    /// It waits for the CPU.
    Waiting,
    /// It sleeps, but its dequeue is delayed.
    Delayed,
}

/// One entity of a queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EntityView {
    /// The task; 0 for a group.
    pub pid: Pid,
    /// The group it stands for; its own entities follow it.
    pub group: Option<u32>,
    /// Groups above it.
    pub depth: u16,
    /// What it does.
    pub state: EntityState,
    /// Weight, nice 0 = 1024.
    pub weight: u64,
    /// vruntime - v0.
    pub vruntime: i64,
    /// Virtual lag, V - vruntime; positive = owed service. EEVDF only, as are the next three.
    pub lag: Option<i64>,
    /// deadline - v0.
    pub deadline: Option<i64>,
    /// Whether it may be picked.
    pub eligible: Option<bool>,
    /// Whether the pick keeps it while it is eligible (RUN_TO_PARITY); only the running one can be.
    pub protected: Option<bool>,
    /// Its slice, wall time.
    pub slice_ns: Nanos,
    /// Run since it was last put on the CPU; what it ran in its last turn if it waits.
    pub ran_ns: Nanos,
}

impl View<'_> {
    /// The CPU's queue as it is; `pid` names the tasks.
    #[must_use]
    pub fn queue_view(&self, cpu: CpuId, pid: impl Fn(TaskId) -> Pid) -> QueueView {
        let q = &self.arena.rqs[cpu.index()];
        let named = |id: EntityId| id.task().filter(|_| !self.arena.is_group(id)).map(&pid);
        let eevdf = is_eevdf(self.config);
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
        let (average, eevdf, running) = (q.average(&self.arena.entities), is_eevdf(self.config), q.curr == id);
        let group = self.arena.stands_for(id);
        EntityView {
            pid: if group.is_some() { 0 } else { pid(id.task_id()) },
            group: group.map(|group| group.0),
            depth,
            state: state_of(se, running),
            weight: se.load.scaled(),
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

impl QueueView {
    /// Gives every task another number.
    pub fn rename(&mut self, pid: impl Fn(Pid) -> Pid) {
        for buddy in [&mut self.next, &mut self.last, &mut self.skip] {
            *buddy = buddy.map(&pid);
        }
        let tasks = self.entities.iter_mut().filter(|entity| entity.group.is_none());
        tasks.for_each(|entity| entity.pid = pid(entity.pid));
        self.real_time.iter_mut().for_each(|task| task.pid = pid(task.pid));
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
