//! An entity leaves one queue, or sleeps and stays queued (`dequeue_entity`, delayed dequeue).

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use super::explain::Reason;
use super::place_entity::relative;
use super::queues::Queues;
use crate::decision::Action;
use crate::features::Feature;
use crate::flags::Dequeue;
use crate::{DelayedLag, KernelConfig, ZeroPoint};
use schedlab_model::{rarely, Nanos};

impl Queues {
    /// `dequeue_entity`; false: the entity stays, delayed.
    #[inline(always)]
    pub fn dequeue_entity(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) -> bool {
        if !self.config.is_eevdf() {
            self.dequeue_entity_cfs(rq, id, flags, now);
            return true;
        }
        self.update_curr(rq, now);
        if !flags.delayed && self.delays(rq, id, flags) {
            self.set_delayed(rq, id, now);
            return false;
        }
        self.dequeue_entity_eevdf(rq, id, flags, now);
        if flags.delayed {
            self.finish_delayed_dequeue_entity(rq, id);
        }
        true
    }

    /// CFS: a sleeper keeps its absolute vruntime, any other entity leaves with a relative one.
    #[inline(never)]
    fn dequeue_entity_cfs(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) {
        self.update_curr(rq, now);
        self.detach_load(rq, id, flags, now);
        self.arena.clear_buddies(rq, id);
        let (q, entities) = (&mut self.arena.rqs[rq], &mut self.arena.entities);
        q.leave(entities, &self.config, id, flags);
        if !flags.sleep {
            q.make_relative(&mut entities[id]);
        }
        self.return_runtime(rq, now);
        self.reweigh_group(id, now);
        if !flags.save {
            self.arena.rqs[rq].update_min_vruntime(&self.arena.entities, &self.config);
        }
    }

    /// EEVDF, after `update_curr` and once the entity is known to leave: its lag is saved.
    #[inline(never)]
    fn dequeue_entity_eevdf(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) {
        self.detach_load(rq, id, flags, now);
        self.arena.clear_buddies(rq, id);
        let (q, entities, config) = (&mut self.arena.rqs[rq], &mut self.arena.entities, &*self.config);
        q.update_entity_lag(entities, config, id);
        if config.has(Feature::PlaceRelDeadline) && !flags.sleep {
            let se = &mut entities[id];
            se.deadline = relative(se.deadline, se.vruntime);
            se.rel_deadline = true;
        }
        q.leave(entities, config, id, flags);
        if q.nr_running > 0 && !flags.save && config.rules.zero == ZeroPoint::Minimum {
            q.update_min_vruntime(entities, config);
        }
        self.return_runtime(rq, now);
        self.reweigh_group(id, now);
    }

    /// The part of every dequeue that concerns load, before the entity leaves.
    #[inline(always)]
    fn detach_load(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) {
        let signals = &self.config.rules.pelt;
        let detaches = flags.migrating && signals.detach_in_dequeue && self.arena.entities[id].is_task();
        self.arena.update_load_avg(signals, rq, id, !detaches, now);
        if detaches {
            self.arena.detach_entity_load_avg(signals, rq, id, now);
        }
        if self.arena.is_group(id) {
            self.arena.se_update_runnable(signals, id);
        }
    }

    #[inline]
    fn reweigh_group(&mut self, id: EntityId, now: Nanos) {
        if self.arena.is_group(id) {
            self.update_cfs_group(id, now);
        }
    }

    /// `dequeue_entity` from 7.3 on: the entity no longer counts on its group's queue.
    pub fn leave_hierarchy(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) {
        self.detach_load(rq, id, flags, now);
        let se = &mut self.arena.entities[id];
        se.left(flags);
        self.arena.rqs[rq].account_entity_dequeue(se, &self.config.rules.pelt);
        self.return_runtime(rq, now);
        self.reweigh_group(id, now);
    }

    /// Returns the runtime of a queue that has become empty to the pool of its group.
    #[inline(always)]
    fn return_runtime(&mut self, rq: usize, now: Nanos) {
        if rarely(self.pools.used) {
            let q = &mut self.arena.rqs[rq];
            if q.runtime_enabled && q.nr_running == 0 {
                self.pools.return_cfs_rq_runtime(q, &self.config, now);
            }
        }
    }

    /// Whether a dequeue is delayed: a plain sleep of an entity that received more than its share, which one that is
    /// alone never has.
    #[inline(always)]
    pub fn delays(&self, rq: usize, id: EntityId, flags: Dequeue) -> bool {
        let sleeps = flags.sleep && !flags.special && !flags.throttle && !self.arena.entities[id].sched_delayed;
        let q = &self.arena.rqs[rq];
        sleeps
            && self.config.has(Feature::DelayDequeue)
            && q.nr_competing(&self.config) > 1
            && !q.entity_eligible(&self.arena.entities, id)
    }

