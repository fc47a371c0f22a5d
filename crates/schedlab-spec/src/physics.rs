//! Mechanisms beyond the cost of instructions, each of which a machine has or does not have.

/// A mechanism.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// A cache line that another CPU touched last is transferred ([`crate::Costs::line_transfer`]).
    Lines,
    /// Tasks wait for locks of the kernel.
    Locks,
    /// A search for a CPU and the wakeup path take time before the enqueue, newidle balancing before the pick.
    Selection,
    /// A governor, menu unless there is TEO, chooses idle states and stops the tick.
    Cpuidle,
    /// The governor is TEO, where the kernel has a form of it that is modelled.
    Teo,
    /// The threads of a core reach an idle state together.
    CoreIdle,
    /// The kernel's periodic threads run ([`schedlab_workload::housekeeping`]).
    Housekeeping,
    /// CPUs share the bandwidth of a node's memory ([`crate::Memory`]).
    Memory,
    /// The frequency of CPUs changes with the busy cores, or as a governor says ([`crate::Frequency`]).
    Frequency,
    /// That governor is schedutil.
    Schedutil,
    /// Threads of a process wait for its `mmap_lock`.
    MmapLock,
    /// A task that is switched in finds part of its working set evicted ([`crate::Caches`]).
    Warmth,
}

impl Mechanism {
    /// All of them, in the order in which they were built.
    pub const ALL: [Mechanism; 12] = [
        Mechanism::Lines,
        Mechanism::Locks,
        Mechanism::Selection,
        Mechanism::Cpuidle,
        Mechanism::CoreIdle,
        Mechanism::Housekeeping,
        Mechanism::Memory,
        Mechanism::Warmth,
        Mechanism::Teo,
        Mechanism::MmapLock,
        Mechanism::Frequency,
        Mechanism::Schedutil,
    ];

    /// Its key in machine files and variants.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Lines => "lines",
            Mechanism::Locks => "locks",
            Mechanism::Selection => "selection",
            Mechanism::Cpuidle => "cpuidle",
            Mechanism::Teo => "teo",
            Mechanism::CoreIdle => "core-idle",
            Mechanism::Housekeeping => "housekeeping",
            Mechanism::Memory => "memory",
            Mechanism::Warmth => "warmth",
            Mechanism::MmapLock => "mmap-lock",
            Mechanism::Frequency => "frequency",
            Mechanism::Schedutil => "schedutil",
        }
    }
}

/// Which mechanisms are on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Physics {
    /// [`Mechanism::Lines`].
    pub lines: bool,
    /// [`Mechanism::Locks`].
    pub locks: bool,
    /// [`Mechanism::Selection`].
    pub selection: bool,
    /// [`Mechanism::Cpuidle`].
    pub cpuidle: bool,
    /// [`Mechanism::Teo`].
    pub teo: bool,
    /// [`Mechanism::CoreIdle`].
    pub core_idle: bool,
    /// [`Mechanism::Housekeeping`].
    pub housekeeping: bool,
    /// [`Mechanism::Memory`].
    pub memory: bool,
    /// [`Mechanism::Warmth`].
    pub warmth: bool,
    /// [`Mechanism::MmapLock`].
    pub mmap_lock: bool,
    /// [`Mechanism::Frequency`].
    pub frequency: bool,
    /// [`Mechanism::Schedutil`].
    pub schedutil: bool,
}

impl Physics {
    /// Whether a mechanism is on.
    #[must_use]
    pub fn has(&self, mechanism: Mechanism) -> bool {
        match mechanism {
            Mechanism::Lines => self.lines,
            Mechanism::Locks => self.locks,
            Mechanism::Selection => self.selection,
            Mechanism::Cpuidle => self.cpuidle,
            Mechanism::Teo => self.teo,
            Mechanism::CoreIdle => self.core_idle,
            Mechanism::Housekeeping => self.housekeeping,
            Mechanism::Memory => self.memory,
            Mechanism::Warmth => self.warmth,
            Mechanism::MmapLock => self.mmap_lock,
            Mechanism::Frequency => self.frequency,
            Mechanism::Schedutil => self.schedutil,
        }
    }

    /// Switches a mechanism.
    pub fn set(&mut self, mechanism: Mechanism, on: bool) {
        match mechanism {
            Mechanism::Lines => self.lines = on,
            Mechanism::Locks => self.locks = on,
            Mechanism::Selection => self.selection = on,
            Mechanism::Cpuidle => self.cpuidle = on,
            Mechanism::Teo => self.teo = on,
            Mechanism::CoreIdle => self.core_idle = on,
            Mechanism::Housekeeping => self.housekeeping = on,
            Mechanism::Memory => self.memory = on,
            Mechanism::Warmth => self.warmth = on,
            Mechanism::MmapLock => self.mmap_lock = on,
            Mechanism::Frequency => self.frequency = on,
            Mechanism::Schedutil => self.schedutil = on,
        }
    }
}
