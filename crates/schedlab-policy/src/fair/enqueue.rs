//! Entities joining and leaving one queue (`enqueue_entity`, `dequeue_entity`, delayed dequeue).

use super::entity::EntityId;
use super::place::relative;
use super::{Dequeue, Enqueue, Fair};
use crate::decision::Verdict;
use crate::features::Feature;
use crate::{DelayedLag, TreeKey, ZeroPoint};
use schedlab_model::Nanos;

impl Fair {
    /// `enqueue_entity`.
    #[inline]
    pub(super) fn enqueue_entity(&mut self, rq: usize, id: EntityId, flags: Enqueue, now: Nanos) {
        if self.eevdf {
            self.enqueue_entity_eevdf(rq, id, flags, now);
        } else {
            self.enqueue_entity_cfs(rq, id, flags, now);
        }
    }

    /// `dequeue_entity`; false: the entity stays, delayed.
    #[inline(always)]
    pub(super) fn dequeue_entity(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) -> bool {
        if !self.eevdf {
            self.dequeue_entity_cfs(rq, id, flags, now);
            return true;
        }
        self.update_curr_rq(rq, now);
        if !flags.delayed && self.delays(rq, id, flags) {
            self.delay_dequeue(rq, id, now);
            return false;
        }
        self.dequeue_entity_eevdf(rq, id, flags, now);
        if flags.delayed {
            self.finish_delayed_entity(id);
        }
        true
    }

    /// `finish_delayed_dequeue_entity`: the counters of the levels above are the caller's.
    fn finish_delayed_entity(&mut self, id: EntityId) {
        let clip = self.config.has(Feature::DelayZero);
        self.clear_delayed(id);
        if clip {
            let se = self.se_mut(id);
            se.vlag = se.vlag.min(0);
        }
    }

    /// `clear_delayed`.
    #[inline(always)]
    fn clear_delayed(&mut self, id: EntityId) {
        self.se_mut(id).sched_delayed = false;
        if !self.is_group(id) {
            self.count_delayed(id, -1);
        }
    }

    /// `enqueue_entity` of CFS. Everyone but a sleeper that stayed here brings a vruntime relative to min_vruntime.
    #[inline]
    fn enqueue_entity_cfs(&mut self, rq: usize, id: EntityId, flags: Enqueue, now: Nanos) {
        let (renorm, curr) = (!flags.wakeup || flags.migrated, self.rqs[rq].curr == id);
        // The running entity must be on this queue's scale before it is charged; any other is placed at the present.
        if renorm && curr {
            self.renormalise(rq, id);
        }
        self.update_curr_rq(rq, now);
        if renorm && !curr {
            self.renormalise(rq, id);
        }
        self.weigh_group(rq, id, now);
        self.account_entity_enqueue(rq, id);
        if flags.wakeup {
            self.place_entity_cfs(rq, id, false, now);
        }
        self.join(rq, id, flags, curr, now);
    }

    /// `enqueue_entity` of EEVDF: every enqueue places.
    #[inline]
    fn enqueue_entity_eevdf(&mut self, rq: usize, id: EntityId, flags: Enqueue, now: Nanos) {
        let flags = Enqueue { initial: flags.initial && !self.rules.fork_places, ..flags };
        let curr = self.rqs[rq].curr == id;
        if curr {
            self.place_entity_eevdf(rq, id, flags);
        }
        self.update_curr_rq(rq, now);
        // A group's lag is rescaled to its weight of now before it is placed by it.
        self.weigh_group(rq, id, now);
        if !curr {
            self.place_entity_eevdf(rq, id, flags);
        }
        self.account_entity_enqueue(rq, id);
        self.join(rq, id, flags, curr, now);
    }

    /// The part of every enqueue that concerns loads: the queue's, and the weight of a group's entity.
    #[inline]
    fn weigh_group(&mut self, rq: usize, id: EntityId, now: Nanos) {
        // Whoever joins is told of once, with what he brings.
        let attached = self.se(id).avg.last_update_time != 0;
        self.update_load_avg(rq, id, attached, now);
        if !attached {
            self.attach_load_avg(rq, id, now);
        }
        if self.is_group(id) {
            self.update_runnable(id);
            self.update_cfs_group(id, now);
        }
    }