    /// `set_delayed` on the queue where the entity competes, with the part of `dequeue_entity` around it.
    #[inline(always)]
    pub fn set_delayed(&mut self, rq: usize, id: EntityId, now: Nanos) {
        self.arena.clear_buddies(rq, id);
        if self.config.rules.delayed_lag == DelayedLag::Heals {
            self.arena.rqs[rq].update_entity_lag(&mut self.arena.entities, &self.config, id);
        }
        self.change_delayed(self.arena.queue_of(id, rq), id, true, now);
        if self.is_recording() {
            self.explain_delay(rq, id, now);
        }
    }

    /// Sets or clears `sched_delayed`. The averages are updated before, because the entity counts as runnable up to
    /// now.
    #[inline(always)]
    pub fn change_delayed(&mut self, rq: usize, id: EntityId, delayed: bool, now: Nanos) {
        if rarely(self.arena.grouped) {
            self.arena.update_load_avg(&self.config.rules.pelt, rq, id, false, now);
            self.arena.entities[id].sched_delayed = delayed;
            return self.count_delayed(rq, id, if delayed { 1 } else { -1 });
        }
        let at = self.arena.cfs_rq_clock_pelt(rq, now);
        let (q, se) = (&mut self.arena.rqs[rq], &mut self.arena.entities[id]);
        q.update_load_avg(se, id, at, &self.config.rules.pelt);
        se.sched_delayed = delayed;
        q.h_nr_delayed = q.h_nr_delayed.wrapping_add_signed(if delayed { 1 } else { -1 });
    }

    /// `clear_delayed`.
    #[inline(always)]
    pub fn clear_delayed(&mut self, rq: usize, id: EntityId) {
        self.arena.entities[id].sched_delayed = false;
        self.count_delayed(rq, id, -1);
    }

    /// `finish_delayed_dequeue_entity`: the counters of the levels above are the caller's.
    fn finish_delayed_dequeue_entity(&mut self, rq: usize, id: EntityId) {
        self.clear_delayed(rq, id);
        if self.config.has(Feature::DelayZero) {
            let se = &mut self.arena.entities[id];
            se.vlag = se.vlag.min(0);
        }
    }

    /// Changes the number of runnable tasks at every level when the dequeue of a task becomes delayed or is no longer.
    /// `rq`: its queue where there are no groups; with groups it is not used.
    #[inline]
    pub fn count_delayed(&mut self, rq: usize, id: EntityId, delayed: i32) {
        if rarely(self.arena.grouped) {
            return self.count_delayed_levels(id, delayed);
        }
        let q = &mut self.arena.rqs[rq];
        q.h_nr_delayed = q.h_nr_delayed.wrapping_add_signed(delayed);
    }

    #[inline(never)]
    fn count_delayed_levels(&mut self, id: EntityId, delayed: i32) {
        if self.arena.is_group(id) {
            return;
        }
        let mut at = id;
        while at.is_some() {
            let se = &self.arena.entities[at];
            let (rq, parent) = (se.rq(), se.parent);
            let q = &mut self.arena.rqs[rq];
            q.h_nr_delayed = q.h_nr_delayed.wrapping_add_signed(delayed);
            if self.is_cut_off(rq) {
                return;
            }
            at = parent;
        }
    }

    #[cold]
    fn explain_delay(&mut self, rq: usize, id: EntityId, now: Nanos) {
        let (q, entities) = (&self.arena.rqs[rq], &self.arena.entities);
        let v = q.average(entities).vruntime();
        let compared = [("vruntime", q.key(entities[id].vruntime)), ("V", q.key(v))];
        let reason = Reason { rule: "sleeps while not eligible", feature: Some(Feature::DelayDequeue), compared };
        let action = self.arena.stands_for(id).map_or(Action::Delay(id.task_id()), Action::DelayGroup);
        self.explain(rq, now, action, reason);
    }
}

impl CfsRq {
    /// The entity leaves the queue.
    #[inline(always)]
    fn leave(&mut self, entities: &mut Entities, config: &KernelConfig, id: EntityId, flags: Dequeue) {
        let (se, nodes) = entities.with_nodes(id);
        let in_tree = self.curr != id;
        if in_tree {
            self.leave_tree(se, nodes, config, id);
        }
        se.left(flags);
        self.account_entity_dequeue(se, &config.rules.pelt);
        if in_tree {
            self.tree_changed(entities, config);
        }
    }
}

impl Entity {
    /// It is on no queue from now on.
    #[inline]
    fn left(&mut self, flags: Dequeue) {
        self.on_rq = false;
        self.asleep = flags.sleep;
    }
}
