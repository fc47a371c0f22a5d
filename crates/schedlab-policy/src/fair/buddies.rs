//! Entities somebody would like to run next (`set_next_buddy`, `set_last_buddy`, `set_skip_buddy`).

use super::entity::EntityId;
use super::{CfsRq, Fair};

impl Fair {
    /// The task just woken or yielded to, and the groups above it. An idle entity is never a buddy.
    pub(super) fn set_next_buddy(&mut self, id: EntityId) {
        self.set_buddy(id, |q| &mut q.next);
    }

    /// The task just preempted, and the groups above it.
    pub(super) fn set_last_buddy(&mut self, id: EntityId) {
        self.set_buddy(id, |q| &mut q.last);
    }

    fn set_buddy(&mut self, mut id: EntityId, slot: fn(&mut CfsRq) -> &mut EntityId) {
        while id.is_some() {
            let se = &self.entities[id.index()];
            if !se.on_rq || se.is_idle() {
                return;
            }
            *slot(&mut self.rqs[se.cfs_rq as usize]) = id;
            id = se.parent;
        }
    }
}