    /// The part of every dequeue that concerns loads, before the entity leaves.
    #[inline]
    fn weigh_leaver(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) {
        let detaches = flags.migrating && self.rules.pelt.detach_in_dequeue && self.se(id).is_task();
        self.update_load_avg(rq, id, !detaches, now);
        if detaches {
            self.detach_in_dequeue(rq, id, now);
        }
        if self.is_group(id) {
            self.update_runnable(id);
        }
    }

    #[inline]
    fn reweigh_group(&mut self, id: EntityId, now: Nanos) {
        if self.is_group(id) {
            self.update_cfs_group(id, now);
        }
    }

    #[inline]
    fn join(&mut self, rq: usize, id: EntityId, flags: Enqueue, curr: bool, now: Nanos) {
        let se = self.se_mut(id);
        if flags.migrated {
            se.exec_start = 0;
        }
        se.asleep = false;
        if !curr {
            self.tree_insert(rq, id);
        }
        self.se_mut(id).on_rq = true;
        if self.bandwidth_used && self.rqs[rq].runtime_enabled && self.rqs[rq].nr_running == 1 {
            self.check_enqueue_throttle(rq, now);
            if !self.rules.throttles_tasks() {
                self.record_throttle_clock(rq, now);
            }
        }
    }

    #[inline]
    pub(super) fn renormalise(&mut self, rq: usize, id: EntityId) {
        let min = self.rqs[rq].min_vruntime;
        let se = self.se_mut(id);
        se.vruntime = min.plus(se.vruntime.0 as i64);
    }

    /// `dequeue_entity` of CFS. A sleeper keeps its absolute vruntime, anyone else leaves with a relative one.
    #[inline(never)]
    fn dequeue_entity_cfs(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) {
        self.update_curr_rq(rq, now);
        self.weigh_leaver(rq, id, flags, now);
        self.leave(rq, id, flags, now);
        if !flags.sleep {
            let min = self.rqs[rq].min_vruntime;
            let se = self.se_mut(id);
            se.vruntime = relative(se.vruntime, min);
        }
        self.reweigh_group(id, now);
        if !flags.save {
            self.update_min_vruntime(rq);
        }
    }

    /// `dequeue_entity` of EEVDF, after `update_curr` and once the entity is known to leave: its lag is saved.
    #[inline(never)]
    fn dequeue_entity_eevdf(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) {
        self.weigh_leaver(rq, id, flags, now);
        self.update_entity_lag(rq, id);
        if self.config.has(Feature::PlaceRelDeadline) && !flags.sleep {
            let se = self.se_mut(id);
            se.deadline = relative(se.deadline, se.vruntime);
            se.rel_deadline = true;
        }
        self.leave(rq, id, flags, now);
        self.reweigh_group(id, now);
        if !flags.save && self.rules.zero == ZeroPoint::Minimum {
            self.update_min_vruntime(rq);
        }
    }

    #[inline]
    fn leave(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) {
        self.clear_buddies(rq, id);
        if self.rqs[rq].curr != id {
            self.tree_erase(rq, id);
        }
        let se = self.se_mut(id);
        se.on_rq = false;
        se.asleep = flags.sleep;
        self.account_entity_dequeue(rq, id);
        if self.bandwidth_used && self.rqs[rq].runtime_enabled && self.rqs[rq].nr_running == 0 {
            self.return_cfs_rq_runtime(rq, now);
        }
    }

    /// Whether a dequeue is put off: a plain sleep of an entity that received more than its share.
    #[inline(always)]
    fn delays(&self, rq: usize, id: EntityId, flags: Dequeue) -> bool {
        let sleeps = flags.sleep && !flags.special && !flags.throttle && !self.se(id).sched_delayed;
        sleeps && self.config.has(Feature::DelayDequeue) && !self.entity_eligible(rq, id)
    }

    #[inline(always)]
    fn delay_dequeue(&mut self, rq: usize, id: EntityId, now: Nanos) {
        self.clear_buddies(rq, id);
        self.update_load_avg(rq, id, false, now);
        if self.rules.delayed_lag == DelayedLag::Heals {
            self.update_entity_lag(rq, id);
        }
        self.se_mut(id).sched_delayed = true;
        if !self.is_group(id) {
            self.count_delayed(id, 1);
        }
        if self.decisions.is_some() {
            self.explain_delay(rq, id, now);
        }
    }

