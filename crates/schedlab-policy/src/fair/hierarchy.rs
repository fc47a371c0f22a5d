//! A task joining and leaving its CPU: the walks from its own queue up to the CPU's (`enqueue_task_fair`,
//! `dequeue_task_fair`, `dequeue_entities`; `for_each_sched_entity`).
//!
//! A group's entity is queued one level up while the group has somebody queued (or, delayed, while it owes service).
//! So an enqueue climbs until it meets an entity that is queued already, a dequeue until it leaves somebody behind;
//! from there to the root, counts, weights and, where a group's request is the shortest one inside it, slices follow.

use super::entity::EntityId;
use super::{Dequeue, Enqueue, Fair};
use crate::GroupSlice;
use schedlab_model::{CpuId, Nanos, TaskId};

/// What joins (or, negative, leaves) the counters of every level above a task.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counted {
    pub tasks: i32,
    pub idle: i32,
    pub delayed: i32,
}

impl Counted {
    pub fn leaving(self) -> Counted {
        Counted { tasks: -self.tasks, idle: -self.idle, delayed: -self.delayed }
    }
}

impl Fair {
    /// `enqueue_task_fair`: the task becomes runnable on the CPU, whose last CPU must be this one or be told by
    /// [`Fair::migrate_task_rq`] before. With `delayed` it must still be queued there.
    #[inline]
    pub fn enqueue_task(&mut self, cpu: CpuId, task: TaskId, flags: Enqueue, now: Nanos) {
        let id = EntityId::of(task);
        debug_assert_eq!(self.se(id).cpu, cpu, "a task is enqueued where it belongs");
        let rq = self.queue_of(id, cpu.index());
        if self.bandwidth_used && self.se(id).throttled && self.enqueue_throttled_task(id) {
            return;
        }
        if self.se(id).on_rq {
            if self.se(id).sched_delayed {
                self.util_est_enqueue(cpu.index(), id);
                self.requeue_delayed_entity(rq, id, now);
            }
            return;
        }
        if flags.initial {
            self.init_util_avg(id);
        }
        self.util_est_enqueue(cpu.index(), id);
        self.enqueue_entity(rq, id, flags, now);
        self.list_add(cpu.index(), id);
        let counted = self.counted(id);
        self.count(rq, counted);
        if self.grouped && self.se(id).parent.is_some() {
            self.enqueue_parents(rq, self.se(id).parent, counted, now);
        }
    }

    /// The queue of an entity whose CPU's own is `root`.
    #[inline]
    pub(super) fn queue_of(&self, id: EntityId, root: usize) -> usize {
        if self.grouped {
            self.se(id).cfs_rq as usize
        } else {
            root
        }
    }

    #[inline]
    pub(super) fn is_group(&self, id: EntityId) -> bool {
        self.grouped && id.is_some() && !self.se(id).is_task()
    }

