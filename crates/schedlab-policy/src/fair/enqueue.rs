//! Entities joining and leaving a queue (`enqueue_task_fair`, `dequeue_task_fair` and their entity-level parts).

use super::entity::EntityId;
use super::place::relative;
use super::{Dequeue, Enqueue, Fair};
use crate::decision::Verdict;
use crate::features::Feature;
use crate::{DelayedLag, TreeKey, ZeroPoint};
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// `enqueue_task_fair`: the task becomes runnable on the CPU, whose last CPU must be this one or be told by
    /// [`Fair::migrate_task`] before. With `delayed` it must still be queued there.
    #[inline]
    pub fn enqueue_task(&mut self, cpu: CpuId, task: TaskId, flags: Enqueue, now: Nanos) {
        let (rq, id) = (cpu.index(), EntityId::of(task));
        if self.se(id).on_rq {
            if self.se(id).sched_delayed {
                self.requeue_delayed_entity(rq, id, now);
            }
            return;
        }
        if self.eevdf {
            self.enqueue_entity_eevdf(rq, id, flags, now);
        } else {
            self.enqueue_entity_cfs(rq, id, flags, now);
        }
        let idle = u32::from(self.se(id).is_idle());
        let q = &mut self.rqs[rq];
        q.h_nr_running += 1;
        q.idle_h_nr_running += idle;
    }

    /// `dequeue_task_fair`. False: the task sleeps but stays queued, because it owes service (DELAY_DEQUEUE).
    #[inline]
    pub fn dequeue_task(&mut self, cpu: CpuId, task: TaskId, flags: Dequeue, now: Nanos) -> bool {
        let (rq, id) = (cpu.index(), EntityId::of(task));
        if !self.se(id).on_rq {
            return true;
        }
        if !self.eevdf {
            self.dequeue_entity_cfs(rq, id, flags, now);
        } else {
            self.update_curr_rq(rq, now);
            if self.delays(rq, id, flags) {
                self.delay_dequeue(rq, id, now);
                return false;
            }
            self.dequeue_entity_eevdf(rq, id, flags);
        }
        self.forget_task(rq, id);
        true
    }

    /// A delayed entity was picked: now it really leaves (`dequeue_entities` with DEQUEUE_DELAYED).
    pub(super) fn finish_delayed_dequeue(&mut self, rq: usize, id: EntityId, now: Nanos) {
        self.update_curr_rq(rq, now);
        self.dequeue_entity_eevdf(rq, id, Dequeue { sleep: true, ..Dequeue::default() });
        let clip = self.config.has(Feature::DelayZero);
        let se = self.se_mut(id);
        se.sched_delayed = false;
        if clip {
            se.vlag = se.vlag.min(0);
        }
        self.forget_task(rq, id);
    }

    /// The counters that every level above the task shares.
    #[inline]
    fn forget_task(&mut self, rq: usize, id: EntityId) {
        let idle = u32::from(self.se(id).is_idle());
        let q = &mut self.rqs[rq];
        q.h_nr_running -= 1;
        q.idle_h_nr_running -= idle;
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
        self.account_entity_enqueue(rq, id);
        if flags.wakeup {
            self.place_entity_cfs(rq, id, false, now);
        }
        self.join(rq, id, flags, curr);
    }

    /// `enqueue_entity` of EEVDF: every enqueue places.
    #[inline]
    fn enqueue_entity_eevdf(&mut self, rq: usize, id: EntityId, flags: Enqueue, now: Nanos) {
        let flags = Enqueue { initial: flags.initial && self.rules.initial_enqueue, ..flags };
        let curr = self.rqs[rq].curr == id;
        if curr {
            self.place_entity_eevdf(rq, id, flags);
        }
        self.update_curr_rq(rq, now);
        if !curr {
            self.place_entity_eevdf(rq, id, flags);
        }
        self.account_entity_enqueue(rq, id);
        self.join(rq, id, flags, curr);
    }

    #[inline]
    fn join(&mut self, rq: usize, id: EntityId, flags: Enqueue, curr: bool) {
        let se = self.se_mut(id);
        if flags.migrated {
            se.exec_start = 0;
        }
        se.asleep = false;
        if !curr {
            self.tree_insert(rq, id);
        }
        self.se_mut(id).on_rq = true;
    }

    #[inline]
    fn renormalise(&mut self, rq: usize, id: EntityId) {
        let min = self.rqs[rq].min_vruntime;
        let se = self.se_mut(id);
        se.vruntime = min.plus(se.vruntime.0 as i64);
    }

    /// `dequeue_entity` of CFS. A sleeper keeps its absolute vruntime, anyone else leaves with a relative one.
    #[inline]
    fn dequeue_entity_cfs(&mut self, rq: usize, id: EntityId, flags: Dequeue, now: Nanos) {
        self.update_curr_rq(rq, now);
        self.leave(rq, id, flags);
        if !flags.sleep {
            let min = self.rqs[rq].min_vruntime;
            let se = self.se_mut(id);
            se.vruntime = relative(se.vruntime, min);
        }
        if !flags.save {
            self.update_min_vruntime(rq);
        }
    }

    /// `dequeue_entity` of EEVDF, after `update_curr` and once the entity is known to leave: its lag is saved.
    #[inline]
    fn dequeue_entity_eevdf(&mut self, rq: usize, id: EntityId, flags: Dequeue) {
        self.update_entity_lag(rq, id);
        if self.config.has(Feature::PlaceRelDeadline) && !flags.sleep {
            let se = self.se_mut(id);
            se.deadline = relative(se.deadline, se.vruntime);
            se.rel_deadline = true;
        }
        self.leave(rq, id, flags);
        if !flags.save && self.rules.zero == ZeroPoint::Minimum {
            self.update_min_vruntime(rq);
        }
    }

    #[inline]
    fn leave(&mut self, rq: usize, id: EntityId, flags: Dequeue) {
        self.rqs[rq].clear_buddies(id);
        if self.rqs[rq].curr != id {
            self.tree_erase(rq, id);
        }
        let se = self.se_mut(id);
        se.on_rq = false;
        se.asleep = flags.sleep;
        self.account_entity_dequeue(rq, id);
    }

    /// Whether a dequeue is put off: a plain sleep of an entity that received more than its share.
    #[inline]
    fn delays(&self, rq: usize, id: EntityId, flags: Dequeue) -> bool {
        let sleeps = flags.sleep && !flags.special && !self.se(id).sched_delayed;
        sleeps && self.config.has(Feature::DelayDequeue) && !self.entity_eligible(rq, id)
    }

    fn delay_dequeue(&mut self, rq: usize, id: EntityId, now: Nanos) {
        let q = &mut self.rqs[rq];
        if q.next == id {
            q.next = EntityId::NIL;
        }
        if self.rules.delayed_lag == DelayedLag::Heals {
            self.update_entity_lag(rq, id);
        }
        self.se_mut(id).sched_delayed = true;
        if self.decisions.is_some() {
            let v = self.average(rq).vruntime();
            let compared = [("vruntime", self.rqs[rq].key(self.se(id).vruntime)), ("V", self.rqs[rq].key(v))];
            let rule = "sleeps while not eligible";
            self.explain(rq, now, Verdict::Delay(id.task_id()), rule, Some(Feature::DelayDequeue), compared);
        }
    }

    /// `requeue_delayed_entity`: a wakeup met a delayed entity. Up to 6.18 credit gained meanwhile is dropped
    /// (DELAY_ZERO) by placing it anew, and the running entity is not charged first. 7.x charges it, and places the
    /// entity by its healed lag wherever that differs from where it stands.
    fn requeue_delayed_entity(&mut self, rq: usize, id: EntityId, now: Nanos) {
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
        self.se_mut(id).sched_delayed = false;
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
    #[inline]
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
    #[inline]
    pub(super) fn tree_erase(&mut self, rq: usize, id: EntityId) {
        let q = &mut self.rqs[rq];
        q.tree.erase(&mut self.nodes, id);
        if self.eevdf {
            q.avg_vruntime_sub(&self.entities[id.index()]);
        }
    }

    #[inline]
    fn account_entity_enqueue(&mut self, rq: usize, id: EntityId) {
        let (weight, idle) = (self.se(id).load.weight, u32::from(self.se(id).is_idle()));
        let q = &mut self.rqs[rq];
        q.load.weight += weight;
        q.nr_running += 1;
        q.idle_nr_running += idle;
        self.list_add(rq, id);
    }

    #[inline]
    fn account_entity_dequeue(&mut self, rq: usize, id: EntityId) {
        let (weight, idle) = (self.se(id).load.weight, u32::from(self.se(id).is_idle()));
        let q = &mut self.rqs[rq];
        q.load.weight -= weight;
        q.nr_running -= 1;
        q.idle_nr_running -= idle;
        self.list_del(rq, id);
    }
}
