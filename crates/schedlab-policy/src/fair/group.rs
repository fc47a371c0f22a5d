//! The tree of task groups (`struct task_group`): per CPU each owns a queue and, but for the root, the entity that
//! stands for that queue one level up (`alloc_fair_sched_group`, `init_tg_cfs_entry`).
//!
//! Queue `g * n + c` of `n` CPUs is group g's on CPU c, so the root's are the CPUs' own. Group entities lie behind a
//! reserve for tasks; when tasks outgrow it, the groups' move back (nothing outside this module may keep their ids).

use super::bandwidth::Bandwidth;
use super::cfs_rq::CfsRq;
use super::entity::{Entity, EntityId};
use super::task::Recency;
use super::tree::{Node, Slices};
use super::Fair;
use crate::group_id::GroupId;
use crate::pelt::{GroupLoad, SchedAvg};
use crate::weight::{LoadWeight, NICE_0_LOAD};
use crate::FairPolicy;
use schedlab_model::{CpuId, Nanos, TaskId, Vruntime};

/// What is known of a group as a whole.
#[derive(Clone, Debug)]
pub struct TaskGroup {
    /// The group above; the root is its own.
    pub parent: GroupId,
    /// Weight at full resolution, to be divided among CPUs.
    pub shares: u64,
    /// `cpu.idle`.
    pub idle: bool,
    /// `cpu.latency.nice` (2023 series).
    pub latency_nice: i8,
    /// Its quota, if it has one.
    pub(super) bandwidth: Option<Box<Bandwidth>>,
    /// Sum of its queues' contributions.
    pub load: GroupLoad,
}

impl TaskGroup {
    pub(super) fn root() -> Self {
        TaskGroup {
            parent: GroupId::ROOT,
            shares: NICE_0_LOAD,
            idle: false,
            latency_nice: 0,
            bandwidth: None,
            load: GroupLoad::default(),
        }
    }
}

/// Where an entity competes.
pub(super) struct Home {
    cfs_rq: u32,
    parent: EntityId,
    depth: u16,
}

impl Home {
    pub(super) fn give(self, se: &mut Entity) {
        (se.cfs_rq, se.parent, se.depth) = (self.cfs_rq, self.parent, self.depth);
    }
}

/// Room for tasks kept in front of the group entities when the first group appears.
const RESERVE: usize = 64;

impl Fair {
    /// `sched_create_group`: an empty group of weight 1024 below `parent`.
    pub fn sched_create_group(&mut self, parent: GroupId) -> GroupId {
        if !self.grouped {
            self.begin_groups();
        }
        let group = GroupId(self.groups.len() as u32);
        self.groups.push(TaskGroup { parent, ..TaskGroup::root() });
        let cpus = self.config.nr_cpus;
        let slices = self.slices_kept();
        for cpu in 0..cpus {
            let home = CpuId(cpu as u32);
            let mut entity = self.blank_entity(home);
            entity.my_q = Some(self.rqs.len() as u32);
            self.home_in(parent, home).give(&mut entity);
            let mut queue = CfsRq::new(group, home, self.rules.averaging(), slices);
            // sync_throttle: a group born below a throttled one.
            queue.throttle_count = self.group_rq(parent, home).throttle_count;
            self.rqs.push(queue);
            self.push_entity(entity);
        }
        group
    }

    /// Groups ever made, the root included.
    #[must_use]
    pub fn nr_groups(&self) -> usize {
        self.groups.len()
    }

    /// What is known of a group.
    #[must_use]
    pub fn group(&self, group: GroupId) -> &TaskGroup {
        &self.groups[group.index()]
    }

    /// A group's queue on a CPU; the root's is the CPU's own.
    #[must_use]
    pub fn group_rq(&self, group: GroupId, cpu: CpuId) -> &CfsRq {
        &self.rqs[self.group_queue(group, cpu)]
    }

    /// The entity that stands for a group on a CPU; the root has none.
    #[must_use]
    pub fn group_entity(&self, group: GroupId, cpu: CpuId) -> Option<&Entity> {
        let id = self.entity_of_queue(self.group_queue(group, cpu));
        id.is_some().then(|| self.se(id))
    }

    /// The group a task is in.
    #[must_use]
    pub fn group_of(&self, task: TaskId) -> GroupId {
        self.rqs[self.entity(task).cfs_rq as usize].group
    }

    #[inline]
    pub(super) fn group_queue(&self, group: GroupId, cpu: CpuId) -> usize {
        group.index() * self.config.nr_cpus + cpu.index()
    }

    /// The entity a queue stands for one level up; NIL for a CPU's own.
    #[inline]
    pub(super) fn entity_of_queue(&self, rq: usize) -> EntityId {
        match rq.checked_sub(self.config.nr_cpus) {
            Some(nth) => EntityId((self.first_group + nth) as u32),
            None => EntityId::NIL,
        }
    }