    #[cold]
    fn explain_delay(&mut self, rq: usize, id: EntityId, now: Nanos) {
        let v = self.average(rq).vruntime();
        let compared = [("vruntime", self.rqs[rq].key(self.se(id).vruntime)), ("V", self.rqs[rq].key(v))];
        let rule = "sleeps while not eligible";
        let verdict = self.stands_for(id).map_or(Verdict::Delay(id.task_id()), Verdict::DelayGroup);
        self.explain(rq, now, verdict, rule, Some(Feature::DelayDequeue), compared);
    }

    /// `requeue_delayed_entity`: a wakeup met a delayed entity. Up to 6.18 credit gained meanwhile is dropped
    /// (DELAY_ZERO) by placing it anew, and the running entity is not charged first. 7.x charges it, and places the
    /// entity by its healed lag wherever that differs from where it stands.
    pub(super) fn requeue_delayed_entity(&mut self, rq: usize, id: EntityId, now: Nanos) {
        if self.rules.delayed_lag == DelayedLag::Heals {
            self.update_curr_rq(rq, now);
            if self.update_entity_lag(rq, id) {
                self.replace_delayed(rq, id);
            }
        } else if self.config.has(Feature::DelayZero) {
            self.update_entity_lag(rq, id);
            if self.se(id).vlag > 0 {
                self.se_mut(id).vlag = 0;
                self.replace_delayed(rq, id);
            }
        }
        self.update_load_avg(rq, id, false, now);
        self.clear_delayed(id);
    }

    fn replace_delayed(&mut self, rq: usize, id: EntityId) {
        let queued = self.rqs[rq].curr != id;
        self.rqs[rq].nr_running -= 1;
        if queued {
            self.tree_erase(rq, id);
        }
        self.place_entity_eevdf(rq, id, Enqueue::default());
        if queued {
            self.tree_insert(rq, id);
        }
        self.rqs[rq].nr_running += 1;
    }

    /// `__enqueue_entity`.
    #[inline(always)]
    pub(super) fn tree_insert(&mut self, rq: usize, id: EntityId) {
        let (se, q) = (&self.entities[id.index()], &mut self.rqs[rq]);
        if self.eevdf {
            q.avg_vruntime_add(se);
            let (key, value) = match self.rules.tree_key {
                TreeKey::Deadline => (se.deadline, se.vruntime),
                TreeKey::Vruntime => (se.vruntime, se.deadline),
            };
            q.tree.insert(&mut self.nodes, id, key, value, se.slice);
        } else {
            q.tree.insert(&mut self.nodes, id, se.vruntime, se.vruntime, se.slice);
        }
    }

    /// `__dequeue_entity`.
    #[inline(always)]
    pub(super) fn tree_erase(&mut self, rq: usize, id: EntityId) {
        let q = &mut self.rqs[rq];
        q.tree.erase(&mut self.nodes, id);
        if self.eevdf {
            q.avg_vruntime_sub(&self.entities[id.index()]);
        }
    }

    #[inline]
    fn account_entity_enqueue(&mut self, rq: usize, id: EntityId) {
        if self.rules.pelt.runnable_load {
            self.enqueue_runnable_load_avg(rq, id);
        }
        let (weight, idle) = (self.se(id).load.weight, u32::from(self.se(id).is_idle()));
        let q = &mut self.rqs[rq];
        q.load.weight += weight;
        q.nr_running += 1;
        q.idle_nr_running += idle;
    }

    #[inline]
    fn account_entity_dequeue(&mut self, rq: usize, id: EntityId) {
        if self.rules.pelt.runnable_load {
            self.dequeue_runnable_load_avg(rq, id);
        }
        let (weight, idle) = (self.se(id).load.weight, u32::from(self.se(id).is_idle()));
        let q = &mut self.rqs[rq];
        q.load.weight -= weight;
        q.nr_running -= 1;
        q.idle_nr_running -= idle;
    }
}
