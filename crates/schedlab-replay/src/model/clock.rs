//! The runqueues' clocks: as probes read them, else as far as run times give them.

use schedlab_model::{CpuId, Nanos, TaskId, USEC};

use super::Model;
use crate::operation::{Caller, Wakeup};

/// Records of one operation come within this time; what takes longer was interrupted.
const CLOSE: Nanos = 50 * USEC;

impl Model {
    /// `update_rq_clock`, as a probe shows it. Before the first time nothing was charged by it.
    pub(super) fn read_clock(&mut self, cpu: CpuId, clock: Nanos) {
        let queue = &mut self.cpus[cpu.index()];
        let before = queue.read.replace(clock);
        queue.read_anew = true;
        // A probe that shows the same clock again shows that it was not updated meanwhile.
        if before != Some(clock) {
            queue.read_at = self.now;
        }
        if let (None, Some(curr)) = (before, self.sched.curr(cpu)) {
            self.sched.follow().restore().exec_start(curr, clock);
        }
    }

    /// The running task was charged: its run time gives the clock.
    pub(super) fn clock_charged(&mut self, cpu: CpuId, curr: TaskId, caller: Caller) {
        let queue = &mut self.cpus[cpu.index()];
        queue.clock = self.sched.fair.entity(curr).exec_start;
        queue.charged_at = self.now;
        queue.charged_for = match caller {
            Caller::Wakeup(wakee) => Some(wakee),
            _ => None,
        };
    }

    /// The clock of a charge: as it was read for it. A probe that an interrupt finds within another one is skipped
    /// (kprobes do not nest); then the run time says how far the clock is from the last charge.
    pub(super) fn read_for_charge(&mut self, cpu: CpuId, curr: TaskId, ran: Nanos) -> Option<Nanos> {
        let reached = self.fair().entity(curr).exec_start + ran;
        let queue = &mut self.cpus[cpu.index()];
        let read = queue.read?;
        let clock = if std::mem::take(&mut queue.read_anew) { read } else { read.max(reached) };
        queue.read = Some(clock);
        Some(clock)
    }

    /// The CPU's clock as it was read last; without probes, as of the last charge of the current task.
    pub(super) fn clock(&self, cpu: CpuId) -> Nanos {
        self.cpus[cpu.index()].read.unwrap_or_else(|| self.charged_until(cpu))
    }

    /// The time up to which the current task was charged.
    pub(super) fn charged_until(&self, cpu: CpuId) -> Nanos {
        let queue = &self.cpus[cpu.index()];
        match self.sched.curr(cpu) {
            Some(curr) => self.fair().entity(curr).exec_start,
            None => queue.read.unwrap_or(queue.clock.max(self.now)),
        }
    }

    /// The clock of a CPU, for what does not depend on its last ns.
    pub fn clock_of(&self, cpu: CpuId) -> Nanos {
        self.clock_now(cpu)
    }

    /// The clock if it were read now: it has advanced as the trace's clock has.
    pub(super) fn clock_now(&self, cpu: CpuId) -> Nanos {
        let queue = &self.cpus[cpu.index()];
        match (queue.read, self.sched.curr(cpu)) {
            (Some(read), _) => read + self.now.saturating_sub(queue.read_at),
            (None, Some(_)) => self.charged_until(cpu) + self.now.saturating_sub(queue.charged_at),
            (None, None) => self.charged_until(cpu),
        }
    }

    /// The clock at a wakeup without a run time, as where the wakee is not in the running task's group: only the levels
    /// above are charged then. The trace's clock gives the time, with the delay of the last wakeup that was charged,
    /// and no further than the next run time reaches.
    pub(super) fn clock_at_wakeup(&self, wakeup: &Wakeup, wakee: TaskId) -> Nanos {
        let Wakeup { cpu, pid, waking_at, next_charge, clock, .. } = *wakeup;
        if let Some(clock) = clock {
            return clock;
        }
        let other_group = |curr| self.fair().group_of(curr) != self.fair().group_of(wakee);
        let queue = &self.cpus[cpu.index()];
        let exact = queue.read.is_some() || queue.charged_for == Some(pid);
        match !exact && self.sched.curr(cpu).is_some_and(other_group) {
            true => {
                let passed = waking_at.saturating_sub(queue.charged_at).saturating_add_signed(queue.delay);
                self.clock(cpu) + passed.min(next_charge)
            }
            false => self.clock(cpu),
        }
    }

    /// A run time within a wakeup is exact, where the times of records are not.
    pub(super) fn measure_delay(&mut self, cpu: CpuId, ran: Nanos, waking_at: Option<Nanos>) {
        let queue = &mut self.cpus[cpu.index()];
        if let Some(passed) = waking_at.and_then(|waking_at| waking_at.checked_sub(queue.charged_at)) {
            queue.delay = (ran as i64 - passed as i64).clamp(0, CLOSE as i64);
        }
    }
}
