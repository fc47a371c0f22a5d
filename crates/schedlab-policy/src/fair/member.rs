//! The members of a queue for checkers and reports: a task, or a group that represents all of its tasks on that CPU.

use crate::group_id::GroupId;
use schedlab_model::TaskId;

/// A task, or a group for all its tasks on that CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Member {
    /// A task.
    Task(TaskId),
    /// A group.
    Group(GroupId),
}
