//! The state of the class by index: entities, queues, groups; and the ways between them (`parent_entity`,
//! `group_cfs_rq`, `find_matching_se`, `set_task_rq`).
//!
//! Queue `g * n + c` of `n` CPUs is group g's on CPU c, so the root group's queues are the CPUs' own. No decision is
//! made here: these are the structures on which the functions in the other files of this folder work.

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use super::group_load_log::GroupLoadLog;
use super::task_group::TaskGroup;
use super::tree::Slices;
use crate::group_id::GroupId;
use crate::pelt::clock::PeltClock;
use crate::{KernelConfig, TaskAttr};
use schedlab_model::{rarely, CpuId, CpuMask, Table, TaskId};

/// Every entity, queue and group of the class.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    pub entities: Entities,
    pub rqs: Table<CfsRq>,
    pub groups: Vec<TaskGroup>,
    /// Accesses to the sums of the groups.
    pub group_loads: GroupLoadLog,
    /// There are groups besides the root: entities may have parents. Paths that every switch takes test this alone.
    pub grouped: bool,
    /// Tasks of all groups compete on the queue of their CPU.
    flat: bool,
    /// Per CPU; read only once a scale was set.
    pub clocks: Vec<PeltClock>,
    /// Some CPU's clock of load tracking is not the task clock.
    pub scaled: bool,
    nr_cpus: usize,
    /// The CPUs that are active (`cpu_active_mask`).
    pub active: CpuMask,
}

/// What joins (or, negative, leaves) the task counters of every level above a task.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counted {
    pub tasks: i32,
    pub idle: i32,
    pub delayed: i32,
}

impl Counted {
    pub fn leaving(self) -> Counted {
        Counted { tasks: -self.tasks, idle: -self.idle, delayed: -self.delayed }
    }

    /// What one task counts.
    #[inline]
    pub fn task(se: &Entity) -> Counted {
        Counted { tasks: 1, idle: i32::from(se.is_idle()), delayed: i32::from(se.sched_delayed) }
    }

    /// What all tasks below a queue count.
    pub fn all_below(q: &CfsRq) -> Counted {
        Counted { tasks: q.h_nr_running as i32, idle: q.idle_h_nr_running as i32, delayed: q.h_nr_delayed as i32 }
    }

    /// Tasks below an idle group count as idle above it.
    #[inline]
    pub fn pass(&mut self, idle: bool) {
        if idle {
            self.idle = self.tasks;
        }
    }
}

impl CfsRq {
    /// Adds to the task counters.
    #[inline]
    pub(super) fn count(&mut self, counted: Counted) {
        self.counted = true;
        self.h_nr_running = self.h_nr_running.wrapping_add_signed(counted.tasks);
        self.idle_h_nr_running = self.idle_h_nr_running.wrapping_add_signed(counted.idle);
        self.h_nr_delayed = self.h_nr_delayed.wrapping_add_signed(counted.delayed);
    }
}

impl Arena {
    /// Empty queues for every CPU, in the root group.
    pub fn new(config: &KernelConfig) -> Arena {
        let (rules, nr_cpus) = (&config.rules, config.nr_cpus);
        let slices = Slices::read_by(rules, false);
        let queue = |cpu| CfsRq::new(GroupId::ROOT, CpuId(cpu as u32), rules.averaging(), slices);
        Arena {
            entities: Entities::default(),
            rqs: (0..nr_cpus).map(queue).collect(),
            groups: vec![TaskGroup::root()],
            group_loads: GroupLoadLog::default(),
            grouped: false,
            flat: rules.flat_hierarchy,
            clocks: vec![PeltClock::default(); nr_cpus],
            scaled: false,
            nr_cpus,
            active: CpuMask::first(nr_cpus),
        }
    }

    pub fn nr_cpus(&self) -> usize {
        self.nr_cpus
    }

    /// A group's queue on a CPU.
    #[inline]
    pub fn group_queue(&self, group: GroupId, cpu: CpuId) -> usize {
        group.index() * self.nr_cpus + cpu.index()
    }

    /// Whether a queue is a CPU's own.
    #[inline]
    pub fn is_root(&self, rq: usize) -> bool {
        rq < self.nr_cpus
    }

    /// The queue of the CPU a queue belongs to.
    #[inline]
    pub fn root_of(&self, rq: usize) -> usize {
        if rarely(self.grouped) {
            return self.root_of_group(rq);
        }
        rq
    }

    #[inline(never)]
    fn root_of_group(&self, rq: usize) -> usize {
        self.rqs[rq].cpu.index()
    }

    /// The queue of an entity whose CPU's own is `root`.
    #[inline]
    pub fn queue_of(&self, id: EntityId, root: usize) -> usize {
        if rarely(self.grouped) {
            return self.queue_of_grouped(id);
        }
        root
    }

    #[inline(never)]
    fn queue_of_grouped(&self, id: EntityId) -> usize {
        self.entities[id].rq()
    }

    /// The queue on which the tasks of a queue compete.
    #[inline]
    pub fn competes_on(&self, rq: usize) -> usize {
        if rarely(self.flat) {
            return self.root_of(rq);
        }
        rq
    }

    /// What competes one level up in the place of an entity; NIL: nothing does.
    #[inline]
    pub fn competitor_above(&self, id: EntityId) -> EntityId {
        if self.flat {
            EntityId::NIL
        } else {
            self.entities[id].parent
        }
    }

    /// The entity a queue stands for one level up; NIL for a CPU's own.
    #[inline]
    pub fn entity_of_queue(&self, rq: usize) -> EntityId {
        match rq.checked_sub(self.nr_cpus) {
            Some(nth) => self.entities.of_group_queue(nth),
            None => EntityId::NIL,
        }
    }

