//! What competes on a queue, as checkers and reports see it: a task, or a group for all its tasks on that CPU.

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
