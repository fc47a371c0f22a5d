//! The store of entities: every task's and every group's, each with its node in a tree and its place in the task list
//! of its CPU, by [`EntityId`].
//!
//! Tasks come first. Once there are groups, a reserve for more tasks follows, then the groups' entities. When tasks
//! outgrow the reserve, the group entities move back, so nothing outside this module and `arena` may keep their ids.

use std::ops::{Index, IndexMut};

use super::entity::{Entity, EntityId};
use super::tree::Node;
use schedlab_model::{Table, TaskId};

/// Smallest reserve for tasks in front of the group entities.
const RESERVE: usize = 64;

/// Every entity of the class.
#[derive(Clone, Debug, Default)]
pub(super) struct Entities {
    list: Table<Entity>,
    pub nodes: Table<Node>,
    pub neighbours: Table<Neighbours>,
    nr_tasks: usize,
    /// Ids of released tasks, for later tasks.
    released: Vec<TaskId>,
    /// Where the groups' entities begin, once there are groups.
    first_group: Option<usize>,
}

/// Neighbours of a task in its CPU's list of tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbours {
    pub older: EntityId,
    pub newer: EntityId,
}

impl Default for Neighbours {
    fn default() -> Self {
        Neighbours { older: EntityId::NIL, newer: EntityId::NIL }
    }
}

impl Index<EntityId> for Entities {
    type Output = Entity;

    #[inline]
    fn index(&self, id: EntityId) -> &Entity {
        &self.list[id.index()]
    }
}

impl IndexMut<EntityId> for Entities {
    #[inline]
    fn index_mut(&mut self, id: EntityId) -> &mut Entity {
        &mut self.list[id.index()]
    }
}

impl Entities {
    /// An entity together with the nodes of the trees.
    #[inline]
    pub fn with_nodes(&mut self, id: EntityId) -> (&mut Entity, &mut [Node]) {
        (&mut self.list[id.index()], &mut self.nodes)
    }

    /// Number of task ids given out so far.
    pub fn nr_tasks(&self) -> usize {
        self.nr_tasks
    }

    /// Every entity, tasks first.
    pub fn all(&self) -> impl Iterator<Item = &Entity> {
        self.list.iter()
    }

    /// The entity of the nth queue that belongs to a group.
    #[inline]
    pub fn of_group_queue(&self, nth: usize) -> EntityId {
        EntityId((self.first_group.unwrap_or(0) + nth) as u32)
    }

    /// The id is given to a later task.
    pub fn release(&mut self, task: TaskId) {
        self.released.push(task);
    }

    /// The id that the next new task gets: one that was released, else the one after the last task's.
    pub fn next_id(&mut self) -> TaskId {
        self.released.pop().unwrap_or(TaskId(self.nr_tasks as u32))
    }

    /// Clears the place of `task`, which is a released id or the next new one. `Some(from, by)`: every id from `from`
    /// on has moved back by `by`, and the links to them must follow ([`Entities::links`]).
    #[must_use]
    pub fn make_place(&mut self, task: TaskId, blank: &Entity) -> Option<(usize, usize)> {
        if task.index() < self.nr_tasks {
            self.nodes[task.index()] = Node::default();
            self.neighbours[task.index()] = Neighbours::default();
            return None;
        }
        let moved = match self.first_group {
            None => {
                self.push(blank.clone());
                None
            }
            Some(full) if full == self.nr_tasks => Some(self.make_room(self.nr_tasks, blank)),
            Some(_) => None,
        };
        self.nr_tasks += 1;
        moved
    }

    /// The first group is about to be created: reserves room for tasks in front of its entities.
    pub fn begin_groups(&mut self, blank: &Entity) {
        self.first_group = Some(self.nr_tasks);
        self.make_room(RESERVE.max(self.nr_tasks), blank);
    }

    /// Appends an entity.
    pub fn push(&mut self, entity: Entity) {
        self.list.push(entity);
        self.nodes.push(Node::default());
        self.neighbours.push(Neighbours::default());
    }

    /// Every link from one entity to another but those within the task lists, which hold tasks only.
    pub fn links(&mut self) -> impl Iterator<Item = &mut EntityId> {
        let parents = self.list.iter_mut().map(|se| &mut se.parent);
        parents.chain(self.nodes.iter_mut().flat_map(Node::links))
    }

    /// Moves the group entities back by `room` places; from which id on, and by how many.
    fn make_room(&mut self, room: usize, blank: &Entity) -> (usize, usize) {
        let at = self.first_group.unwrap_or(self.list.len());
        self.list.splice(at..at, std::iter::repeat_n(blank.clone(), room));
        self.nodes.splice(at..at, std::iter::repeat_n(Node::default(), room));
        self.neighbours.splice(at..at, std::iter::repeat_n(Neighbours::default(), room));
        self.first_group = Some(at + room);
        (at, room)
    }
}
