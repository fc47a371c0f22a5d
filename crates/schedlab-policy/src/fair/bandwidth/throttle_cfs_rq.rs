//! Throttling a group's queue on one CPU (`account_cfs_rq_runtime`, `throttle_cfs_rq`, `unthrottle_cfs_rq`).
//!
//! Up to 6.17 the group's entity leaves the queue above, as if everything inside slept, and comes back as a wakeup;
//! tasks inside keep their state. Later kernels only mark the queues below; tasks leave one by one
//! ([`super::throttle_cfs_rq_work`]).

use crate::decision::{Action, Function, Pool};
use crate::fair::arena::Counted;
use crate::fair::cfs_rq::CfsRq;
use crate::fair::explain::Reason;
use crate::fair::pools::sched_cfs_bandwidth_slice;
use crate::fair::queues::Queues;
use crate::flags::{Dequeue, Enqueue};
use schedlab_model::{rarely, Nanos};

impl Queues {
    /// `account_cfs_rq_runtime`: the queue ran for `delta`. Whether it is throttled (7.x throttles here).
    #[inline(never)]
    pub fn account_cfs_rq_runtime(&mut self, rq: usize, delta: Nanos, now: Nanos) -> bool {
        let q = &mut self.arena.rqs[rq];
        q.runtime_remaining -= delta as i64;
        if self.config.rules.bandwidth_expires {
            self.pools.expire_cfs_rq_runtime(q, &self.config, now);
        }
        if q.runtime_remaining > 0 {
            return false;
        }
        if q.throttled {
            return true;
        }
        if self.config.rules.throttles_at_once() {
            return self.throttle_cfs_rq(rq, now);
        }
        let slice = sched_cfs_bandwidth_slice(&self.config);
        if !self.pools.__assign_cfs_rq_runtime(q, &self.config, slice, now) && q.h_curr.is_some() {
            self.resched_curr(rq);
            if self.is_recording() {
                self.explain_runtime_over(rq, now);
            }
        }
        false
    }

    /// `check_cfs_rq_runtime`: a queue without runtime is throttled as an entity is picked from it or put back.
    #[inline]
    pub fn check_cfs_rq_runtime(&mut self, rq: usize, now: Nanos) -> bool {
        let q = &self.arena.rqs[rq];
        if !q.runtime_enabled || q.runtime_remaining > 0 {
            return false;
        }
        q.throttled || self.throttle_cfs_rq(rq, now)
    }

    /// `check_enqueue_throttle`: the first entity arrives on a queue whose group has no runtime left.
    #[inline(never)]
    pub fn check_enqueue_throttle(&mut self, rq: usize, now: Nanos) {
        if self.arena.rqs[rq].h_curr.is_some() || self.arena.rqs[rq].throttled {
            return;
        }
        self.account_cfs_rq_runtime(rq, 0, now);
        if self.arena.rqs[rq].runtime_remaining <= 0 && !self.arena.rqs[rq].throttled {
            self.throttle_cfs_rq(rq, now);
        }
    }

    /// `throttle_cfs_rq`; false: the pool had some runtime after all.
    fn throttle_cfs_rq(&mut self, rq: usize, now: Nanos) -> bool {
        let rules = &self.config.rules;
        let q = &mut self.arena.rqs[rq];
        let whole = rules.throttles_at_once() && q.h_curr.some().is_some_and(|curr| self.arena.entities[curr].on_rq);
        let target = if whole { sched_cfs_bandwidth_slice(&self.config) } else { 1 };
        if rules.throttle_borrows && self.pools.__assign_cfs_rq_runtime(q, &self.config, target, now) {
            return false;
        }
        if let Some(pool) = self.pools.get_mut(q.group) {
            pool.throttled.push(rq as u32);
        }
        for below in self.arena.subtree(rq) {
            self.arena.rqs[below].throttle_count += 1;
        }
        if self.is_recording() {
            self.explain_throttle(rq, now);
        }
        let (throttles_tasks, clock_waits) =
            (self.config.rules.throttles_tasks(), self.config.rules.throttle_clock_waits);
        if !throttles_tasks {
            self.dequeue_throttled(rq, now);
        }
        let q = &mut self.arena.rqs[rq];
        (q.throttled, q.throttled_at) = (true, now);
        if !throttles_tasks && (q.nr_running > 0 || !clock_waits) {
            q.throttled_clock = Some(now);
        }
        if whole {
            self.task_throttle_setup_work(self.arena.leaf(self.arena.root_of(rq)));
        }
        true
    }

    /// The group's entity leaves, and so do the entities above that it leaves empty; counters follow up to the root.
    fn dequeue_throttled(&mut self, rq: usize, now: Nanos) {
        let mut id = self.arena.entity_of_queue(rq);
        let mut counted = Counted::all_below(&self.arena.rqs[rq]).leaving();
        let mut emptied = true;
        while id.is_some() && self.arena.entities[id].on_rq {
            let above = self.arena.entities[id].rq();
            if emptied {
                let delayed = self.arena.entities[id].sched_delayed;
                let flags = Dequeue { sleep: true, special: true, delayed, ..Dequeue::default() };
                self.dequeue_entity(above, id, flags, now);
                emptied = self.arena.rqs[above].load.weight == 0;
            } else {
                self.arena.update_load_avg(&self.config.rules.pelt, above, id, false, now);
            }
            counted.pass(self.arena.entities[id].is_idle());
            self.arena.rqs[above].count(counted);
            id = self.arena.entities[id].parent;
        }
    }

