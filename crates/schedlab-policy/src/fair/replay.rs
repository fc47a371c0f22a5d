//! Putting the class on a recorded kernel's choice after a decision. Nothing here is a rule of the scheduler.

use super::entity::EntityId;
use super::Fair;
use crate::features::Feature;
use crate::{Resched, TaskAttr};
use schedlab_model::{CpuId, TaskId};

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
