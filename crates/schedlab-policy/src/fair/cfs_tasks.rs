//! The list of a CPU's runnable tasks in the order in which they last ran (`rq->cfs_tasks`), which the balancer walks
//! from the least recently run.

use schedlab_model::{CpuId, TaskId};

use super::cfs_rq::CfsRq;
use super::entities::Neighbours;
use super::entity::EntityId;
use super::Fair;

impl Fair {
    /// `detach_tasks` moves a task that it leaves on its CPU to the front of the list: the next pass considers it last.
    pub fn list_move(&mut self, cpu: CpuId, task: TaskId) {
        let arena = &mut self.queues.arena;
        let id = EntityId::of(task);
        if arena.entities[id].on_rq && arena.entities[id].cpu == cpu {
            arena.rqs[cpu.index()].list_move(&mut arena.entities.neighbours, id);
        }
    }
}

/// These work on a CPU's own queue, whatever group the task is in.
impl CfsRq {
    /// `list_move` to the front: the balancer considers the task last.
    #[inline(always)]
    pub(super) fn list_move(&mut self, list: &mut [Neighbours], id: EntityId) {
        let front = self.most_recent;
        if front == id {
            return;
        }
        // Not in front, so another task is newer.
        let Neighbours { older, newer } = list[id.index()];
        list[newer.index()].older = older;
        match older.is_some() {
            true => list[older.index()].newer = newer,
            false => self.least_recent = newer,
        }
        list[front.index()].newer = id;
        list[id.index()] = Neighbours { older: front, newer: EntityId::NIL };
        self.most_recent = id;
    }

    /// `list_add` at the front.
    #[inline]
    pub(super) fn list_add(&mut self, list: &mut [Neighbours], id: EntityId) {
        let older = std::mem::replace(&mut self.most_recent, id);
        list[id.index()] = Neighbours { older, newer: EntityId::NIL };
        match older.is_some() {
            true => list[older.index()].newer = id,
            false => self.least_recent = id,
        }
    }

    /// `list_del`.
    #[inline]
    pub(super) fn list_del(&mut self, list: &mut [Neighbours], id: EntityId) {
        let Neighbours { older, newer } = list[id.index()];
        match older.is_some() {
            true => list[older.index()].newer = newer,
            false => self.least_recent = newer,
        }
        match newer.is_some() {
            true => list[newer.index()].older = older,
            false => self.most_recent = older,
        }
    }
}
