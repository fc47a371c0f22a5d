//! When the slice-end timer should fire (HRTICK: `hrtick_start_fair`, `task_tick_fair` with `queued`).
//!
//! Up to 6.18 when the slice, counted from the pick, is used up; 7.x when the deadline is reached:
//! `(d - v) * w / 1024`. Simplified: 7.x stretches that by the share of time interrupts take.

use super::entity::EntityId;
use super::Fair;
use crate::decision::During;
use crate::features::Feature;
use crate::weight::NICE_0_LOAD;
use crate::{HrtickRule, Resched};
use schedlab_model::{CpuId, Nanos, USEC};

/// What the timer of a CPU should do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hrtick {
    /// Nobody competes: no timer.
    Off,
    /// Fire after so long, then call [`Fair::hrtick_expired`].
    After(Nanos),
    /// The slice is over already: reschedule.
    Now,
}

/// `hrtick_start`: a shorter timer is not worth its interrupt.
const SHORTEST: Nanos = 10 * USEC;

impl Fair {
    /// `hrtick_start_fair`, to be asked at every pick.
    #[must_use]
    pub fn hrtick_start(&self, cpu: CpuId) -> Hrtick {
        let curr = self.leaf(cpu.index());
        if curr.is_nil() || self.rq(cpu).h_nr_running <= 1 {
            return Hrtick::Off;
        }
        match self.slice_left(self.se(curr).cfs_rq as usize, curr) {
            left if left < 0 => Hrtick::Now,
            left => Hrtick::After(SHORTEST.max(left as Nanos)),
        }
    }

    /// `hrtick_update`: the timer after an enqueue or dequeue. `None`: it stays as it is, since up to 6.3 it follows the
    /// queue only while that is short enough for slices to change (`sched_nr_latency`).
    #[must_use]
    pub fn hrtick_update(&self, cpu: CpuId) -> Option<Hrtick> {
        let curr = self.leaf(cpu.index());
        let full = !self.eevdf && curr.is_some() && {
            let nr_running = self.rqs[self.se(curr).cfs_rq as usize].nr_running;
            u64::from(nr_running) >= self.config.knobs.nr_latency
        };
        (!full).then(|| self.hrtick_start(cpu))
    }

    /// Whether the timer of the CPU is running: up to 6.3 the tick then leaves the slice to it (unless DOUBLE_TICK).
    pub fn set_hrtick_active(&mut self, cpu: CpuId, active: bool) {
        self.rqs[cpu.index()].hrtick_active = active;
    }

    /// The timer fired: its tick reschedules whatever is left of the slice.
    pub fn hrtick_expired(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        let rq = cpu.index();
        let curr = self.leaf(rq);
        if curr.is_some() {
            self.account_levels(curr, now);
            match self.rules.hrtick_full {
                false => self.resched_curr_lazy(rq),
                true => self.resched_curr(rq),
            }
            if self.decisions.is_some() {
                self.explain_hrtick(rq, now);
            }
        }
        self.rqs[rq].resched
    }

    #[cold]
    fn explain_hrtick(&mut self, rq: usize, now: Nanos) {
        let (curr, before) = (self.rqs[rq].curr, self.recorded());
        let compared = self.deadlines(rq, ("current deadline", curr), ("next deadline", self.rqs[rq].tree.first()));
        let feature = Some(Feature::Hrtick);
        self.explain_end(rq, curr, ("slice-end timer", feature), compared, now);
        self.fell_during(before, During::Hrtick, self.rqs[rq].resched);
    }

    fn slice_left(&self, rq: usize, curr: EntityId) -> i64 {
        let se = self.se(curr);
        if self.rules.hrtick == HrtickRule::Deadline {
            let left = i128::from(se.deadline.since(se.vruntime)) * i128::from(se.load.weight);
            return left.div_euclid(i128::from(NICE_0_LOAD)).clamp(-1, i128::from(i64::MAX)) as i64;
        }
        let slice = if self.eevdf { se.slice } else { self.sched_slice(rq, curr) };
        (slice as i64).wrapping_sub((se.sum_exec_runtime - se.prev_sum_exec_runtime) as i64)
    }
}
