//! Tasks of the class: creation, and the list that remembers who ran most recently (`rq->cfs_tasks`).

use super::entity::{Entity, EntityId};
use super::Fair;
use crate::group_id::GroupId;
use crate::pelt::SchedAvg;
use crate::weight::LoadWeight;
use crate::{FairPolicy, SliceSource, TaskAttr};
use schedlab_model::{CpuId, Nanos, TaskId};

/// Shortest and longest slice a task may ask for.
pub(super) const SLICE_RANGE: (Nanos, Nanos) = (100_000, 100_000_000);

/// Neighbours in the list of runnable tasks of a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recency {
    older: EntityId,
    newer: EntityId,
}

impl Default for Recency {
    fn default() -> Self {
        Recency { older: EntityId::NIL, newer: EntityId::NIL }
    }
}

/// `set_latency_fair`: the slice a latency-nice value means; it reads the table of nice weights.
pub(super) fn latency_slice(base_slice: Nanos, latency_nice: i8) -> Nanos {
    (base_slice << 10) / LoadWeight::of_task(latency_nice, FairPolicy::Normal).scaled()
}

impl Fair {
    /// A task that exists and is not queued (`__sched_fork`): no lag, vruntime 0 relative to its CPU's queue.
    pub fn add_task(&mut self, attr: &TaskAttr) -> TaskId {
        let task = self.place_for_task();
        self.entities[task.index()] = self.new_entity(attr);
        task
    }

    /// The same with an id that is given by the caller: one in use before, or the next.
    pub(crate) fn add_task_as(&mut self, task: TaskId, attr: &TaskAttr) {
        self.make_place(task);
        self.entities[task.index()] = self.new_entity(attr);
    }

    pub(super) fn new_entity(&self, attr: &TaskAttr) -> Entity {
        let own = self.own_slice(attr);
        let mut entity = self.blank_entity(attr.cpu);
        entity.load = LoadWeight::of_task(attr.nice, attr.policy).dividing(self.rules.delta_divides);
        entity.slice = own.unwrap_or(self.config.knobs.base_slice);
        entity.avg = SchedAvg::of_new_task(entity.load, &self.rules.pelt);
        entity.nice = attr.nice.clamp(-20, 19);
        entity.prio = entity.nice;
        entity.latency_nice = attr.latency_nice.clamp(-20, 19);
        entity.policy = attr.policy;
        entity.custom_slice = own.is_some();
        if attr.group != GroupId::ROOT {
            self.home_in(attr.group, attr.cpu).give(&mut entity);
        }
        entity
    }

    /// The slice a task keeps whatever base_slice becomes.
    fn own_slice(&self, attr: &TaskAttr) -> Option<Nanos> {
        match self.rules.slice {
            SliceSource::Base => None,
            SliceSource::LatencyNice => Some(latency_slice(self.config.knobs.base_slice, attr.latency_nice)),
            SliceSource::Custom => {
                attr.slice.filter(|slice| *slice > 0).map(|slice| slice.clamp(SLICE_RANGE.0, SLICE_RANGE.1))
            }
        }
    }

    /// The task is gone for good (`free_task`): it must be neither queued nor current. Its id is given to a later task.
    pub fn release_task(&mut self, task: TaskId) {
        if !self.entity(task).on_rq {
            self.released.push(task);
        }
    }

    /// Number of task ids given out so far: the most tasks that existed at once.
    #[must_use]
    pub fn nr_tasks(&self) -> usize {
        self.nr_tasks
    }

    /// The tasks queued on the CPU's own queue, outside groups, in tree order, the running one left out.
    pub fn queued(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.queued_entities(cpu.index()).filter(|id| self.se(*id).is_task()).map(EntityId::task_id)
    }

    /// The entities of one queue's tree in order.
    pub(super) fn queued_entities(&self, rq: usize) -> impl Iterator<Item = EntityId> + '_ {
        let tree = &self.rqs[rq].tree;
        let mut at = tree.first();
        std::iter::from_fn(move || {
            let id = at.is_some().then_some(at)?;
            at = tree.next(&self.nodes, at);
            Some(id)
        })
    }

    /// Queued and running tasks, the least recently run first: the order in which the balancer looks at them.
    pub fn cfs_tasks(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let mut at = self.rq(cpu).least_recent;
        std::iter::from_fn(move || {
            let task = at.task()?;
            at = self.recency[at.index()].newer;
            Some(task)
        })
    }

    /// The list's next more recent task after `task`, or the least recent one for `None`.
    #[must_use]
    pub fn next_cfs_task(&self, cpu: CpuId, task: Option<TaskId>) -> Option<TaskId> {
        match task {
            None => self.rq(cpu).least_recent.task(),
            Some(task) => self.recency[task.index()].newer.task(),
        }
    }

    /// `list_move` to the front: the balancer looks at it last.
    #[inline(always)]
    pub(super) fn list_move_front(&mut self, rq: usize, id: EntityId) {
        let (q, list) = (&mut self.rqs[rq], &mut self.recency[..]);
        let front = q.most_recent;
        if front == id {
            return;
        }
        // Not in front, so somebody is newer.
        let Recency { older, newer } = list[id.index()];
        list[newer.index()].older = older;
        match older.is_some() {
            true => list[older.index()].newer = newer,
            false => q.least_recent = newer,
        }
        list[front.index()].newer = id;
        list[id.index()] = Recency { older: front, newer: EntityId::NIL };
        q.most_recent = id;
    }

    #[inline]
    pub(super) fn list_add(&mut self, rq: usize, id: EntityId) {
        let older = std::mem::replace(&mut self.rqs[rq].most_recent, id);
        self.recency[id.index()] = Recency { older, newer: EntityId::NIL };
        match older.is_some() {
            true => self.recency[older.index()].newer = id,
            false => self.rqs[rq].least_recent = id,
        }
    }

    #[inline]
    pub(super) fn list_del(&mut self, rq: usize, id: EntityId) {
        let Recency { older, newer } = self.recency[id.index()];
        match older.is_some() {
            true => self.recency[older.index()].newer = newer,
            false => self.rqs[rq].least_recent = newer,
        }
        match newer.is_some() {
            true => self.recency[newer.index()].older = older,
            false => self.rqs[rq].most_recent = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::latency_slice;

    #[test]
    fn slices_of_latency_nice() {
        for (latency_nice, slice) in [
            (-20, 34_609),
            (-10, 321_742),
            (-5, 984_299),
            (0, 3_000_000),
            (5, 9_170_149),
            (10, 27_927_272),
            (19, 204_800_000),
        ] {
            assert_eq!(latency_slice(3_000_000, latency_nice), slice, "{latency_nice}");
        }
        assert_eq!(latency_slice(750_000, 19), 51_200_000);
    }
}
