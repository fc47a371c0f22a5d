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
            let rq = self.se(id).cpu.index();
            let curr = self.rqs[rq].curr;
            let now = if curr.is_some() { self.se(curr).exec_start } else { 0 };
            self.finish_delayed_dequeue(rq, id, now);
        }
    }

    /// A queued task was asleep already when it was first seen (DELAY_DEQUEUE).
    pub fn mark_delayed(&mut self, task: TaskId) {
        let se = self.se_mut(EntityId::of(task));
        se.sched_delayed = se.on_rq;
    }

    /// A dead task's place is given to a new one. It must not be queued or current anywhere.
    pub fn recycle(&mut self, task: TaskId, attr: &TaskAttr) {
        self.add_task(attr);
        self.nodes.pop();
        self.recency.pop();
        if let Some(new) = self.entities.pop() {
            self.entities[task.index()] = new;
        }
    }
}
