//! The cost of VM exits of a guest's CPU, and their number.

use schedlab_spec::PlatformCosts;

/// Why a vCPU leaves the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// The guest's CPU halts (HLT, WFI, H_CEDE).
    Halt,
    /// An inter-processor interrupt of the guest, sent or received.
    Ipi,
    /// A timer of the guest: programmed or expired.
    Timer,
    /// An interrupt of the host.
    Host,
    /// A hypercall: a question whether a vCPU is preempted (`idle_hint = "hcall"`), or the kick of one that waits for a
    /// spinlock.
    Hcall,
    /// A long loop of PAUSE (pause-loop exiting).
    Pause,
}

/// Every cause, by its name in metrics.
pub const EXITS: [(&str, Exit); 6] = [
    ("halt", Exit::Halt),
    ("ipi", Exit::Ipi),
    ("timer", Exit::Timer),
    ("host", Exit::Host),
    ("hcall", Exit::Hcall),
    ("pause", Exit::Pause),
];

/// The exits of a guest.
#[derive(Clone, Debug)]
pub struct Exits {
    pub platform: PlatformCosts,
    /// How many, by cause.
    pub counts: [u64; EXITS.len()],
}

impl Exits {
    pub fn new(platform: PlatformCosts) -> Self {
        Exits { platform, counts: [0; EXITS.len()] }
    }

    pub fn count(&mut self, exit: Exit) {
        self.counts[exit as usize] += 1;
    }
}
