//! An entity joins one queue (`enqueue_entity`, `requeue_delayed_entity`).

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use super::queues::Queues;
use crate::features::Feature;
use crate::flags::Enqueue;
use crate::{DelayedLag, KernelConfig};
use schedlab_model::{rarely, Nanos};

impl Queues {
    /// `enqueue_entity`.
    #[inline]
    pub fn enqueue_entity(&mut self, rq: usize, id: EntityId, flags: Enqueue, now: Nanos) {
        if self.config.is_eevdf() {
            self.enqueue_entity_eevdf(rq, id, flags, now);
        } else {
            self.enqueue_entity_cfs(rq, id, flags, now);
        }
    }

    /// CFS: every entity but a sleeper that stayed on this queue has a vruntime relative to min_vruntime.
    #[inline]
    fn enqueue_entity_cfs(&mut self, rq: usize, id: EntityId, flags: Enqueue, now: Nanos) {
        let (renorm, curr) = (!flags.wakeup || flags.migrated, self.arena.rqs[rq].curr == id);
        // The running entity must be on this queue's scale before it is charged; any other is placed at the present.
        if renorm && curr {
            self.arena.rqs[rq].make_absolute(&mut self.arena.entities[id]);
        }
        self.update_curr(rq, now);
        if renorm && !curr {
            self.arena.rqs[rq].make_absolute(&mut self.arena.entities[id]);
        }
        self.attach_load(rq, id, now);
        let (q, entities, config) = (&mut self.arena.rqs[rq], &mut self.arena.entities, &*self.config);
        if flags.wakeup {
            q.place_entity_cfs(&mut entities[id], config, None, now);
        }
        q.join(entities, config, id, flags, curr);
        self.check_first_enqueue(rq, now);
    }

    /// EEVDF: every enqueue places.
    #[inline]
    fn enqueue_entity_eevdf(&mut self, rq: usize, id: EntityId, flags: Enqueue, now: Nanos) {
        let flags = Enqueue { initial: flags.initial && !self.config.rules.fork_places, ..flags };
        let curr = self.arena.rqs[rq].curr == id;
        if curr {
            let (q, entities) = (&mut self.arena.rqs[rq], &mut self.arena.entities);
            q.place_entity(entities, &self.config, id, flags, q.nr_running);
        }
        self.update_curr(rq, now);
        // A group's lag is rescaled to its present weight before it is placed by it.
        self.attach_load(rq, id, now);
        let (q, entities, config) = (&mut self.arena.rqs[rq], &mut self.arena.entities, &*self.config);
        if !curr {
            q.place_entity(entities, config, id, flags, q.nr_running);
        }
        q.join(entities, config, id, flags, curr);
        self.check_first_enqueue(rq, now);
    }

    /// The part of every enqueue that concerns load: the queue's average, and the weight of a group's entity.
    #[inline(always)]
    fn attach_load(&mut self, rq: usize, id: EntityId, now: Nanos) {
        let signals = &self.config.rules.pelt;
        // The group's sum is updated once: here, or with the attached load.
        let attached = self.arena.entities[id].avg.last_update_time != 0;
        self.arena.update_load_avg(signals, rq, id, attached, now);
        if !attached {
            self.arena.attach_entity_load_avg(signals, rq, id, now);
        }
        if self.arena.is_group(id) {
            self.arena.se_update_runnable(signals, id);
            self.update_cfs_group(id, now);
        }
    }

    /// `enqueue_entity` from 7.3 on: the entity counts on its group's queue.
    pub fn join_hierarchy(&mut self, rq: usize, id: EntityId, flags: Enqueue, now: Nanos) {
        self.attach_load(rq, id, now);
        self.arena.rqs[rq].account_entity_enqueue(&self.arena.entities[id], &self.config.rules.pelt);
        self.arena.entities[id].joined(flags);
        self.check_first_enqueue(rq, now);
    }

    /// The first entity on a queue: its group may have no runtime left.
    #[inline(always)]
    fn check_first_enqueue(&mut self, rq: usize, now: Nanos) {
        if rarely(self.pools.used) {
            self.check_first(rq, now);
        }
    }

    #[inline(never)]
    fn check_first(&mut self, rq: usize, now: Nanos) {
        let q = &self.arena.rqs[rq];
        if q.runtime_enabled && q.nr_running == 1 {
            self.check_enqueue_throttle(rq, now);
            if !self.config.rules.throttles_tasks() {
                self.arena.rqs[rq].record_throttle_clock(now);
            }
        }
    }

    /// `requeue_delayed_entity`: an entity whose dequeue is delayed is woken. Up to 7.0 credit gained meanwhile is
    /// dropped (DELAY_ZERO) by placing it anew. From 7.1 on the entity is placed by its healed lag wherever that
    /// differs from where it stands, and from 7.2 on the running entity is charged first.
    pub fn requeue_delayed_entity(&mut self, rq: usize, id: EntityId, now: Nanos) {
        if self.config.rules.delayed_lag == DelayedLag::Heals {
            if self.config.rules.requeue_charges {
                self.update_curr_eevdf(rq, now);
            }
            if self.arena.rqs[rq].update_entity_lag(&mut self.arena.entities, &self.config, id) {
                self.place_queued_again(rq, id);
            }
        } else if self.config.has(Feature::DelayZero) {
            self.arena.rqs[rq].update_entity_lag(&mut self.arena.entities, &self.config, id);
            if self.arena.entities[id].vlag > 0 {
                self.arena.entities[id].vlag = 0;
                self.place_queued_again(rq, id);
            }
        }
        self.change_delayed(rq, id, false, now);
    }

    fn place_queued_again(&mut self, rq: usize, id: EntityId) {
        let (q, entities, config) = (&mut self.arena.rqs[rq], &mut self.arena.entities, &self.config);
        let queued = q.curr != id;
        if queued {
            q.__dequeue_entity(entities, config, id);
        }
        q.place_entity(entities, config, id, Enqueue::default(), q.nr_competing(config) - 1);
        if queued {
            q.__enqueue_entity(entities, config, id);
        }
    }
}

impl CfsRq {
    /// The entity, which has its place in virtual time, joins; `curr`: it runs, and stays outside the tree.
    #[inline(always)]
    fn join(&mut self, entities: &mut Entities, config: &KernelConfig, id: EntityId, flags: Enqueue, curr: bool) {
        let (se, nodes) = entities.with_nodes(id);
        self.account_entity_enqueue(se, &config.rules.pelt);
        se.joined(flags);
        if !curr {
            self.join_tree(se, nodes, config, id);
            self.tree_changed(entities, config);
        }
    }
}

impl Entity {
    /// It is on a queue from now on.
    #[inline]
    fn joined(&mut self, flags: Enqueue) {
        if flags.migrated {
            self.exec_start = 0;
        }
        self.asleep = false;
        self.on_rq = true;
    }
}
