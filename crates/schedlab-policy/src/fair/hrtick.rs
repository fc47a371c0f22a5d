//! When the slice-end timer should fire (HRTICK: `hrtick_start_fair`, `task_tick_fair` with `queued`).
//!
//! Up to 6.18 when the slice, counted from the pick, is used up; 7.x when the deadline is reached:
//! `(d - v) * w / 1024`. Simplified: 7.x stretches that by the share of time that interrupts take.

use super::entity::EntityId;
use super::explain::Reason;
use super::fair_sched_class::Fair;
use super::queues::Queues;
use crate::decision::{During, Function};
use crate::features::Feature;
use crate::hrtick::Hrtick;
use crate::weight::NICE_0_LOAD;
use crate::{HrtickRule, Resched};
use schedlab_model::{CpuId, Nanos, USEC};

/// `hrtick_start`: a shorter timer is not worth its interrupt.
const SHORTEST: Nanos = 10 * USEC;

impl Fair {
    /// `hrtick_start_fair`, to be called at every pick.
    #[must_use]
    pub fn hrtick_start(&self, cpu: CpuId) -> Hrtick {
        let curr = self.queues.arena.leaf(cpu.index());
        if curr.is_nil() || self.rq(cpu).h_nr_running <= 1 {
            return Hrtick::Off;
        }
        match self.queues.slice_left(curr) {
            left if left < 0 => Hrtick::Now,
            left => Hrtick::After(SHORTEST.max(left as Nanos)),
        }
    }

    /// `hrtick_update`: the timer after an enqueue or dequeue. `None`: it stays as it is, since up to 6.3 it follows
    /// the queue only while that is short enough for slices to change (`sched_nr_latency`).
    #[must_use]
    pub fn hrtick_update(&self, cpu: CpuId) -> Option<Hrtick> {
        let arena = &self.queues.arena;
        let curr = arena.leaf(cpu.index());
        let full = !self.config.is_eevdf() && curr.is_some() && {
            let nr_running = arena.rqs[arena.entities[curr].rq()].nr_running;
            u64::from(nr_running) >= self.config.knobs.nr_latency
        };
        (!full).then(|| self.hrtick_start(cpu))
    }

    /// Whether the timer of the CPU is running: up to 6.3 the tick then leaves the slice to it (unless DOUBLE_TICK).
    pub fn set_hrtick_active(&mut self, cpu: CpuId, active: bool) {
        self.queues.arena.rqs[cpu.index()].hrtick_active = active;
    }

    /// The timer fired: its tick reschedules whatever is left of the slice.
    pub fn hrtick_expired(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        let (root, queues) = (cpu.index(), &mut self.queues);
        let curr = queues.arena.leaf(root);
        if curr.is_some() {
            queues.account_levels(curr, now);
            queues.reweight_running(root);
            match queues.config.rules.hrtick_full {
                false => queues.resched_curr_lazy(root),
                true => queues.resched_curr(root),
            }
            if queues.is_recording() {
                queues.explain_hrtick(root, now);
            }
        }
        queues.arena.rqs[root].resched
    }
}

impl Queues {
    fn slice_left(&self, curr: EntityId) -> i64 {
        let se = &self.arena.entities[curr];
        if self.config.rules.hrtick == HrtickRule::Deadline {
            let left = i128::from(se.deadline.since(se.vruntime)) * i128::from(se.h_load.weight);
            return left.div_euclid(i128::from(NICE_0_LOAD)).clamp(-1, i128::from(i64::MAX)) as i64;
        }
        let slice = self.view().slice_on(se.rq(), curr);
        (slice as i64).wrapping_sub((se.sum_exec_runtime - se.prev_sum_exec_runtime) as i64)
    }

    #[cold]
    fn explain_hrtick(&mut self, root: usize, now: Nanos) {
        let (q, before) = (&self.arena.rqs[root], self.log.len());
        let curr = q.curr;
        let named = [("current deadline", curr), ("next deadline", q.tree.first())];
        let compared = q.deadlines(&self.arena.entities, named);
        let reason = Reason { rule: "slice-end timer", feature: Some(Feature::Hrtick), compared };
        self.explain_end(root, curr, Function::Usual, reason, now);
        self.log.set_during(before, During::Hrtick, self.arena.rqs[root].resched);
    }
}
