//! Entities somebody would like to run next (`set_next_buddy`, `set_last_buddy`, `set_skip_buddy`).

use super::entity::EntityId;
use super::Fair;

impl Fair {
    /// The task just woken or yielded to. An idle entity is never a buddy.
    #[inline]
    pub(super) fn set_next_buddy(&mut self, rq: usize, id: EntityId) {
        if self.se(id).on_rq && !self.se(id).is_idle() {
            self.rqs[rq].next = id;
        }
    }

    /// The task just preempted.
    #[inline]
    pub(super) fn set_last_buddy(&mut self, rq: usize, id: EntityId) {
        if self.se(id).on_rq && !self.se(id).is_idle() {
            self.rqs[rq].last = id;
        }
    }
}
