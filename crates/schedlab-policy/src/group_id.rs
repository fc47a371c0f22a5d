//! The name of a task group.

/// A task group of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The group of every task that was not put elsewhere.
    pub const ROOT: GroupId = GroupId(0);

    /// Its place in a vector of groups.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
