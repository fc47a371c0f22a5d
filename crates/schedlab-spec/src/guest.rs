//! A guest: a kernel whose CPUs are threads of the host.

use schedlab_model::{Nanos, USEC};

/// The hypervisor and the architecture under a guest. They decide which actions of the guest cause an exit, and which
/// vCPUs it considers preempted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Platform {
    /// KVM on x86, with steal time.
    X86Kvm,
    /// KVM on arm64, which gives a guest no information about its vCPUs.
    Arm64Kvm,
    /// The same with the pvsched proposal: the host marks a vCPU at every `vcpu_put` and clears the mark at
    /// `vcpu_load`.
    Arm64KvmPvsched,
    /// KVM on POWER9 with the radix MMU and XIVE.
    PowerpcKvm,
    /// A shared-processor partition of PowerVM; the host stands for the hypervisor.
    Powervm,
    /// KVM on s390.
    S390,
}

/// Which of a guest's actions cause an exit, and how long the host polls for a halted vCPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlatformCosts {
    /// Sending an inter-processor interrupt.
    pub ipi_send_exits: bool,
    /// Receiving one on a vCPU that runs.
    pub ipi_receive_exits: bool,
    /// The expiry of a timer.
    pub timer_expiry_exits: bool,
    /// Programming a timer.
    pub timer_program_exits: bool,
    /// Longest halt-polling window (`halt_poll_ns`).
    pub halt_poll_max: Nanos,
    /// Long loops of PAUSE in the guest's kernel (pause-loop exiting).
    pub pause_loops_exit: bool,
}

/// What the host reports about the CPU that a ceded vCPU last ran on (a proposal for powerpc).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum IdleHint {
    /// Nothing.
    #[default]
    Off,
    /// A field that the host writes when that CPU becomes idle or busy.
    Vpa,
    /// The answer to a hypercall of the guest, which makes one for every idle CPU whose vCPU is not in the guest.
    Hcall,
}

/// What is done to a guest while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuestAction {
    /// Its vCPUs leave it and block until it is resumed (QEMU's `stop`).
    Pause,
    /// Its vCPUs run again (`cont`).
    Resume,
    /// The threads of its vCPUs exit (SIGKILL).
    Kill,
}

impl GuestAction {
    /// Every action, by its name in scenarios.
    pub const ALL: [(&'static str, GuestAction); 3] =
        [("pause", GuestAction::Pause), ("resume", GuestAction::Resume), ("kill", GuestAction::Kill)];
}

impl Platform {
    /// Every platform, by its name in scenarios.
    pub const ALL: [(&'static str, Platform); 6] = [
        ("x86-kvm", Platform::X86Kvm),
        ("arm64-kvm", Platform::Arm64Kvm),
        ("arm64-kvm-pvsched", Platform::Arm64KvmPvsched),
        ("powerpc-kvm", Platform::PowerpcKvm),
        ("powervm", Platform::Powervm),
        ("s390", Platform::S390),
    ];

    /// Whether its guests are partitions as PAPR defines them, which idle with cpuidle-pseries.
    #[must_use]
    pub const fn is_pseries(self) -> bool {
        matches!(self, Platform::PowerpcKvm | Platform::Powervm)
    }

    /// Which actions of a guest cause an exit. KVM_HALT_POLL_NS_DEFAULT is 200 us on x86, 500 us on arm64 and 50 us on
    /// s390. The 10 us of powerpc apply to virtual cores before POWER9; a single vCPU blocks at once
    /// (kvmhv_run_single_vcpu, 6.12).
    #[must_use]
    pub const fn costs(self) -> PlatformCosts {
        match self {
            // Without posted interrupts (Guest::costs). The TSC deadline timer is an MSR whose writes exit.
            Platform::X86Kvm => PlatformCosts {
                ipi_send_exits: true,
                ipi_receive_exits: true,
                timer_expiry_exits: true,
                timer_program_exits: true,
                halt_poll_max: 200 * USEC,
                pause_loops_exit: true,
            },
            // GICv2 and GICv3 without direct injection. The guest programs the virtual timer itself.
            Platform::Arm64Kvm | Platform::Arm64KvmPvsched => PlatformCosts {
                ipi_send_exits: true,
                ipi_receive_exits: true,
                timer_expiry_exits: true,
                timer_program_exits: false,
                halt_poll_max: 500 * USEC,
                pause_loops_exit: false,
            },
            // XIVE delivers interrupts to a running vCPU, and the decrementer is the guest's own.
            Platform::PowerpcKvm => PlatformCosts {
                ipi_send_exits: false,
                ipi_receive_exits: false,
                timer_expiry_exits: false,
                timer_program_exits: false,
                halt_poll_max: 0,
                pause_loops_exit: false,
            },
            Platform::Powervm => Platform::PowerpcKvm.costs(),
            // The machine interprets external calls (SIGP interpretation, sigpif) and the CPU's timers for a CPU that
            // runs.
            Platform::S390 => PlatformCosts { halt_poll_max: 50 * USEC, ..Platform::PowerpcKvm.costs() },
        }
    }
}
