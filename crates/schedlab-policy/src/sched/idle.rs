//! The idle state of a CPU: the masks from which idle CPUs are selected, and its idle periods.

use schedlab_model::{CpuId, Nanos};

use super::core::Core;
use crate::version::placement::{IdleSpell, SchedIdleCpu};

impl Core {
    /// Updates the idle masks after a change of the state that they are computed from.
    #[inline(never)]
    pub(crate) fn refresh_idle(&mut self, cpu: CpuId) {
        let rq = &self.rqs[cpu.index()];
        let idle = rq.is_idle() && !self.vcpu_preempted.has(cpu);
        let usable = idle || (self.rules.sched_idle_cpu != SchedIdleCpu::Unknown && rq.sched_idle_rq());
        self.idle.set(cpu, idle, usable);
    }

    /// The idle task is switched in or out.
    #[inline]
    pub(crate) fn set_idle(&mut self, cpu: CpuId, idle: bool) {
        self.rqs[cpu.index()].idle = idle;
        self.refresh_idle(cpu);
    }

    /// The idle task is switched out.
    pub(crate) fn end_idle_spell(&mut self, cpu: CpuId, now: Nanos) {
        if self.rules.idle_spell == IdleSpell::SwitchOut {
            self.account_idle_spell(cpu, now);
        }
        self.set_idle(cpu, false);
    }

    pub(super) fn account_idle_spell(&mut self, cpu: CpuId, now: Nanos) {
        if self.rqs[cpu.index()].idle_stamp != 0 {
            let jiffies = self.jiffies(now);
            self.rqs[cpu.index()].account_idle_spell(now, jiffies);
        }
    }
}
