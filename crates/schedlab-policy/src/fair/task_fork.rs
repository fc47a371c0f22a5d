//! Fork and yield (`task_fork_fair`, `yield_task_fair`, `yield_to_task_fair`).

use super::entity::EntityId;
use super::fair_sched_class::Fair;
use super::queues::Queues;
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use crate::{FairPolicy, Resched, YieldRule};
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// `task_fork_fair` on the forking CPU, for a child just added. CFS places the child here, relative to this queue;
    /// with child_runs_first it may swap places with the parent. EEVDF places it at its first enqueue; up to 6.6 the
    /// forking CPU still charges the parent.
    pub fn task_fork(&mut self, parent_cpu: CpuId, child: TaskId, now: Nanos) -> Resched {
        let (id, arena) = (EntityId::of(child), &mut self.queues.arena);
        arena.__set_task_cpu(id, parent_cpu);
        if self.config.rules.fork_places {
            let parent = arena.leaf(parent_cpu.index());
            let rq = arena.entities[parent.some().unwrap_or(id)].rq();
            self.queues.place_child(rq, id, now);
        }
        self.need_resched(parent_cpu)
    }

    /// `yield_task_fair` by the current task of the CPU; the caller reschedules.
    pub fn yield_task(&mut self, cpu: CpuId, now: Nanos) {
        let queues = &mut self.queues;
        let curr = queues.arena.leaf(cpu.index());
        if curr.is_nil() || queues.arena.rqs[cpu.index()].h_nr_running == 1 {
            return;
        }
        let rq = queues.arena.competes_on(queues.arena.entities[curr].rq());
        queues.arena.clear_buddies(rq, curr);
        if self.config.is_eevdf() {
            queues.update_curr_eevdf(rq, now);
            return queues.yield_eevdf(rq, curr);
        }
        if queues.arena.entities[curr].policy != FairPolicy::Batch {
            queues.update_curr(rq, now);
        }
        queues.arena.set_skip_buddy(curr);
    }

    /// `yield_to_task_fair`: the current task of the CPU yields in favour of `target`, which the next pick of its own
    /// CPU prefers. False, if it is not queued.
    pub fn yield_to_task(&mut self, cpu: CpuId, target: TaskId, now: Nanos) -> bool {
        if !self.entity(target).on_rq {
            return false;
        }
        self.queues.arena.set_next_buddy(EntityId::of(target));
        self.yield_task(cpu, now);
        true
    }
}

impl Queues {
    fn place_child(&mut self, rq: usize, child: EntityId, now: Nanos) {
        let curr = self.arena.rqs[rq].curr;
        if curr.is_some() {
            self.update_curr(rq, now);
            self.arena.entities[child].vruntime = self.arena.entities[curr].vruntime;
        }
        if self.config.is_eevdf() {
            // Its first enqueue places it again, as any other.
            return;
        }
        let starts_late = self.config.has(Feature::StartDebit);
        let debit = if starts_late { self.arena.sched_vslice(&self.config, rq, child) } else { 0 };
        let entities = &mut self.arena.entities;
        self.arena.rqs[rq].place_entity_cfs(&mut entities[child], &self.config, Some(debit), now);
        if self.config.knobs.child_runs_first != 0 && curr.is_some() {
            let (parent_at, child_at) = (entities[curr].vruntime, entities[child].vruntime);
            if parent_at.before(child_at) {
                entities[curr].vruntime = child_at;
                entities[child].vruntime = parent_at;
                self.resched_curr(rq);
            }
        }
        self.arena.rqs[rq].make_relative(&mut self.arena.entities[child]);
    }

    fn yield_eevdf(&mut self, rq: usize, curr: EntityId) {
        let (q, entities) = (&mut self.arena.rqs[rq], &mut self.arena.entities);
        if self.config.rules.yields == YieldRule::LaterDeadline {
            let se = &mut entities[curr];
            se.deadline = se.deadline.plus(calc_delta_fair(se.slice, &se.h_load) as i64);
        } else if q.entity_eligible(entities, curr) {
            let se = &mut entities[curr];
            se.vruntime = se.deadline;
            se.update_deadline(self.config.knobs.base_slice);
            q.update_min_vruntime(entities, &self.config);
        }
    }
}
