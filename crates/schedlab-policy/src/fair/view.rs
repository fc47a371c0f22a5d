//! The class as checkers, reports and the replay read it. Nothing is charged by reading: numbers are as of the last
//! `update_curr`.

use super::arena::Arena;
use super::entity::{Entity, EntityId};
use super::member::Member;
use super::pool::BandwidthStats;
use super::pools::Pools;
use super::protect_slice::vprot_in_vlag;
use super::recorded::TaskState;
use crate::group_id::GroupId;
use crate::KernelConfig;
use schedlab_model::{rarely, CpuId, Nanos, TaskId, Vruntime};

/// A reader of the class.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(super) arena: &'a Arena,
    pub(super) config: &'a KernelConfig,
    pub(super) pools: &'a Pools,
}

/// What is on a queue.
impl<'a> View<'a> {
    /// The members that wait on a group's queue, in tree order.
    pub fn waiting(self, group: GroupId, cpu: CpuId) -> impl Iterator<Item = Member> + 'a {
        let arena = self.arena;
        let tree = &arena.rqs[arena.group_queue(group, cpu)].tree;
        tree.iter(&arena.entities.nodes).map(move |id| member(arena, id))
    }

    /// The tasks queued on the CPU's own queue, outside groups, in tree order, without the running one.
    pub fn queued(self, cpu: CpuId) -> impl Iterator<Item = TaskId> + 'a {
        let entities = &self.arena.entities;
        let tree = &self.arena.rqs[cpu.index()].tree;
        tree.iter(&entities.nodes).filter(|id| entities[*id].is_task()).map(EntityId::task_id)
    }

    /// The current member of a group's queue; after it blocked, until the next pick, still that one.
    #[must_use]
    pub fn current(&self, group: GroupId, cpu: CpuId) -> Option<Member> {
        let curr = self.arena.rqs[self.arena.group_queue(group, cpu)].h_curr;
        curr.some().map(|curr| member(self.arena, curr))
    }

    /// The member that runs, among those that compete on a group's queue: from 7.3 on they are tasks, all on the
    /// root's.
    #[must_use]
    pub fn running(&self, group: GroupId, cpu: CpuId) -> Option<Member> {
        let running = self.arena.rqs[self.arena.group_queue(group, cpu)].running(&self.arena.entities);
        running.map(|running| member(self.arena, running))
    }

    /// The buddies next, last and skip of a group's queue.
    #[must_use]
    pub fn buddies(&self, group: GroupId, cpu: CpuId) -> [Option<Member>; 3] {
        let q = &self.arena.rqs[self.arena.group_queue(group, cpu)];
        [q.next, q.last, q.skip].map(|id| id.some().map(|id| member(self.arena, id)))
    }

    /// The entity of a member on a CPU. The root group has none: it competes with nothing.
    #[must_use]
    pub fn member_entity(&self, member: Member, cpu: CpuId) -> &'a Entity {
        match member {
            Member::Task(task) => &self.arena.entities[EntityId::of(task)],
            Member::Group(group) => &self.arena.entities[self.arena.entity_on(group, cpu.index())],
        }
    }
}

fn member(arena: &Arena, id: EntityId) -> Member {
    arena.stands_for(id).map_or(Member::Task(id.task_id()), Member::Group)
}

