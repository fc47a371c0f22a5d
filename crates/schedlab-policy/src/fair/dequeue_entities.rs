//! A task, or a group that was delayed, leaves its CPU: the walk from its own queue up to the CPU's
//! (`dequeue_task_fair`, `dequeue_entities`).
//!
//! A dequeue climbs until it leaves an entity behind on a queue; from there to the root, counters, weights and slices
//! follow as they do after an enqueue.

use super::arena::Counted;
use super::entity::EntityId;
use super::queues::Queues;
use crate::flags::Dequeue;
use crate::GroupSlice;
use schedlab_model::{rarely, CpuId, Nanos};

impl Queues {
    /// `dequeue_task_fair`. False: the task sleeps but stays queued, because it owes service (DELAY_DEQUEUE).
    #[inline]
    pub fn dequeue_task_fair(&mut self, cpu: CpuId, id: EntityId, flags: Dequeue, now: Nanos) -> bool {
        if rarely(self.pools.used) && self.arena.entities[id].throttled {
            self.dequeue_throttled_task(id, flags);
            return true;
        }
        if !self.arena.entities[id].on_rq {
            return true;
        }
        if !self.arena.entities[id].sched_delayed {
            self.arena.util_est_dequeue(&self.config, cpu, id);
        }
        let first = self.config.rules.pelt.util_est.updates_first();
        if flags.sleep && first {
            self.arena.util_est_update(&self.config, cpu, id);
        }
        let dequeued = self.dequeue_entities(self.arena.queue_of(id, cpu.index()), id, flags, now);
        if flags.sleep && !first {
            self.arena.util_est_update(&self.config, cpu, id);
        }
        dequeued
    }

    /// The delay of an entity ends: it leaves the queue (`dequeue_entities` with DEQUEUE_DELAYED).
    #[inline(never)]
    pub fn finish_delayed_dequeue(&mut self, id: EntityId, now: Nanos) {
        self.dequeue_entities(self.arena.entities[id].rq(), id, Dequeue::DELAYED, now);
    }

    /// `dequeue_entities`; false: the entity stays, delayed.
    #[inline(always)]
    fn dequeue_entities(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) -> bool {
        if rarely(self.config.rules.flat_hierarchy) {
            let root = self.arena.root_of(rq);
            let dequeued = self.dequeue_flat(root, id, flags, now);
            if dequeued {
                self.list_del(root, id);
            }
            return dequeued;
        }
        if !self.dequeue_entity(rq, id, flags, now) {
            return false;
        }
        let group = self.arena.is_group(id);
        let mut counted = if group { Counted::default() } else { Counted::task(&self.arena.entities[id]).leaving() };
        if flags.delayed {
            // The end of the delay counts it down by itself.
            counted.delayed = 0;
        }
        if !group {
            let root = self.arena.root_of(rq);
            self.list_del(root, id);
        }
        self.arena.rqs[rq].count(counted);
        if rarely(self.arena.grouped) && self.arena.entities[id].parent.is_some() {
            // 6.12.0 starts from no slice for a task, and for a group, which is empty, from that of an empty queue.
            let slice = if group { Nanos::MAX } else { 0 };
            let way = Way { below: rq, id: self.arena.entities[id].parent, counted, slice };
            self.dequeue_parents(way, flags, now);
        }
        true
    }

    /// The part of `account_entity_dequeue` that concerns the CPU's tasks.
    #[inline]
    fn list_del(&mut self, root: usize, id: EntityId) {
        if let Some(cache) = &mut self.sched_cache {
            cache.account_llc_dequeue(CpuId(root as u32), id.task_id());
        }
        self.arena.rqs[root].list_del(&mut self.arena.entities.neighbours, id);
    }

    /// The way up after an entity has left.
    #[inline(never)]
    fn dequeue_parents(&mut self, way: Way, mut flags: Dequeue, now: Nanos) {
        let Way { mut below, mut id, mut counted, mut slice } = way;
        let sleeps = flags.sleep;
        loop {
            counted.pass(self.arena.rqs[below].idle);
            if self.is_cut_off(below) {
                return;
            }
            if self.arena.rqs[below].load.weight != 0 {
                slice = self.arena.rqs[below].cfs_rq_min_slice(&self.arena.entities);
                if sleeps && id.is_some() && !self.throttled_hierarchy(below) {
                    // Keeps the CPU with the group: the sleeper left before its slice was over.
                    self.arena.set_next_buddy(id);
                }
                break;
            }
            if id.is_nil() {
                return;
            }
            flags = Dequeue { sleep: true, special: false, delayed: false, migrating: false, ..flags };
            let rq = self.arena.entities[id].rq();
            if !self.dequeue_entity(rq, id, flags, now) {
                if self.config.rules.group_slice != GroupSlice::Stale {
                    slice = self.arena.rqs[rq].cfs_rq_min_slice(&self.arena.entities);
                }
                break;
            }
            self.arena.rqs[rq].count(counted);
            below = rq;
            id = self.arena.entities[id].parent;
        }
        self.update_parents(id, slice, counted, now);
    }
}

/// Where a dequeue's way up begins: the queue that an entity has left, and what stands for it one level up.
struct Way {
    below: usize,
    id: EntityId,
    counted: Counted,
    slice: Nanos,
}
