//! The idle state of a CPU: the masks from which idle CPUs are selected, and its idle periods.

use schedlab_model::{CpuId, Nanos};

use super::rq::Rq;
use super::Core;
use crate::version::placement::IdleSpell;

impl Core {
    /// Updates the idle masks after a change of the state that they are computed from.
    pub(crate) fn refresh_idle(&mut self, cpu: CpuId) {
        self.change_rq(cpu, |_| ());
    }

    /// Changes the state that the idle masks are computed from, and updates them.
    #[inline(always)]
    pub(crate) fn change_rq<T>(&mut self, cpu: CpuId, change: impl FnOnce(&mut Rq) -> T) -> T {
        let rq = &mut self.rqs[cpu.index()];
        let result = change(rq);
        self.idle.set(cpu, rq.availability(&self.rules));
        result
    }

    /// The idle task is switched in or out.
    #[inline]
    pub(crate) fn set_idle(&mut self, cpu: CpuId, idle: bool) {
        self.change_rq(cpu, |rq| rq.idle = idle);
    }

    /// The idle task is switched out.
    pub(crate) fn end_idle_spell(&mut self, cpu: CpuId, now: Nanos) {
        if self.rules.idle_spell == IdleSpell::SwitchOut {
            self.account_idle_spell(cpu, now);
        }
        self.set_idle(cpu, false);
    }

    pub(crate) fn account_idle_spell(&mut self, cpu: CpuId, now: Nanos) {
        if self.rqs[cpu.index()].idle_stamp != 0 {
            let jiffies = self.jiffies(now);
            self.rqs[cpu.index()].account_idle_spell(now, jiffies);
        }
    }
}