    /// `dequeue_task_fair`. False: the task sleeps but stays queued, because it owes service (DELAY_DEQUEUE).
    #[inline]
    pub fn dequeue_task(&mut self, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool {
        let id = EntityId::of(task);
        debug_assert_eq!(self.se(id).cpu, cpu, "a task is dequeued where it is");
        if self.bandwidth_used && self.se(id).throttled {
            self.dequeue_throttled_task(id, flags);
            return true;
        }
        if !self.se(id).on_rq {
            return true;
        }
        if !self.se(id).sched_delayed {
            self.util_est_dequeue(cpu.index(), id);
        }
        let first = self.rules.pelt.util_est.updates_first();
        if flags.sleep && first {
            self.util_est_update(id);
        }
        let gone = self.dequeue_entities(self.queue_of(id, cpu.index()), id, flags, now);
        if flags.sleep && !first {
            self.util_est_update(id);
        }
        gone
    }

    /// A delayed entity was picked: now it really leaves (`dequeue_entities` with DEQUEUE_DELAYED).
    #[inline(never)]
    pub(super) fn finish_delayed_dequeue(&mut self, id: EntityId, now: Nanos) {
        let flags = Dequeue { sleep: true, delayed: true, ..Dequeue::default() };
        self.dequeue_entities(self.se(id).cfs_rq as usize, id, flags, now);
    }

    /// The delay ends for a task about to leave the class: it sleeps for good.
    pub fn end_delay(&mut self, task: TaskId, now: Nanos) {
        if self.entity(task).sched_delayed {
            self.finish_delayed_dequeue(EntityId::of(task), now);
        }
    }

    /// `dequeue_entities`; false: the entity stays, delayed.
    #[inline(always)]
    fn dequeue_entities(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) -> bool {
        let group = self.is_group(id);
        let mut counted = if group { Counted::default() } else { self.counted(id).leaving() };
        if flags.delayed {
            // The end of the delay counts it down by itself.
            counted.delayed = 0;
        }
        if !self.dequeue_entity(rq, id, flags, now) {
            return false;
        }
        if !group {
            self.list_del(self.root_of(rq), id);
        }
        self.count(rq, counted);
        if self.grouped && self.se(id).parent.is_some() {
            // 6.12.0 starts from no slice for a task, from that of nobody for a group, which is empty.
            let slice = if group { Nanos::MAX } else { 0 };
            self.dequeue_parents(rq, self.se(id).parent, (counted, slice), flags, now);
        }
        true
    }

    /// What a task is in the counters.
    #[inline]
    fn counted(&self, id: EntityId) -> Counted {
        let se = self.se(id);
        Counted { tasks: 1, idle: i32::from(se.is_idle()), delayed: i32::from(se.sched_delayed) }
    }

    #[inline]
    pub(super) fn count(&mut self, rq: usize, counted: Counted) {
        let q = &mut self.rqs[rq];
        q.h_nr_running = q.h_nr_running.wrapping_add_signed(counted.tasks);
        q.idle_h_nr_running = q.idle_h_nr_running.wrapping_add_signed(counted.idle);
        q.h_nr_delayed = q.h_nr_delayed.wrapping_add_signed(counted.delayed);
    }

    /// A task's dequeue is delayed, or no longer (`set_delayed`, `clear_delayed`): it is not runnable at any level.
    #[inline]
    pub(super) fn count_delayed(&mut self, id: EntityId, delayed: i32) {
        let mut at = id;
        while at.is_some() {
            let se = &self.entities[at.index()];
            let (rq, parent) = (se.cfs_rq as usize, se.parent);
            let q = &mut self.rqs[rq];
            q.h_nr_delayed = q.h_nr_delayed.wrapping_add_signed(delayed);
            if self.is_cut_off(rq) {
                return;
            }
            at = parent;
        }
    }

    /// The enqueue's way up from queue `below`, whose entity is `id`.
    #[inline(never)]
    fn enqueue_parents(&mut self, mut below: usize, mut id: EntityId, mut counted: Counted, now: Nanos) {
        let wakeup = Enqueue { wakeup: true, ..Enqueue::default() };
        while id.is_some() {
            if self.rqs[below].idle {
                counted.idle = counted.tasks;
            }
            if self.is_cut_off(below) {
                return;
            }
            let rq = self.se(id).cfs_rq as usize;
            if self.se(id).on_rq {
                if self.se(id).sched_delayed {
                    self.requeue_delayed_entity(rq, id, now);
                }
                break;
            }
            if self.rules.group_slice != GroupSlice::Base {
                let slice = self.min_slice(below);
                let se = self.se_mut(id);
                if slice != 0 {
                    (se.slice, se.custom_slice) = (slice, true);
                }
            }
            self.enqueue_entity(rq, id, wakeup, now);
            self.count(rq, counted);
            below = rq;
            id = self.se(id).parent;
        }
        let slice = self.min_slice(below);
        self.refresh_parents(id, slice, counted, now);
    }

    /// The dequeue's way up from queue `below`, which an entity has just left and whose entity is `id`.
    #[inline(never)]
    fn dequeue_parents(
        &mut self,
        mut below: usize,
        mut id: EntityId,
        (mut counted, mut slice): (Counted, Nanos),
        mut flags: Dequeue,
        now: Nanos,
    ) {
        let sleeps = flags.sleep;
        loop {
            if self.rqs[below].idle {
                counted.idle = counted.tasks;
            }
            if self.is_cut_off(below) {
                return;
            }
            if self.rqs[below].load.weight != 0 {
                slice = self.min_slice(below);
                if sleeps && id.is_some() && !self.throttled_hierarchy(below) {
                    // Keeps the CPU with the group: the sleeper left before its slice was over.
                    self.set_next_buddy(id);
                }
                break;
            }
            if id.is_nil() {
                return;
            }
            flags = Dequeue { sleep: true, special: false, delayed: false, migrating: false, ..flags };
            let rq = self.se(id).cfs_rq as usize;
            if !self.dequeue_entity(rq, id, flags, now) {
                if self.rules.group_slice != GroupSlice::Stale {
                    slice = self.min_slice(rq);
                }
                break;
            }
            self.count(rq, counted);
            below = rq;
            id = self.se(id).parent;
        }
        self.refresh_parents(id, slice, counted, now);
    }

    /// The rest of either way: entities that stay queued get the weight, and where the version does so the slice, that
    /// their group has now. `slice`: the shortest one of the level below `id`.
    fn refresh_parents(&mut self, mut id: EntityId, mut slice: Nanos, mut counted: Counted, now: Nanos) {
        while id.is_some() {
            let rq = self.se(id).cfs_rq as usize;
            self.update_load_avg(rq, id, true, now);
            self.update_runnable(id);
            self.update_cfs_group(id, now);
            if self.rules.group_slice != GroupSlice::Base {
                self.set_group_slice(rq, id, slice);
                slice = self.min_slice(rq);
            }
            self.count(rq, counted);
            if self.rqs[rq].idle {
                counted.idle = counted.tasks;
            }
            if self.is_cut_off(rq) {
                return;
            }
            id = self.se(id).parent;
        }
    }

    fn set_group_slice(&mut self, rq: usize, id: EntityId, slice: Nanos) {
        self.se_mut(id).slice = slice;
        let queued = self.se(id).on_rq && self.rqs[rq].curr != id;
        if queued {
            self.nodes[id.index()].set_slice(slice);
            // 6.12.0 leaves what the nodes above remember as it was.
            if self.rules.group_slice == GroupSlice::Exact {
                self.rqs[rq].tree.refresh(&mut self.nodes, id);
            }
        }
    }

    /// The running task of a CPU, or the group that will be left without one by the next pick.
    #[inline]
    pub(super) fn leaf(&self, cpu: usize) -> EntityId {
        let curr = self.rqs[cpu].curr;
        if self.grouped {
            self.leaf_below(curr)
        } else {
            curr
        }
    }

    #[inline(never)]
    fn leaf_below(&self, mut id: EntityId) -> EntityId {
        while id.is_some() {
            match self.se(id).my_q {
                None => break,
                Some(below) => id = self.rqs[below as usize].curr,
            }
        }
        id
    }

    /// `find_matching_se`: the ancestors of two entities, or they themselves, that compete with each other.
    #[inline]
    pub(super) fn find_matching_se(&self, a: EntityId, b: EntityId) -> (EntityId, EntityId) {
        if self.grouped {
            self.matching_ancestors(a, b)
        } else {
            (a, b)
        }
    }

    #[inline(never)]
    fn matching_ancestors(&self, mut a: EntityId, mut b: EntityId) -> (EntityId, EntityId) {
        while self.se(a).cfs_rq != self.se(b).cfs_rq {
            let (depth_a, depth_b) = (self.se(a).depth, self.se(b).depth);
            if depth_a >= depth_b {
                a = self.se(a).parent;
            }
            if depth_b >= depth_a {
                b = self.se(b).parent;
            }
        }
        (a, b)
    }
}
