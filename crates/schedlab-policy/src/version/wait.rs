//! How `__wake_up` walks over the tasks of a wait queue, over the kernel's releases (kernel/sched/wait.c).

use crate::history::release::{value_at, when, Change, Release};

/// After how many tasks it releases the lock for a moment (`WAITQUEUE_WALK_BREAK_CNT`); `None`: it does not.
pub(crate) const fn wait_queue_break_at(release: Release) -> Option<u32> {
    const CHANGES: &[Change<Option<u32>>] =
        &[Change { when: when!(from "6.7" unverified "present in 6.1.192, absent from 6.12.117"), value: None }];
    value_at(Some(64), CHANGES, release)
}
