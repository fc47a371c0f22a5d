//! A stay of a task with a working set or code on a CPU: how much of them is in the caches when it begins, and when it
//! ends.

use schedlab_model::{CpuId, Pid};

use super::segment::WORK_SHIFT;
use super::state::Machine;
use super::warmth::{Code, Refilled};

impl Machine {
    /// A CPU switches to a task with a working set of so many KiB, and code; `first`: it has never run. The time that
    /// it loses is wall time: threads of the core that are busy do not prolong it.
    #[inline(never)]
    pub fn begin_stay(&mut self, cpu: CpuId, task: Pid, set: u32, code: Code, first: bool) {
        let Some(warmth) = &self.warmth else { return };
        let mut stay = warmth.begin(cpu, task, u64::from(set), code, first);
        stay.begun.debt = self.stall(cpu, stay.time) << WORK_SHIFT;
        self.cpus[cpu.index()].refill = stay.begun;
        if let Some(warmth) = &mut self.warmth {
            warmth.stays[cpu.index()] = Some(stay);
        }
    }

    /// The task that the CPU runs leaves it; everything up to now must be accounted.
    #[inline(never)]
    pub fn end_stay(&mut self, cpu: CpuId) -> Option<Refilled> {
        let left = std::mem::take(&mut self.cpus[cpu.index()].refill);
        self.warmth.as_mut()?.end(cpu, left)
    }
}