    pub(super) fn home_in(&self, group: GroupId, cpu: CpuId) -> Home {
        let rq = self.group_queue(group, cpu);
        let parent = self.entity_of_queue(rq);
        let depth = if parent.is_some() { self.se(parent).depth + 1 } else { 0 };
        Home { cfs_rq: rq as u32, parent, depth }
    }

    /// `set_task_rq`: an entity that is not queued belongs to the group's queue on its CPU from now on.
    pub(super) fn set_task_group(&mut self, id: EntityId, group: GroupId) {
        self.home_in(group, self.se(id).cpu).give(self.se_mut(id));
    }

    /// `__set_task_cpu`: an entity that is not queued belongs to its group's queue on another CPU from now on.
    #[inline]
    pub(super) fn set_task_cpu(&mut self, id: EntityId, cpu: CpuId) {
        let se = self.se_mut(id);
        se.cpu = cpu;
        if se.parent.is_nil() {
            se.cfs_rq = cpu.0;
        } else {
            let group = self.rqs[self.se(id).cfs_rq as usize].group;
            self.set_task_group(id, group);
        }
    }

    /// An entity that is not queued and weighs as nice 0.
    pub(super) fn blank_entity(&self, cpu: CpuId) -> Entity {
        let zero = Vruntime(0);
        Entity {
            load: LoadWeight::of_sum(NICE_0_LOAD).dividing(self.rules.delta_divides),
            vruntime: zero,
            deadline: zero,
            vlag: 0,
            vprot: zero,
            slice: self.config.knobs.base_slice,
            exec_start: 0,
            sum_exec_runtime: 0,
            prev_sum_exec_runtime: 0,
            cpu,
            cfs_rq: cpu.0,
            parent: EntityId::NIL,
            my_q: None,
            depth: 0,
            nice: 0,
            prio: 0,
            latency_nice: 0,
            policy: FairPolicy::Normal,
            on_rq: false,
            sched_delayed: false,
            rel_deadline: false,
            custom_slice: false,
            asleep: false,
            throttled: false,
            throttle_work: false,
            runnable: 1,
            avg: SchedAvg::default(),
        }
    }

    /// What the nodes of trees must remember of slices.
    pub(super) fn slices_kept(&self) -> Slices {
        Slices::read_by(&self.rules, self.grouped)
    }

    fn begin_groups(&mut self) {
        self.grouped = true;
        self.first_group = self.nr_tasks;
        self.make_room(RESERVE.max(self.nr_tasks));
        let slices = self.slices_kept();
        if slices != Slices::None {
            for q in &mut self.rqs {
                q.tree.keep_slices(&mut self.nodes, slices);
            }
        }
    }

    fn push_entity(&mut self, entity: Entity) {
        self.entities.push(entity);
        self.nodes.push(Node::default());
        self.recency.push(Recency::default());
    }

    /// A place for a task's entity: one that was released, else behind the last task's. Taken before the entity is made,
    /// since making room renumbers the groups' entities, its parent among them.
    pub(super) fn place_for_task(&mut self) -> TaskId {
        let task = self.released.pop().unwrap_or(TaskId(self.nr_tasks as u32));
        self.make_place(task);
        task
    }

    /// Makes the place of this task its own: one that was another's, or the one behind the last task's.
    pub(super) fn make_place(&mut self, task: TaskId) {
        if task.index() < self.nr_tasks {
            self.nodes[task.index()] = Node::default();
            self.recency[task.index()] = Recency::default();
            return;
        }
        if !self.grouped {
            let blank = self.blank_entity(CpuId(0));
            self.push_entity(blank);
        } else if self.nr_tasks == self.first_group {
            self.make_room(self.nr_tasks);
        }
        self.nr_tasks += 1;
    }

    /// Moves the group entities back by `room` places, and every link to them.
    fn make_room(&mut self, room: usize) {
        let at = self.first_group;
        let blank = self.blank_entity(CpuId(0));
        self.entities.splice(at..at, std::iter::repeat_n(blank, room));
        self.nodes.splice(at..at, std::iter::repeat_n(Node::default(), room));
        self.recency.splice(at..at, std::iter::repeat_n(Recency::default(), room));
        self.first_group += room;
        let renumbered = |id: &mut EntityId| {
            if id.is_some() && id.index() >= at {
                id.0 += room as u32;
            }
        };
        self.entities.iter_mut().for_each(|se| renumbered(&mut se.parent));
        self.nodes.iter_mut().for_each(|node| node.links().into_iter().for_each(renumbered));
        self.rqs.iter_mut().for_each(|q| q.links().into_iter().for_each(renumbered));
    }

    /// Time of the last charge to a queue's running entity: the clock of calls that are told none.
    pub(super) fn last_charge(&self, rq: usize) -> Nanos {
        let curr = self.rqs[rq].curr;
        if curr.is_some() {
            self.se(curr).exec_start
        } else {
            0
        }
    }
}
