//! One run, and its guests, which are runs themselves.

use std::sync::Arc;

use schedlab_model::{CpuMask, KernelId, Nanos};
use schedlab_policy::KernelConfig;
use schedlab_workload::Workload;

use crate::{Cgroup, CpuChange, GuestAction, IdleHint, Machine, Physics, Platform, PlatformCosts};

/// Everything one run depends on.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The kernel: version row, features, knobs, HZ, preemption model.
    pub kernel: KernelConfig,
    /// The workloads.
    pub workloads: Arc<Vec<Workload>>,
    /// The control groups, each after its parent.
    pub cgroups: Arc<Vec<Cgroup>>,
    /// `sched_autogroup_enabled`: each workload is a session, and its tasks outside control groups share a group.
    pub autogroup: bool,
    /// Limit of the run, warm-up included.
    pub duration: Nanos,
    /// Samples before this are dropped.
    pub warmup: Nanos,
    /// The seed of every stream.
    pub seed: u64,
    /// Whether phases, offsets and costs are drawn from the seed; without noise each has its typical value and phases
    /// are 0.
    pub noise: bool,
    /// Which draw breaks the ties that the kernel leaves to chance; without one they are broken by number.
    pub ties: Option<u64>,
    /// CPUs that go offline and come back, in the order of time.
    pub hotplug: Arc<Vec<CpuChange>>,
    /// The guests, those in other guests included.
    pub guests: Arc<Vec<Guest>>,
}

/// A guest of a host.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Its name in metrics and traces.
    pub name: String,
    /// The kernel that hosts it: 0, or that of a guest before it among [`RunSpec::guests`], whose kernels count from 1.
    pub host: KernelId,
    /// What runs in it. Its machine has one CPU per vCPU; its duration, warm-up, seed and noise are the host's.
    pub run: RunSpec,
    /// The hypervisor and the architecture.
    pub platform: Platform,
    /// The host CPUs that each vCPU's thread may use; `None` = all.
    pub affinity: Vec<Option<CpuMask>>,
    /// The host's control group of its vCPU threads.
    pub cgroup: Option<String>,
    /// Nice value of its vCPU threads.
    pub nice: i8,
    /// Whether the guest calls `vcpu_is_preempted`.
    pub vcpu_is_preempted: bool,
    /// What the host reports about ceded vCPUs.
    pub idle_hint: IdleHint,
    /// CONFIG_PARAVIRT_TIME_ACCOUNTING: the guest's task clocks leave out stolen time.
    pub paravirt_time_accounting: bool,
    /// Longest halt-polling window of its vCPUs.
    pub halt_poll_max: Nanos,
    /// cpuidle-haltpoll: its idle CPUs poll before they halt.
    pub haltpoll: bool,
    /// Its kernel halts in long waits for a spinlock (CONFIG_PARAVIRT_SPINLOCKS and KVM_FEATURE_PV_UNHALT).
    pub pv_spinlocks: bool,
    /// vCPUs that do not run flush their TLBs when they are entered (KVM_FEATURE_PV_TLB_FLUSH).
    pub pv_tlb_flush: bool,
    /// The sender of an interrupt to several vCPUs yields to one that does not run (KVM_FEATURE_PV_SCHED_YIELD).
    pub pv_sched_yield: bool,
    /// An interrupt for a vCPU that runs is posted and does not take it out of the guest (`enable_apicv` of kvm_intel).
    pub enable_apicv: bool,
    /// Sending an interrupt to one vCPU does not take the sender out of the guest (`enable_ipiv` of kvm_intel).
    pub enable_ipiv: bool,
    /// What is done to it, and when, in ascending order of time.
    pub events: Vec<(Nanos, GuestAction)>,
}

impl Guest {
    /// Which of its actions cause an exit: those of the platform, less those that its processor does without.
    #[must_use]
    pub fn costs(&self) -> PlatformCosts {
        let platform = self.platform.costs();
        PlatformCosts {
            ipi_send_exits: platform.ipi_send_exits && !self.enable_ipiv,
            ipi_receive_exits: platform.ipi_receive_exits && !self.enable_apicv,
            pause_loops_exit: platform.pause_loops_exit && self.host == KernelId::FIRST,
            ..platform
        }
    }

    /// The guest on a host whose machine has these mechanisms: it runs on the same processor.
    #[must_use]
    pub fn with_physics(mut self, physics: Physics) -> Guest {
        if self.run.machine.physics != physics {
            self.run.machine = Arc::new(Machine { physics, ..Machine::clone(&self.run.machine) });
        }
        self
    }
}
