//! Throttling a group's queue on one CPU (`throttle_cfs_rq`, `unthrottle_cfs_rq`).
//!
//! Up to 6.17 the group's entity leaves the queue above, as if everybody inside slept, and comes back as a wakeup; tasks
//! inside keep their state. Later kernels only mark the queues below; tasks leave one by one (`task`).

use crate::decision::{Pool, Verdict, QUOTA_USED};
use crate::fair::entity::EntityId;
use crate::fair::hierarchy::Counted;
use crate::fair::{Dequeue, Enqueue, Fair};
use crate::group_id::GroupId;
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// `check_cfs_rq_runtime`: a queue without runtime is throttled as somebody is picked from it or put back.
    #[inline]
    pub(in crate::fair) fn check_cfs_rq_runtime(&mut self, rq: usize, now: Nanos) -> bool {
        let q = &self.rqs[rq];
        if !q.runtime_enabled || q.runtime_remaining > 0 {
            return false;
        }
        q.throttled || self.throttle_cfs_rq(rq, now)
    }

    /// `check_enqueue_throttle`: the first to come to a queue whose group has run out.
    #[inline(never)]
    pub(in crate::fair) fn check_enqueue_throttle(&mut self, rq: usize, now: Nanos) {
        if self.rqs[rq].curr.is_some() || self.rqs[rq].throttled {
            return;
        }
        self.account_cfs_rq_runtime(rq, 0, now);
        if self.rqs[rq].runtime_remaining <= 0 && !self.rqs[rq].throttled {
            self.throttle_cfs_rq(rq, now);
        }
    }

    /// `throttle_cfs_rq`; false: there was something left after all.
    pub(super) fn throttle_cfs_rq(&mut self, rq: usize, now: Nanos) -> bool {
        let running = self.running(rq).is_some();
        let whole = self.rules.throttles_at_once() && running;
        let target = if whole { self.bandwidth_slice() } else { 1 };
        if self.rules.throttle_borrows && self.assign_cfs_rq_runtime(rq, target, now) {
            return false;
        }
        let group = self.rqs[rq].group;
        self.pool(group).throttled.push(rq as u32);
        for below in self.subtree(rq) {
            self.rqs[below].throttle_count += 1;
        }
        if self.decisions.is_some() {
            self.explain_throttle(rq, now);
        }
        if !self.rules.throttles_tasks() {
            self.dequeue_throttled(rq, now);
        }
        let q = &mut self.rqs[rq];
        (q.throttled, q.throttled_at) = (true, now);
        if !self.rules.throttles_tasks() && (q.nr_running > 0 || !self.rules.throttle_clock_waits) {
            q.throttled_clock = Some(now);
        }
        if whole {
            self.task_throttle_setup_work(self.leaf(self.root_of(rq)));
        }
        true
    }

    /// `record_throttle_clock`: somebody is kept from running from now on.
    #[inline]
    pub(in crate::fair) fn record_throttle_clock(&mut self, rq: usize, now: Nanos) {
        let q = &mut self.rqs[rq];
        if q.throttled {
            q.throttled_clock.get_or_insert(now);
        }
    }

    /// The running task must go: a group above it has nothing left.
    #[cold]
    pub(super) fn explain_runtime_over(&mut self, rq: usize, now: Nanos) {
        let (group, left) = (self.rqs[rq].group, self.rqs[rq].runtime_remaining);
        let refill = self.pool(group).next_period.saturating_sub(now) as i64;
        let rule = (QUOTA_USED, None);
        let compared = [("runtime left", left), ("refill in", refill)];
        self.explain_end(self.root_of(rq), self.entity_of_queue(rq), rule, compared, now);
    }

    /// Who has nothing left, and when its pool is filled again.
    #[cold]
    fn explain_throttle(&mut self, rq: usize, now: Nanos) {
        let (group, left) = (self.rqs[rq].group, self.rqs[rq].runtime_remaining);
        let refill = self.pool(group).next_period.saturating_sub(now) as i64;
        let verdict = Verdict::Throttle(Pool::Group(group));
        let compared = [("runtime left", left), ("refill in", refill)];
        self.explain(self.root_of(rq), now, verdict, "its pool is empty", None, compared);
    }

    #[cold]
    fn explain_unthrottle(&mut self, rq: usize, since: Nanos, now: Nanos) {
        let (group, left) = (self.rqs[rq].group, self.rqs[rq].runtime_remaining);
        let verdict = Verdict::Unthrottle(Pool::Group(group));
        let compared = [("runtime left", left), ("throttled for", now.saturating_sub(since) as i64)];
        self.explain(self.root_of(rq), now, verdict, "its pool gave it runtime", None, compared);
    }

    /// The group's entity and those that it leaves alone go; counts follow up to the root.
    fn dequeue_throttled(&mut self, rq: usize, now: Nanos) {
        let mut id = self.entity_of_queue(rq);
        let mut counted = self.throttled_tasks(rq).leaving();
        let mut emptied = true;
        while id.is_some() && self.se(id).on_rq {
            let above = self.se(id).cfs_rq as usize;
            if emptied {
                let delayed = self.se(id).sched_delayed;
                let flags = Dequeue { sleep: true, special: true, delayed, ..Dequeue::default() };
                self.dequeue_entity(above, id, flags, now);
                emptied = self.rqs[above].load.weight == 0;
            } else {
                self.update_load_avg(above, id, false, now);
            }
            self.pass_idle(id, &mut counted);
            self.count(above, counted);
            id = self.se(id).parent;
        }
    }

    /// `unthrottle_cfs_rq`.
    pub(super) fn unthrottle_cfs_rq(&mut self, rq: usize, now: Nanos) {
        if self.rules.throttles_at_once() {
            self.update_curr_rq(rq, now);
        }
        if self.rules.throttles_tasks() && self.rqs[rq].runtime_remaining <= 0 {
            return;
        }
        let q = &mut self.rqs[rq];
        q.throttled = false;
        let (at, since, group) = (q.throttled_at, q.throttled_clock.take(), q.group);
        if self.decisions.is_some() {
            self.explain_unthrottle(rq, at, now);
        }
        let pool = self.pool(group);
        pool.stats.throttled_time += since.map_or(0, |since| now.saturating_sub(since));
        pool.throttled.retain(|throttled| *throttled != rq as u32);
        let mut below = self.subtree(rq);
        // A group is younger than the one above it: the deepest come first.
        below.reverse();
        for rq in below {
            self.tg_unthrottle_up(rq, now);
        }
        if !self.rules.throttles_tasks() && self.rqs[rq].load.weight != 0 {
            self.enqueue_throttled(rq, now);
        }
    }

    fn enqueue_throttled(&mut self, rq: usize, now: Nanos) {
        let wakeup = Enqueue { wakeup: true, ..Enqueue::default() };
        let mut id = self.entity_of_queue(rq);
        let mut counted = self.throttled_tasks(rq);
        let mut queued = false;
        while id.is_some() {
            let above = self.se(id).cfs_rq as usize;
            if !queued && self.se(id).sched_delayed {
                let flags = Dequeue { sleep: true, delayed: true, ..Dequeue::default() };
                self.dequeue_entity(above, id, flags, now);
            }
            queued |= self.se(id).on_rq;
            if queued {
                self.update_load_avg(above, id, true, now);
            } else {
                self.enqueue_entity(above, id, wakeup, now);
            }
            self.pass_idle(id, &mut counted);
            self.count(above, counted);
            if self.rqs[above].throttled {
                return;
            }
            id = self.se(id).parent;
        }
    }

    /// Tasks below an idle group count as idle above it.
    fn pass_idle(&self, id: EntityId, counted: &mut Counted) {
        if self.se(id).is_idle() {
            counted.idle = counted.tasks;
        }
    }

    fn throttled_tasks(&self, rq: usize) -> Counted {
        let q = &self.rqs[rq];
        Counted { tasks: q.h_nr_running as i32, idle: q.idle_h_nr_running as i32, delayed: q.h_nr_delayed as i32 }
    }

    /// The queue and those of the groups below on its CPU (`walk_tg_tree_from`).
    fn subtree(&self, rq: usize) -> Vec<usize> {
        let (top, cpu) = (self.rqs[rq].group, self.rqs[rq].cpu);
        let mut inside = vec![false; self.groups.len()];
        inside[top.index()] = true;
        for group in top.index() + 1..self.groups.len() {
            inside[group] = inside[self.groups[group].parent.index()];
        }
        let queues = inside.iter().enumerate().filter(|(_, inside)| **inside);
        queues.map(|(group, _)| group * self.config.nr_cpus + cpu.index()).collect()
    }

    /// Whether a queue stops counting upwards: its own entity is not queued.
    #[inline]
    pub(in crate::fair) fn is_cut_off(&self, rq: usize) -> bool {
        self.bandwidth_used && self.rqs[rq].throttled && !self.rules.throttles_tasks()
    }

    /// `throttled_lb_pair`: the task's group is throttled where it is or where it would go.
    #[inline]
    #[must_use]
    pub fn throttled_lb_pair(&self, task: TaskId, dst: CpuId) -> bool {
        self.bandwidth_used && {
            let here = self.entity(task).cfs_rq as usize;
            let there = self.group_queue(self.rqs[here].group, dst);
            self.rqs[here].throttle_count > 0 || self.rqs[there].throttle_count > 0
        }
    }

    /// The nearest group above the task that keeps it from running because its quota is used up here.
    #[must_use]
    pub fn throttled_by(&self, task: TaskId) -> Option<GroupId> {
        let mut rq = self.entity(task).cfs_rq as usize;
        if !self.bandwidth_used || !self.throttled_hierarchy(rq) && !self.entity(task).throttled {
            return None;
        }
        while !self.rqs[rq].throttled {
            let above = self.entity_of_queue(rq);
            if above.is_nil() {
                return None;
            }
            rq = self.se(above).cfs_rq as usize;
        }
        Some(self.rqs[rq].group)
    }

    /// `throttled_hierarchy`, where it keeps tasks from running.
    #[inline]
    pub(in crate::fair) fn throttled_hierarchy(&self, rq: usize) -> bool {
        self.bandwidth_used && self.rqs[rq].throttle_count > 0 && !self.rules.throttles_tasks()
    }
}