/// Where entities stand in virtual time.
impl View<'_> {
    /// V, the weighted mean vruntime of those that a group's tasks compete with on a CPU; meaningful under EEVDF.
    #[must_use]
    pub fn avg_vruntime(&self, group: GroupId, cpu: CpuId) -> Vruntime {
        self.average_vruntime(self.arena.competes_on(self.arena.group_queue(group, cpu)))
    }

    fn average_vruntime(&self, rq: usize) -> Vruntime {
        self.arena.rqs[rq].average(&self.arena.entities).vruntime()
    }

    /// Virtual lag: V - v, unclamped, of a queued task; the saved one of another. 0 under CFS.
    #[must_use]
    pub fn lag(&self, task: TaskId) -> i64 {
        let se = &self.arena.entities[EntityId::of(task)];
        match (self.config.is_eevdf(), se.on_rq) {
            (false, _) => 0,
            (true, true) => self.average_vruntime(self.arena.competes_on(se.rq())).since(se.vruntime),
            (true, false) => se.vlag,
        }
    }

    /// The lag that the task would keep if it left now.
    #[must_use]
    pub fn clamped_lag(&self, task: TaskId) -> i64 {
        let (id, entities) = (EntityId::of(task), &self.arena.entities);
        if self.config.is_eevdf() && entities[id].on_rq {
            let rq = self.arena.competes_on(entities[id].rq());
            self.arena.rqs[rq].entity_lag(entities, self.config, id, self.average_vruntime(rq))
        } else {
            self.lag(task)
        }
    }

    /// The bound of [`View::clamped_lag`].
    #[must_use]
    pub fn lag_limit(&self, task: TaskId) -> i64 {
        let (id, entities) = (EntityId::of(task), &self.arena.entities);
        self.arena.rqs[self.arena.competes_on(entities[id].rq())].lag_limit(entities, self.config, &entities[id])
    }

    /// Whether a queued task is owed service; always true under CFS.
    #[must_use]
    pub fn eligible(&self, task: TaskId) -> bool {
        let (id, entities) = (EntityId::of(task), &self.arena.entities);
        let rq = self.arena.competes_on(entities[id].rq());
        !self.config.is_eevdf() || self.arena.rqs[rq].entity_eligible(entities, id)
    }

    /// `vprot` of the running entity, where the row keeps it.
    #[must_use]
    pub fn vprot(&self, se: &Entity) -> Vruntime {
        se.vprot_in(vprot_in_vlag(self.config))
    }

    /// How long the task may run at once (`get_rr_interval`, unrounded): CFS's ideal slice now, EEVDF's request.
    #[must_use]
    pub fn slice(&self, task: TaskId) -> Nanos {
        let id = EntityId::of(task);
        self.slice_on(self.arena.entities[id].rq(), id)
    }

    /// The same of an entity on its queue.
    pub(super) fn slice_on(&self, rq: usize, id: EntityId) -> Nanos {
        match self.config.is_eevdf() {
            true => self.arena.entities[id].slice,
            false => self.arena.sched_slice(self.config, rq, id),
        }
    }

    /// The task's state as a trace would show it.
    #[must_use]
    pub fn task_state(&self, task: TaskId) -> TaskState {
        let se = &self.arena.entities[EntityId::of(task)];
        TaskState { vruntime: se.vruntime, deadline: se.deadline, vlag: se.vlag, slice: se.slice }
    }
}

/// Quotas.
impl View<'_> {
    /// How a group's bandwidth has been used; `None` = unlimited.
    #[must_use]
    pub fn bandwidth(&self, group: GroupId) -> Option<BandwidthStats> {
        self.pools.stats(group)
    }

    /// The nearest group above the task that keeps it from running because its quota is used up here.
    #[must_use]
    pub fn throttled_by(&self, task: TaskId) -> Option<GroupId> {
        let se = &self.arena.entities[EntityId::of(task)];
        let mut rq = se.rq();
        let hierarchy = self.arena.rqs[rq].throttle_count > 0 && !self.config.rules.throttles_tasks();
        if !rarely(self.pools.used) || !hierarchy && !se.throttled {
            return None;
        }
        while !self.arena.rqs[rq].throttled {
            rq = self.arena.entities[self.arena.entity_of_queue(rq).some()?].rq();
        }
        Some(self.arena.rqs[rq].group)
    }

    /// The groups that are throttled on a CPU.
    pub(super) fn throttled_on(&self, cpu: CpuId) -> impl Iterator<Item = GroupId> + '_ {
        let queues = self.arena.rqs.iter().filter(move |q| rarely(self.pools.used) && q.cpu == cpu && q.throttled);
        queues.map(|q| q.group)
    }
}