    /// `unthrottle_cfs_rq`.
    pub(super) fn unthrottle_cfs_rq(&mut self, rq: usize, now: Nanos) {
        if self.config.rules.throttles_at_once() {
            self.update_curr(rq, now);
        }
        let throttles_tasks = self.config.rules.throttles_tasks();
        let q = &mut self.arena.rqs[rq];
        if throttles_tasks && q.runtime_remaining <= 0 {
            return;
        }
        q.throttled = false;
        let (at, since, group) = (q.throttled_at, q.throttled_clock.take(), q.group);
        if self.is_recording() {
            self.explain_unthrottle(rq, at, now);
        }
        if let Some(pool) = self.pools.get_mut(group) {
            pool.stats.throttled_time += since.map_or(0, |since| now.saturating_sub(since));
            pool.throttled.retain(|throttled| *throttled != rq as u32);
        }
        // The deepest groups come first.
        for below in self.arena.subtree(rq).into_iter().rev() {
            self.tg_unthrottle_up(below, now);
        }
        if !throttles_tasks && self.arena.rqs[rq].load.weight != 0 {
            self.enqueue_unthrottled(rq, now);
        }
    }

    /// The group's entity comes back, and with it the entities above that had left.
    fn enqueue_unthrottled(&mut self, rq: usize, now: Nanos) {
        let mut id = self.arena.entity_of_queue(rq);
        let mut counted = Counted::all_below(&self.arena.rqs[rq]);
        let mut queued = false;
        while id.is_some() {
            let above = self.arena.entities[id].rq();
            if !queued && self.arena.entities[id].sched_delayed {
                self.dequeue_entity(above, id, Dequeue::DELAYED, now);
            }
            queued |= self.arena.entities[id].on_rq;
            if queued {
                self.arena.update_load_avg(&self.config.rules.pelt, above, id, true, now);
            } else {
                self.enqueue_entity(above, id, Enqueue::WAKEUP, now);
            }
            counted.pass(self.arena.entities[id].is_idle());
            self.arena.rqs[above].count(counted);
            if self.arena.rqs[above].throttled {
                return;
            }
            id = self.arena.entities[id].parent;
        }
    }

    /// Whether a queue's counters do not count upwards: its own entity is not queued.
    #[inline]
    pub fn is_cut_off(&self, rq: usize) -> bool {
        rarely(self.pools.used) && self.arena.rqs[rq].throttled && !self.config.rules.throttles_tasks()
    }

    /// `throttled_hierarchy`, where it keeps tasks from running.
    #[inline]
    pub fn throttled_hierarchy(&self, rq: usize) -> bool {
        rarely(self.pools.used) && self.arena.rqs[rq].throttle_count > 0 && !self.config.rules.throttles_tasks()
    }

    /// The running task must stop: a group above it has no runtime left.
    #[cold]
    fn explain_runtime_over(&mut self, rq: usize, now: Nanos) {
        let compared = self.runtime_and_refill(rq, now);
        let (root, entity) = (self.arena.root_of(rq), self.arena.entity_of_queue(rq));
        let reason = Reason { rule: "its group's quota is used up", feature: None, compared };
        self.explain_end(root, entity, Function::AccountCfsRqRuntime, reason, now);
    }

    #[cold]
    fn explain_throttle(&mut self, rq: usize, now: Nanos) {
        let action = Action::Throttle(Pool::Group(self.arena.rqs[rq].group));
        let compared = self.runtime_and_refill(rq, now);
        let reason = Reason { rule: "its pool is empty", feature: None, compared };
        self.explain(self.arena.root_of(rq), now, action, reason);
    }

    /// What a queue has left, and when its pool is refilled.
    pub(super) fn runtime_and_refill(&self, rq: usize, now: Nanos) -> [(&'static str, i64); 2] {
        let q = &self.arena.rqs[rq];
        [("runtime left", q.runtime_remaining), ("refill in", self.pools.refill_in(q.group, now) as i64)]
    }

    #[cold]
    fn explain_unthrottle(&mut self, rq: usize, since: Nanos, now: Nanos) {
        let q = &self.arena.rqs[rq];
        let (group, left) = (q.group, q.runtime_remaining);
        let compared = [("runtime left", left), ("throttled for", now.saturating_sub(since) as i64)];
        let reason = Reason { rule: "its pool gave it runtime", feature: None, compared };
        self.explain(self.arena.root_of(rq), now, Action::Unthrottle(Pool::Group(group)), reason);
    }
}

impl CfsRq {
    /// `record_throttle_clock`: a task is kept from running from now on.
    #[inline]
    pub(in crate::fair) fn record_throttle_clock(&mut self, now: Nanos) {
        if self.throttled {
            self.throttled_clock.get_or_insert(now);
        }
    }
}
