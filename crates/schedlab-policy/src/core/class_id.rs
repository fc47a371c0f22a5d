//! The place of a class in its list, and the task of the lowest class.

use schedlab_model::TaskId;

/// The largest number of classes in a list.
pub const MAX_CLASSES: usize = 6;

/// The place of a class in its list; 0 is the highest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct ClassId(pub u8);

impl ClassId {
    /// The same as an index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The idle task of any CPU (`rq->idle`).
pub const IDLE_TASK: TaskId = TaskId(u32::MAX);
