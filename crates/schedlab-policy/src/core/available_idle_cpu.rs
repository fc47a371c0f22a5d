//! `idle_cpu` and `available_idle_cpu`: which CPUs are idle, and which CPUs of a guest are not available although
//! nothing runs there, because their vCPU is preempted.

use schedlab_model::{CpuId, CpuMask};

use super::Core;

impl Core {
    /// Whether `idle_cpu` holds: the idle task runs, nothing is queued, nothing is on its wakelist.
    #[inline]
    #[must_use]
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.idle.is_idle(cpu) || self.is_preempted_idle(cpu)
    }

    /// `available_idle_cpu`: idle and, in a guest, its vCPU not preempted.
    #[inline]
    #[must_use]
    pub fn available_idle_cpu(&self, cpu: CpuId) -> bool {
        self.idle.is_idle(cpu)
    }

    /// `vcpu_is_preempted`; never on bare metal.
    #[inline]
    #[must_use]
    pub fn vcpu_is_preempted(&self, cpu: CpuId) -> bool {
        self.rqs[cpu.index()].vcpu_preempted
    }

    /// The vCPU under the CPU reads as preempted from now on, or no longer does.
    pub fn set_vcpu_preempted(&mut self, cpu: CpuId, preempted: bool) {
        self.rqs[cpu.index()].vcpu_preempted = preempted;
        self.refresh_idle(cpu);
    }

    /// `vcpu_is_preempted` of the CPU is a hypercall from now on, or no longer is one.
    pub fn set_asks_host(&mut self, cpu: CpuId, asks: bool) {
        let mask = self.asks_host.get_or_insert_default();
        if asks {
            mask.set(cpu);
        } else {
            mask.clear(cpu);
        }
    }

    /// The CPUs for which `available_idle_cpu` makes a hypercall: idle ones, because `idle_cpu` is tested first.
    #[inline]
    pub(crate) fn queried(&self) -> Option<Box<CpuMask>> {
        let asks_host = self.asks_host.as_ref().filter(|mask| !mask.is_empty())?;
        let idle = asks_host.iter().filter(|cpu| self.rqs[cpu.index()].is_idle());
        Some(Box::new(CpuMask::from_iter(idle)))
    }

    /// `idle_cpu` and not `available_idle_cpu`.
    #[inline]
    #[must_use]
    pub fn is_preempted_idle(&self, cpu: CpuId) -> bool {
        let rq = &self.rqs[cpu.index()];
        rq.vcpu_preempted && rq.is_idle()
    }
}
