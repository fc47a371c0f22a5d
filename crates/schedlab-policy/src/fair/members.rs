//! Who competes on a queue: what checkers and reports see of the group tree.

use super::entity::{Entity, EntityId};
use super::Fair;
use crate::group_id::GroupId;
use schedlab_model::{CpuId, TaskId};

/// A task, or a group for all its tasks on that CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Member {
    /// A task.
    Task(TaskId),
    /// A group.
    Group(GroupId),
}

impl Fair {
    /// Who waits on a group's queue, in tree order.
    pub fn waiting(&self, group: GroupId, cpu: CpuId) -> impl Iterator<Item = Member> + '_ {
        self.queued_entities(self.group_queue(group, cpu)).map(|id| self.member(id))
    }

    /// The current one of a group's queue; after it blocked, until the next pick, still that one.
    #[must_use]
    pub fn current(&self, group: GroupId, cpu: CpuId) -> Option<Member> {
        let curr = self.rqs[self.group_queue(group, cpu)].curr;
        curr.is_some().then(|| self.member(curr))
    }

    /// The buddies next, last and skip of a group's queue.
    #[must_use]
    pub fn buddies(&self, group: GroupId, cpu: CpuId) -> [Option<Member>; 3] {
        let q = &self.rqs[self.group_queue(group, cpu)];
        [q.next, q.last, q.skip].map(|id| id.is_some().then(|| self.member(id)))
    }

    /// Whether the task is its queue's next or last buddy (`task_hot`).
    #[inline]
    #[must_use]
    pub fn is_hot_buddy(&self, task: TaskId) -> bool {
        let q = &self.rqs[self.entity(task).cfs_rq as usize];
        q.next == EntityId::of(task) || q.last == EntityId::of(task)
    }

    /// The entity of a member on a CPU. The root is none: it competes with nobody.
    #[must_use]
    pub fn member_entity(&self, member: Member, cpu: CpuId) -> &Entity {
        match member {
            Member::Task(task) => self.entity(task),
            Member::Group(group) => self.se(self.entity_on(group, cpu.index())),
        }
    }

    fn member(&self, id: EntityId) -> Member {
        match self.se(id).my_q {
            None => Member::Task(id.task_id()),
            Some(below) => Member::Group(self.rqs[below as usize].group),
        }
    }
}
