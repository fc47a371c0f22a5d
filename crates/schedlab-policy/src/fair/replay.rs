//! Putting the class on a recorded kernel's choice after a decision. Nothing here is a rule of the scheduler.

use super::entity::EntityId;
use super::Fair;
use crate::features::Feature;
use crate::{Resched, TaskAttr};
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// The kernel's outcome of the wakeup check just made: buddies and the resched wish follow it.
    pub fn follow_preemption(&mut self, cpu: CpuId, wakee: TaskId, preempted: bool) {
        let (rq, wakee) = (cpu.index(), EntityId::of(wakee));
        let q = &mut self.rqs[rq];
        let (was, curr) = (q.resched == Resched::Full, q.curr);
        q.resched = if preempted { Resched::Full } else { Resched::No };
        if self.eevdf || was == preempted || self.config.has(Feature::NextBuddy) {
            return;
        }
        if preempted {
            self.set_next_buddy(wakee);
            let full = u64::from(self.rqs[rq].nr_running) >= self.config.knobs.nr_latency;
            if curr.is_some() && full && self.config.has(Feature::LastBuddy) {
                self.set_last_buddy(curr);
            }
            return;
        }
        let q = &mut self.rqs[rq];
        if q.next == wakee {
            q.next = EntityId::NIL;
        }
        if q.last == curr {
            q.last = EntityId::NIL;
        }
    }

    /// From the current task of a CPU to the one picked, which may be the same or none: groups that both are in stay as
    /// they are.
    pub fn switch_to(&mut self, cpu: CpuId, next: Option<TaskId>, now: Nanos) {
        let (prev, next) = (self.leaf(cpu.index()), next.map_or(EntityId::NIL, EntityId::of));
        if self.rules.pick_clears_buddies {
            self.forget_buddies(next);
        }
        if prev != next {
            self.switch(cpu.index(), prev, next, now);
        }
        if next.is_some() && self.se(next).on_rq {
            self.list_move_front(cpu.index(), next);
        }
    }

    /// The running task's time that is not accounted yet began then.
    pub fn charged_since(&mut self, task: TaskId, since: Nanos) {
        self.se_mut(EntityId::of(task)).exec_start = since;
    }

    /// A task that sleeps in the queue leaves it now.
    pub fn finish_delayed(&mut self, task: TaskId) {
        let id = EntityId::of(task);
        if self.se(id).on_rq && self.se(id).sched_delayed {
            let now = self.last_charge(self.se(id).cfs_rq as usize);
            self.finish_delayed_dequeue(id, now);
        }
    }

    /// A queued task was asleep already when it was first seen (DELAY_DEQUEUE).
    pub fn mark_delayed(&mut self, task: TaskId) {
        let id = EntityId::of(task);
        let se = self.se_mut(id);
        if se.on_rq && !se.sched_delayed {
            se.sched_delayed = true;
            self.count_delayed(id, 1);
        }
    }

    /// A dead task's place is given to a new one. It must not be queued or current anywhere.
    pub fn recycle(&mut self, task: TaskId, attr: &TaskAttr) {
        self.entities[task.index()] = self.new_entity(attr);
    }
}
