//! Task-level throttling (6.18 and later): a task of a throttled group leaves the queue by itself, on its way back to
//! user mode, and waits in the queue's limbo list (`throttle_cfs_rq_work`, `tg_unthrottle_up`).

use crate::decision::Action;
use crate::fair::entity::EntityId;
use crate::fair::explain::Reason;
use crate::fair::queues::Queues;
use crate::flags::{Dequeue, Enqueue};
use schedlab_model::{rarely, Nanos};

impl Queues {
    /// `task_throttle_setup_work`.
    #[inline(never)]
    pub fn task_throttle_setup_work(&mut self, id: EntityId) {
        if id.is_some() && !self.arena.is_group(id) {
            self.arena.entities[id].throttle_work = true;
        }
    }

    /// A queue whose next entity has just been set needs runtime (`account_cfs_rq_runtime` in `set_next_task_fair`).
    /// Whether it has none and the task has to leave for that (7.x).
    #[inline]
    pub fn lacks_bandwidth(&mut self, rq: usize, now: Nanos) -> bool {
        let throttled =
            rarely(self.pools.used) && self.arena.rqs[rq].runtime_enabled && self.account_cfs_rq_runtime(rq, 0, now);
        throttled && self.config.rules.throttles_at_once()
    }

    /// `throttle_cfs_rq_work` by the current task, about to return to user mode. Whether it left; then it reschedules.
    pub fn throttle_cfs_rq_work(&mut self, id: EntityId, now: Nanos) -> bool {
        let se = &mut self.arena.entities[id];
        se.throttle_work = false;
        let (rq, cpu) = (se.rq(), se.cpu);
        if self.arena.rqs[rq].throttle_count == 0 || !se.on_rq || se.sched_delayed {
            return false;
        }
        self.resched_curr(rq);
        if self.is_recording() {
            self.explain_leave(rq, id, now);
        }
        let flags = Dequeue { sleep: true, throttle: true, ..Dequeue::default() };
        self.dequeue_task_fair(cpu, id, flags, now);
        self.record_throttle_clocks(id, now);
        self.arena.rqs[rq].limbo.insert(0, id);
        self.arena.entities[id].throttled = true;
        true
    }

    /// `tg_unthrottle_up` of one queue. If nothing above it is throttled any more, the tasks that wait there are woken,
    /// until one of them throttles it anew (7.x, which throttles in the accounting); the others keep waiting.
    pub(super) fn tg_unthrottle_up(&mut self, rq: usize, now: Nanos) {
        let at_once = self.config.rules.throttles_at_once();
        if at_once {
            self.update_curr(rq, now);
        }
        self.arena.rqs[rq].throttle_count -= 1;
        if self.arena.rqs[rq].throttle_count > 0 {
            return;
        }
        let mut waiting = std::mem::take(&mut self.arena.rqs[rq].limbo).into_iter();
        while !at_once || self.arena.rqs[rq].throttle_count == 0 {
            let Some(id) = waiting.next() else { break };
            let se = &mut self.arena.entities[id];
            se.throttled = false;
            let cpu = se.cpu;
            self.enqueue_task_fair(cpu, id, Enqueue::WAKEUP, now);
        }
        self.arena.rqs[rq].limbo.splice(..0, waiting);
    }

    /// `dequeue_throttled_task`: a task on the limbo list goes to sleep, or is removed from the list to be queued
    /// again.
    #[cold]
    pub fn dequeue_throttled_task(&mut self, id: EntityId, flags: Dequeue) {
        let se = &mut self.arena.entities[id];
        se.throttled = !flags.sleep;
        self.arena.rqs[se.rq()].limbo.retain(|waiting| *waiting != id);
    }

    /// `enqueue_throttled_task`: a task that has left a limbo list is put on that of its queue if the queue is
    /// throttled too. Returns whether it was.
    #[cold]
    pub fn enqueue_throttled_task(&mut self, id: EntityId) -> bool {
        let se = &mut self.arena.entities[id];
        let q = &mut self.arena.rqs[se.rq()];
        let waits = q.throttle_count > 0;
        if waits {
            q.limbo.insert(0, id);
        }
        se.throttled = waits;
        waits
    }

    /// Every throttled queue above a task that has just left counts its time from the first such task on.
    fn record_throttle_clocks(&mut self, mut id: EntityId, now: Nanos) {
        while id.is_some() {
            let se = &self.arena.entities[id];
            self.arena.rqs[se.rq()].record_throttle_clock(now);
            id = se.parent;
        }
    }

    #[cold]
    fn explain_leave(&mut self, rq: usize, id: EntityId, now: Nanos) {
        // Of the groups above, the one nearest to the task that is throttled itself.
        let mut at = rq;
        while !self.arena.rqs[at].throttled && self.arena.entity_of_queue(at).is_some() {
            at = self.arena.entities[self.arena.entity_of_queue(at)].rq();
        }
        let compared = self.runtime_and_refill(at, now);
        let reason = Reason { rule: "its group is throttled", feature: None, compared };
        let (root, entity) = (self.arena.root_of(rq), self.arena.entity_of_queue(at));
        self.explain_by(root, now, Action::Leave(id.task_id()), entity, reason);
    }
}
