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

    /// A picked task needs runtime at every level (7.x); it goes on without, until it returns to user mode.
    #[inline(never)]
    pub(in crate::fair) fn allocate_bandwidth(&mut self, picked: EntityId, now: Nanos) {
        let (mut at, mut throttled) = (picked, false);
        while at.is_some() {
            let (rq, parent) = (self.se(at).cfs_rq as usize, self.se(at).parent);
            throttled |= self.rqs[rq].runtime_enabled && self.account_cfs_rq_runtime(rq, 0, now);
            at = parent;
        }
        if throttled {
            self.task_throttle_setup_work(picked);
        }
    }

    /// Whether the task has to call [`Fair::throttle_work`] before it runs in user mode again.
    #[inline]
    #[must_use]
    pub fn has_throttle_work(&self, task: TaskId) -> bool {
        self.bandwidth_used && self.entity(task).throttle_work
    }

    /// `throttle_cfs_rq_work` by the current task, about to return to user mode. Whether it left; then it reschedules.
    pub fn throttle_work(&mut self, task: TaskId, now: Nanos) -> bool {
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
        let flags = Dequeue { sleep: true, special: true, ..Dequeue::default() };
        self.dequeue_task(self.se(id).cpu, task, flags, now);
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

    /// The end of a queue's throttling: who waits there is woken.
    pub(super) fn leave_limbo(&mut self, rq: usize, now: Nanos) {
        for id in std::mem::take(&mut self.rqs[rq].limbo) {
            self.se_mut(id).throttled = false;
            let cpu = self.se(id).cpu;
            self.enqueue_task(cpu, id.task_id(), Enqueue { wakeup: true, ..Enqueue::default() }, now);
        }
    }

    /// A task in limbo is taken out, to be queued elsewhere. Whether it was there.
    pub(in crate::fair) fn take_from_limbo(&mut self, id: EntityId) -> bool {
        let rq = self.se(id).cfs_rq as usize;
        let was = std::mem::take(&mut self.se_mut(id).throttled);
        if was {
            self.rqs[rq].limbo.retain(|waiting| *waiting != id);
        }
        was
    }
}
