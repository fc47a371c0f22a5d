//! Accesses to the word of a task group that all CPUs share (`tg->load_avg`).
//!
//! `update_cfs_group` reads it whenever a task of the group is queued, dequeued or charged at a tick, and
//! `update_tg_load_avg` changes it by an atomic operation. On large machines its cache line is transferred from CPU to
//! CPU all the time, so since 6.7 the kernel limits the changes to one per millisecond and queue (1528c661c24b).

use crate::group_id::GroupId;

/// One access to a group's `load_avg`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupLoadAccess {
    /// The group, never the root: its sum is not used.
    pub group: GroupId,
    /// `atomic_long_add`; otherwise the line is only read.
    pub write: bool,
}

/// The accesses since they were last looked at, if they are recorded.
#[derive(Clone, Debug, Default)]
pub struct GroupLoadLog(Option<Vec<GroupLoadAccess>>);

impl GroupLoadLog {
    /// Records accesses from now on. The caller has to drain them.
    pub fn record(&mut self) {
        self.0 = Some(Vec::new());
    }

    /// The accesses so far, which are removed; `None` where there were none.
    #[inline]
    pub fn drain(&mut self) -> Option<impl Iterator<Item = GroupLoadAccess> + '_> {
        self.0.as_mut().filter(|log| !log.is_empty()).map(|log| log.drain(..))
    }

    #[inline]
    pub(super) fn push(&mut self, group: GroupId, write: bool) {
        if let Some(log) = &mut self.0 {
            log.push(GroupLoadAccess { group, write });
        }
    }
}
