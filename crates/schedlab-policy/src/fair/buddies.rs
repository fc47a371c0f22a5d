//! Entities that the next pick should prefer or skip (`set_next_buddy`, `set_last_buddy`, `set_skip_buddy`).

use super::arena::Arena;
use super::cfs_rq::CfsRq;
use super::entity::EntityId;

impl Arena {
    /// `set_next_buddy`: the task just woken or yielded to, and the groups above it. An idle entity is never a buddy.
    pub fn set_next_buddy(&mut self, id: EntityId) {
        self.set_buddy(id, |q| &mut q.next);
    }

    /// `set_last_buddy`: the task just preempted, and the groups above it.
    pub fn set_last_buddy(&mut self, id: EntityId) {
        self.set_buddy(id, |q| &mut q.last);
    }

    /// `set_skip_buddy`: the task that yielded, and the groups above it, idle or not.
    pub fn set_skip_buddy(&mut self, mut id: EntityId) {
        while id.is_some() {
            let rq = self.competes_on(self.entities[id].rq());
            self.rqs[rq].skip = id;
            id = self.competitor_above(id);
        }
    }

    /// `set_preempt_buddy`: the woken entity becomes the next buddy unless the present one has an earlier deadline.
    pub fn set_preempt_buddy(&mut self, rq: usize, wakee: EntityId) -> bool {
        let next = self.rqs[rq].next;
        if next.is_some() && self.entities[next].deadline.before(self.entities[wakee].deadline) {
            return false;
        }
        self.set_next_buddy(wakee);
        true
    }

    /// `set_short_buddy`: the woken entity becomes the next buddy unless the present one has a shorter slice.
    pub fn set_short_buddy(&mut self, rq: usize, wakee: EntityId) {
        let next = self.rqs[rq].next;
        if next.is_nil() || self.entities[next].slice >= self.entities[wakee].slice {
            self.set_next_buddy(wakee);
        }
    }

    /// `clear_buddies`: upwards as long as each group is its queue's buddy in the same role.
    #[inline]
    pub fn clear_buddies(&mut self, rq: usize, id: EntityId) {
        if self.rqs[rq].has_buddy(id) {
            self.clear_every_buddy(id);
        }
    }

    #[inline(never)]
    fn clear_every_buddy(&mut self, id: EntityId) {
        let slots: [fn(&mut CfsRq) -> &mut EntityId; 3] = [|q| &mut q.next, |q| &mut q.last, |q| &mut q.skip];
        for slot in slots {
            self.clear_buddy(id, slot);
        }
    }

    /// An entity that is picked is no buddy any more, at any level, even if it runs already.
    pub fn clear_buddies_upwards(&mut self, mut picked: EntityId) {
        while picked.is_some() {
            self.clear_buddies(self.competes_on(self.entities[picked].rq()), picked);
            picked = self.competitor_above(picked);
        }
    }

    #[inline(never)]
    fn clear_buddy(&mut self, mut id: EntityId, slot: fn(&mut CfsRq) -> &mut EntityId) {
        while id.is_some() {
            let rq = self.competes_on(self.entities[id].rq());
            let buddy = slot(&mut self.rqs[rq]);
            if *buddy != id {
                return;
            }
            *buddy = EntityId::NIL;
            id = self.competitor_above(id);
        }
    }

    fn set_buddy(&mut self, mut id: EntityId, slot: fn(&mut CfsRq) -> &mut EntityId) {
        while id.is_some() {
            let se = &self.entities[id];
            if !se.on_rq || se.is_idle() {
                return;
            }
            let rq = self.competes_on(se.rq());
            *slot(&mut self.rqs[rq]) = id;
            id = self.competitor_above(id);
        }
    }
}

impl CfsRq {
    /// `clear_buddies` where there are no groups.
    #[inline(always)]
    pub(super) fn clear_own_buddies(&mut self, id: EntityId) {
        if self.has_buddy(id) {
            let buddies = [&mut self.next, &mut self.last, &mut self.skip];
            buddies.into_iter().filter(|buddy| **buddy == id).for_each(|buddy| *buddy = EntityId::NIL);
        }
    }
}
