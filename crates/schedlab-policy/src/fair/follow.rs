//! Adopts a recorded kernel's choice after a decision, for [`Follow`](crate::Follow). Nothing here is a rule of the
//! scheduler.

use super::entity::EntityId;
use super::fair_sched_class::Fair;
use crate::features::Feature;
use crate::Resched;
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// Adopts the kernel's outcome of the wakeup check just made: buddies and the resched request follow it.
    pub(crate) fn follow_preemption(&mut self, cpu: CpuId, wakee: TaskId, preempted: bool) {
        let (arena, wakee) = (&mut self.queues.arena, EntityId::of(wakee));
        let q = &mut arena.rqs[cpu.index()];
        let (was, curr) = (q.resched == Resched::Full, q.curr);
        q.resched = if preempted { Resched::Full } else { Resched::No };
        if self.config.is_eevdf() || was == preempted || self.config.has(Feature::NextBuddy) {
            return;
        }
        if preempted {
            let full = u64::from(q.nr_running) >= self.config.knobs.nr_latency;
            arena.set_next_buddy(wakee);
            if curr.is_some() && full && self.config.has(Feature::LastBuddy) {
                arena.set_last_buddy(curr);
            }
            return;
        }
        if q.next == wakee {
            q.next = EntityId::NIL;
        }
        if q.last == curr {
            q.last = EntityId::NIL;
        }
    }

    /// Switches from the current task of a CPU to the one picked, which may be the same or none: groups that both are
    /// in stay as they are.
    pub fn switch_to(&mut self, cpu: CpuId, next: Option<TaskId>, now: Nanos) {
        let (prev, next) = (self.queues.arena.leaf(cpu.index()), next.map_or(EntityId::NIL, EntityId::of));
        if self.config.rules.pick_clears_buddies {
            self.queues.arena.clear_buddies_upwards(next);
        }
        if prev != next {
            self.queues.switch(cpu.index(), prev, next, now);
        }
        if next.is_some() {
            self.queues.move_to_list_front(cpu, next);
        }
    }

    /// A task that sleeps in the queue leaves it now.
    pub fn finish_delayed(&mut self, task: TaskId) {
        let se = self.entity(task);
        if se.on_rq && se.sched_delayed {
            let arena = &self.queues.arena;
            let now = arena.rqs[arena.competes_on(se.rq())].last_charge(&arena.entities);
            self.queues.finish_delayed_dequeue(EntityId::of(task), now);
        }
    }

    /// A queued task was asleep already when the trace first showed it (DELAY_DEQUEUE).
    pub(crate) fn mark_delayed(&mut self, task: TaskId) {
        let id = EntityId::of(task);
        let se = &mut self.queues.arena.entities[id];
        if se.on_rq && !se.sched_delayed {
            se.sched_delayed = true;
            let rq = se.rq();
            self.queues.count_delayed(rq, id, 1);
        }
    }
}
