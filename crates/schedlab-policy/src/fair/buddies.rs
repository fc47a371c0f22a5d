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

    /// The task that yielded, and the groups above it, idle or not.
    pub(super) fn set_skip_buddy(&mut self, mut id: EntityId) {
        while id.is_some() {
            let se = &self.entities[id.index()];
            self.rqs[se.cfs_rq as usize].skip = id;
            id = se.parent;
        }
    }

    /// `clear_buddies`: upwards as long as each group is its queue's buddy in the same role.
    #[inline]
    pub(super) fn clear_buddies(&mut self, rq: usize, id: EntityId) {
        if self.rqs[rq].has_buddy(id) {
            let slots: [fn(&mut CfsRq) -> &mut EntityId; 3] = [|q| &mut q.next, |q| &mut q.last, |q| &mut q.skip];
            for slot in slots {
                self.clear_buddy(id, slot);
            }
        }
    }

    #[inline(never)]
    fn clear_buddy(&mut self, mut id: EntityId, slot: fn(&mut CfsRq) -> &mut EntityId) {
        while id.is_some() {
            let se = &self.entities[id.index()];
            let buddy = slot(&mut self.rqs[se.cfs_rq as usize]);
            if *buddy != id {
                return;
            }
            *buddy = EntityId::NIL;
            id = se.parent;
        }
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
