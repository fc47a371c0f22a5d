//! Task-level throttling (6.18 and later): a task of a throttled group leaves the queue itself, on its way back to user
//! mode, and waits in the queue's limbo (`throttle_cfs_rq_work`, `tg_unthrottle_up`).

use crate::decision::Verdict;
use crate::fair::entity::EntityId;
use crate::fair::{Dequeue, Enqueue, Fair};
use schedlab_model::{Nanos, TaskId};

impl Fair {
    /// `task_throttle_setup_work`.
    #[inline(never)]
    pub(in crate::fair) fn task_throttle_setup_work(&mut self, id: EntityId) {
        if id.is_some() && !self.is_group(id) {
            self.se_mut(id).throttle_work = true;
        }
    }

    /// A queue whose next entity has just been set needs runtime (`account_cfs_rq_runtime` in `set_next_task_fair`).
    /// Whether it has none and the task has to leave for that (7.x).
    #[inline]
    pub(in crate::fair) fn lacks_bandwidth(&mut self, rq: usize, now: Nanos) -> bool {
        let throttled = self.bandwidth_used && self.rqs[rq].runtime_enabled && self.account_cfs_rq_runtime(rq, 0, now);
        throttled && self.rules.throttles_at_once()
    }

    /// Whether the task has to call [`Fair::throttle_cfs_rq_work`] before it runs in user mode again.
    #[inline]
    #[must_use]
    pub fn has_throttle_work(&self, task: TaskId) -> bool {
        self.bandwidth_used && self.entity(task).throttle_work
    }

    /// `throttle_cfs_rq_work` by the current task, about to return to user mode. Whether it left; then it reschedules.
    pub fn throttle_cfs_rq_work(&mut self, task: TaskId, now: Nanos) -> bool {
        let id = EntityId::of(task);
        let rq = self.se(id).cfs_rq as usize;
        self.se_mut(id).throttle_work = false;
        if self.rqs[rq].throttle_count == 0 || !self.se(id).on_rq || self.se(id).sched_delayed {
            return false;
        }
        self.resched_curr(rq);
        if self.decisions.is_some() {
            self.explain_leave(rq, id, now);
        }
        let flags = Dequeue { sleep: true, throttle: true, ..Dequeue::default() };
        self.dequeue_task(self.se(id).cpu, task, flags, now);
        self.record_throttle_clocks(id, now);
        self.rqs[rq].limbo.insert(0, id);
        self.se_mut(id).throttled = true;
        true
    }

    #[cold]
    fn explain_leave(&mut self, rq: usize, id: EntityId, now: Nanos) {
        // Of the groups above, the one nearest to the task that is throttled itself.
        let mut at = rq;
        while !self.rqs[at].throttled && self.entity_of_queue(at).is_some() {
            at = self.se(self.entity_of_queue(at)).cfs_rq as usize;
        }
        let group = self.rqs[at].group;
        let (left, pool) = (self.rqs[at].runtime_remaining, self.group(group).bandwidth.as_ref());
        let refill = pool.map_or(0, |pool| pool.next_period.saturating_sub(now)) as i64;
        let compared = [("runtime left", left), ("refill in", refill)];
        let rule = ("its group is throttled", None);
        let entity = self.entity_of_queue(at);
        self.explain_by(self.root_of(rq), now, Verdict::Leave(id.task_id()), entity, rule, compared);
    }

    /// `tg_unthrottle_up` of one queue. If nothing above it is throttled any more, who waits there is woken, until that
    /// throttles it anew (7.x, which throttles in the accounting): the rest waits on.
    pub(super) fn tg_unthrottle_up(&mut self, rq: usize, now: Nanos) {
        let at_once = self.rules.throttles_at_once();
        if at_once {
            self.update_curr_rq(rq, now);
        }
        self.rqs[rq].throttle_count -= 1;
        if self.rqs[rq].throttle_count > 0 {
            return;
        }
        let mut waiting = std::mem::take(&mut self.rqs[rq].limbo).into_iter();
        while !at_once || self.rqs[rq].throttle_count == 0 {
            let Some(id) = waiting.next() else { break };
            self.se_mut(id).throttled = false;
            let cpu = self.se(id).cpu;
            self.enqueue_task(cpu, id.task_id(), Enqueue { wakeup: true, ..Enqueue::default() }, now);
        }
        self.rqs[rq].limbo.splice(..0, waiting);
    }

    /// `dequeue_throttled_task`: a task in limbo sleeps, or is taken out to be queued again.
    #[cold]
    pub(in crate::fair) fn dequeue_throttled_task(&mut self, id: EntityId, flags: Dequeue) {
        let rq = self.se(id).cfs_rq as usize;
        self.rqs[rq].limbo.retain(|waiting| *waiting != id);
        self.se_mut(id).throttled = !flags.sleep;
    }

    /// `enqueue_throttled_task`: a task taken out of limbo goes right into that of its queue, if that is throttled too.
    /// Whether it did.
    #[cold]
    pub(in crate::fair) fn enqueue_throttled_task(&mut self, id: EntityId) -> bool {
        let rq = self.se(id).cfs_rq as usize;
        let waits = self.rqs[rq].throttle_count > 0;
        if waits {
            self.rqs[rq].limbo.insert(0, id);
        }
        self.se_mut(id).throttled = waits;
        waits
    }

    /// The time of every throttled queue above a task that has just left counts from the first one to leave on.
    fn record_throttle_clocks(&mut self, mut id: EntityId, now: Nanos) {
        while id.is_some() {
            self.record_throttle_clock(self.se(id).cfs_rq as usize, now);
            id = self.se(id).parent;
        }
    }
}