    /// The entity that stands for a group on a CPU; NIL for the root.
    pub fn entity_on(&self, group: GroupId, cpu: usize) -> EntityId {
        self.entity_of_queue(self.group_queue(group, CpuId(cpu as u32)))
    }

    #[inline]
    pub fn is_group(&self, id: EntityId) -> bool {
        rarely(self.grouped) && self.stands_for_group(id)
    }

    #[inline(never)]
    fn stands_for_group(&self, id: EntityId) -> bool {
        id.is_some() && !self.entities[id].is_task()
    }

    /// The group an entity stands for.
    pub fn stands_for(&self, id: EntityId) -> Option<GroupId> {
        let below = self.entities[id.some()?].my_q?;
        Some(self.rqs[below as usize].group)
    }

    /// The group a task is in.
    pub fn group_of(&self, task: TaskId) -> GroupId {
        self.rqs[self.entities[EntityId::of(task)].rq()].group
    }

    /// The running task of a CPU, or the group that will be left without one by the next pick.
    #[inline]
    pub fn leaf(&self, cpu: usize) -> EntityId {
        let curr = self.rqs[cpu].curr;
        if rarely(self.grouped) {
            return self.leaf_below(curr);
        }
        curr
    }

    #[inline(never)]
    fn leaf_below(&self, mut id: EntityId) -> EntityId {
        while id.is_some() {
            match self.entities[id].my_q {
                None => break,
                Some(below) => id = self.rqs[below as usize].curr,
            }
        }
        id
    }

    /// `find_matching_se`: the ancestors of two entities, or they themselves, that compete with each other.
    #[inline]
    pub fn find_matching_se(&self, a: EntityId, b: EntityId) -> (EntityId, EntityId) {
        if rarely(self.grouped) && !self.flat {
            return self.matching_ancestors(a, b);
        }
        (a, b)
    }

    #[inline(never)]
    fn matching_ancestors(&self, mut a: EntityId, mut b: EntityId) -> (EntityId, EntityId) {
        while self.entities[a].cfs_rq != self.entities[b].cfs_rq {
            let (depth_a, depth_b) = (self.entities[a].depth, self.entities[b].depth);
            if depth_a >= depth_b {
                a = self.entities[a].parent;
            }
            if depth_b >= depth_a {
                b = self.entities[b].parent;
            }
        }
        (a, b)
    }

    /// `set_task_rq`: an entity that is not queued belongs to the group's queue on its CPU from now on.
    pub fn set_task_rq(&mut self, id: EntityId, group: GroupId) {
        let cpu = self.entities[id].cpu;
        let position = self.position_in(group, cpu);
        position.assign(&mut self.entities[id]);
    }

    /// `__set_task_cpu`: an entity that is not queued belongs to its group's queue on another CPU from now on.
    #[inline]
    pub fn __set_task_cpu(&mut self, id: EntityId, cpu: CpuId) {
        let se = &mut self.entities[id];
        se.cpu = cpu;
        if se.parent.is_nil() {
            se.cfs_rq = cpu.0;
        } else {
            let group = self.rqs[se.rq()].group;
            self.set_task_rq(id, group);
        }
    }

    /// The position of an entity that competes inside a group on a CPU.
    pub fn position_in(&self, group: GroupId, cpu: CpuId) -> Position {
        let rq = self.group_queue(group, cpu);
        let parent = self.entity_of_queue(rq);
        let depth = if parent.is_some() { self.entities[parent].depth + 1 } else { 0 };
        Position { cfs_rq: rq as u32, parent, depth }
    }

    /// The queue and those of the groups below on its CPU (`walk_tg_tree_from`); a group comes after the one above it.
    pub fn subtree(&self, rq: usize) -> Vec<usize> {
        let (top, cpu) = (self.rqs[rq].group, self.rqs[rq].cpu);
        let mut inside = vec![false; self.groups.len()];
        inside[top.index()] = true;
        for group in top.index() + 1..self.groups.len() {
            inside[group] = inside[self.groups[group].parent.index()];
        }
        let queues = inside.iter().enumerate().filter(|(_, inside)| **inside);
        queues.map(|(group, _)| group * self.nr_cpus + cpu.index()).collect()
    }

    /// A task that exists and is not queued, in the place of its id, which is a released one or the next new one
    /// (`__sched_fork`).
    pub fn add_task(&mut self, task: TaskId, attr: &TaskAttr, config: &KernelConfig) {
        if let Some((from, by)) = self.entities.make_place(task, &Entity::blank(CpuId(0), config)) {
            self.renumber(from, by);
        }
        self.put_task(task, attr, config);
    }

    /// A new task's entity, in the place of an older one.
    pub fn put_task(&mut self, task: TaskId, attr: &TaskAttr, config: &KernelConfig) {
        let mut entity = Entity::of_task(attr, config);
        if attr.group != GroupId::ROOT {
            self.position_in(attr.group, attr.cpu).assign(&mut entity);
        }
        self.entities[EntityId::of(task)] = entity;
    }

    /// Group entities from index `from` on have moved back by `by` places: the links to them follow.
    fn renumber(&mut self, from: usize, by: usize) {
        let links = self.entities.links().chain(self.rqs.iter_mut().flat_map(CfsRq::links));
        for id in links.filter(|id| id.is_some() && id.index() >= from) {
            id.0 += by as u32;
        }
    }
}

/// Where an entity competes: its queue and what stands for that one level up.
pub(super) struct Position {
    cfs_rq: u32,
    parent: EntityId,
    depth: u16,
}

impl Position {
    pub fn assign(self, se: &mut Entity) {
        (se.cfs_rq, se.parent, se.depth) = (self.cfs_rq, self.parent, self.depth);
    }
}
