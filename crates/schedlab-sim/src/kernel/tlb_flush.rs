//! The state of a CPU's TLB flushes, and the features of a guest's kernel for vCPUs that do not run; the rules are in
//! `tlb`.

use schedlab_model::{CpuId, Nanos};

/// TLB flushes of a CPU: its own, for which it waits, and those that others request.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TlbFlush {
    /// CPUs that have not flushed yet.
    pub waits: u32,
    /// When the last of the flushes ends, its own included.
    pub until: Nanos,
    /// Senders whose requests it has not handled (`call_single_queue`).
    pub senders: Vec<CpuId>,
    /// It flushes when its vCPU is next entered (KVM_VCPU_FLUSH_TLB).
    pub on_enter: bool,
    /// The CPU to whose vCPU it yields (KVM_HC_SCHED_YIELD).
    pub yields_to: Option<CpuId>,
}

impl TlbFlush {
    /// Whether it waits for other CPUs.
    pub fn waits(&self) -> bool {
        self.waits > 0
    }
}

/// What a guest's kernel does for vCPUs that do not run. Nothing on hardware.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PvCalls {
    /// One hypercall sends an interrupt to many CPUs (KVM_HC_SEND_IPI).
    pub send_ipi: bool,
    /// vCPUs that do not run flush when they are entered (KVM_FEATURE_PV_TLB_FLUSH).
    pub tlb_flush: bool,
    /// The sender of an interrupt to several CPUs yields to one that does not run (KVM_FEATURE_PV_SCHED_YIELD).
    pub sched_yield: bool,
    /// Only to one that is not idle.
    pub yields_to_busy: bool,
    /// A waiter for a spinlock yields to the vCPU that holds it, if that waits for a CPU (H_CONFER, diagnose 0x9c).
    pub spinner_yields: bool,
}
