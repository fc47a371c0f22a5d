//! Idle states: which one a CPU enters, and how long leaving it takes.

use schedlab_model::{CpuId, Nanos};

use super::cpu::{Activity, Cpu};
use super::segment::WORK_SHIFT;
use super::state::Machine;

impl Cpu {
    /// Overhead of what the CPU itself does, in ns: on the way into an idle state before that, else before what it
    /// executes.
    pub(super) fn charge_own(&mut self, cost: Nanos) {
        match self.activity {
            Activity::Idle => self.idle_from += self.core_wall(cost << WORK_SHIFT).unwrap_or(0),
            _ => self.pending += cost,
        }
    }
}

impl Machine {
    /// The CPU becomes idle: pending overhead first, then the deepest idle state whose target residency does not exceed
    /// the time expected until the next timer or, if earlier, for the CPU's average idle period: a machine without
    /// `cpuidle`.
    pub fn enter_idle_state(&mut self, cpu: CpuId, now: Nanos, until_timer: Nanos) {
        let c = &mut self.cpus[cpu.index()];
        c.activity = Activity::Idle;
        c.begin_entering(now);
        let expected = until_timer.min(c.idle_average);
        let fitting = self.residencies.iter().take_while(|residency| **residency <= expected);
        c.idle_state = fitting.count().saturating_sub(1);
    }

    /// Charges the walk over so many vCPUs, before the idle state or after it.
    pub fn charge_idle_hints(&mut self, cpu: CpuId, vcpus: u64) {
        let c = &mut self.cpus[cpu.index()];
        let cost = self.costs.idle_hint.draw_any(&mut c.dice) * vcpus;
        c.charge_own(cost);
    }

    /// Whether an idle CPU watches its need-resched flag, so that a waker needs no interrupt.
    pub fn polls(&self, cpu: CpuId) -> bool {
        self.preset.idle_states[self.cpus[cpu.index()].idle_state].polling
    }

    /// An idle CPU is woken by an event that reaches it at `now + latency`: when it executes instructions again.
    pub fn leave_idle_state(&mut self, cpu: CpuId, now: Nanos, latency: Nanos) -> Nanos {
        let state = self.reached_state(cpu);
        let c = &mut self.cpus[cpu.index()];
        c.account_idle(now);
        c.activity = Activity::Exiting;
        c.pending += std::mem::take(&mut c.entering_left) >> WORK_SHIFT;
        let due = now + latency;
        match now.checked_sub(c.idle_from) {
            // Still entering the idle state: the request takes effect when it has entered.
            None => due.max(c.idle_from),
            Some(slept) => {
                c.idle_average = (c.idle_average * 7 + slept) / 8;
                let exit = self.idle_exits[state].draw(&mut c.dice);
                self.cpuidle_reflect(cpu, slept, exit);
                due + exit
            }
        }
    }
}
