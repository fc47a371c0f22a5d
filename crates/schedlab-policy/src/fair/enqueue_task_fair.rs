//! A task joins its CPU: the walk from its own queue up to the CPU's (`enqueue_task_fair`).
//!
//! A group's entity is queued one level up while anything is queued in the group (or, delayed, while the group owes
//! service). So an enqueue climbs until it meets an entity that is queued already; from there to the root, counters,
//! weights and, where a group's request is the shortest one inside it, slices follow.

use super::arena::Counted;
use super::entity::EntityId;
use super::queues::Queues;
use crate::flags::Enqueue;
use crate::GroupSlice;
use schedlab_model::{rarely, CpuId, Nanos};

impl Queues {
    /// `enqueue_task_fair`. The part for a task that is still queued is inlined: every wakeup of such a task takes it.
    #[inline(always)]
    pub fn enqueue_task_fair(&mut self, cpu: CpuId, id: EntityId, flags: Enqueue, now: Nanos) {
        if rarely(self.pools.used) && self.arena.entities[id].throttled && self.enqueue_throttled_task(id) {
            return;
        }
        let se = &self.arena.entities[id];
        if !se.on_rq {
            return self.enqueue_unqueued_task(cpu, id, flags, now);
        }
        if se.sched_delayed {
            self.arena.util_est_enqueue(&self.config, cpu, id);
            let rq = self.arena.queue_of(id, cpu.index());
            self.requeue_delayed_entity(self.arena.competes_on(rq), id, now);
        }
    }

    /// The same of a task that is not queued.
    #[inline(never)]
    fn enqueue_unqueued_task(&mut self, cpu: CpuId, id: EntityId, flags: Enqueue, now: Nanos) {
        let rq = self.arena.queue_of(id, cpu.index());
        if flags.initial {
            self.arena.post_init_entity_util_avg(&self.config.rules.pelt, cpu, id);
        }
        self.arena.util_est_enqueue(&self.config, cpu, id);
        if rarely(self.config.rules.flat_hierarchy) {
            self.enqueue_flat(cpu, id, flags, now);
            return self.list_add(cpu, id);
        }
        self.enqueue_entity(rq, id, flags, now);
        self.list_add(cpu, id);
        let counted = Counted::task(&self.arena.entities[id]);
        self.arena.rqs[rq].count(counted);
        if rarely(self.arena.grouped) && self.arena.entities[id].parent.is_some() {
            self.enqueue_parents(rq, self.arena.entities[id].parent, counted, now);
        }
    }

    /// The part of `account_entity_enqueue` that concerns the CPU's tasks.
    #[inline]
    fn list_add(&mut self, cpu: CpuId, id: EntityId) {
        if let Some(cache) = &mut self.sched_cache {
            cache.account_llc_enqueue(cpu, id.task_id());
        }
        self.arena.rqs[cpu.index()].list_add(&mut self.arena.entities.neighbours, id);
    }

    /// The way up from queue `below`, whose entity is `id`.
    #[inline(never)]
    fn enqueue_parents(&mut self, mut below: usize, mut id: EntityId, mut counted: Counted, now: Nanos) {
        while id.is_some() {
            counted.pass(self.arena.rqs[below].idle);
            if self.is_cut_off(below) {
                return;
            }
            let rq = self.arena.entities[id].rq();
            if self.arena.entities[id].on_rq {
                if self.arena.entities[id].sched_delayed {
                    self.requeue_delayed_entity(rq, id, now);
                }
                break;
            }
            if self.config.rules.group_slice != GroupSlice::Base {
                let slice = self.arena.rqs[below].cfs_rq_min_slice(&self.arena.entities);
                let se = &mut self.arena.entities[id];
                if slice != 0 {
                    (se.slice, se.custom_slice) = (slice, true);
                }
            }
            self.enqueue_entity(rq, id, Enqueue::WAKEUP, now);
            self.arena.rqs[rq].count(counted);
            below = rq;
            id = self.arena.entities[id].parent;
        }
        let slice = self.arena.rqs[below].cfs_rq_min_slice(&self.arena.entities);
        self.update_parents(id, slice, counted, now);
    }

    /// The rest of an enqueue's or a dequeue's way up: entities that stay queued get the weight, and where the version
    /// does so the slice, that their group has now. `slice`: the shortest one of the level below `id`.
    pub fn update_parents(&mut self, mut id: EntityId, mut slice: Nanos, mut counted: Counted, now: Nanos) {
        while id.is_some() {
            let rq = self.arena.entities[id].rq();
            self.arena.update_load_avg(&self.config.rules.pelt, rq, id, true, now);
            self.arena.se_update_runnable(&self.config.rules.pelt, id);
            self.update_cfs_group(id, now);
            if self.config.rules.group_slice != GroupSlice::Base {
                self.set_group_slice(rq, id, slice);
                slice = self.arena.rqs[rq].cfs_rq_min_slice(&self.arena.entities);
            }
            let q = &mut self.arena.rqs[rq];
            q.count(counted);
            counted.pass(q.idle);
            if self.is_cut_off(rq) {
                return;
            }
            id = self.arena.entities[id].parent;
        }
    }

    fn set_group_slice(&mut self, rq: usize, id: EntityId, slice: Nanos) {
        let (q, se) = (&self.arena.rqs[rq], &mut self.arena.entities[id]);
        se.slice = slice;
        if se.on_rq && q.curr != id {
            self.arena.entities.nodes[id.index()].slice = slice;
            // 6.12.0 leaves what the nodes above record as it was.
            if self.config.rules.group_slice == GroupSlice::Exact {
                q.tree.refresh(&mut self.arena.entities.nodes, id);
            }
        }
    }
}
