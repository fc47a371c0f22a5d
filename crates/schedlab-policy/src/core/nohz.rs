//! The CPUs whose tick is stopped, and when they are next balanced (`nohz`, kernel/sched/fair.c).

use schedlab_model::CpuMask;

use crate::jiffies::Jiffies;

/// `nohz`: the CPUs without a tick.
#[derive(Clone, Debug)]
pub(crate) struct Nohz {
    pub idle_cpus: CpuMask,
    pub count: u32,
    pub next_balance: Jiffies,
    /// When the blocked load of idle CPUs is next updated.
    pub next_blocked: Jiffies,
}

impl Nohz {
    /// Every CPU of the machine has its tick stopped.
    pub fn new(all: &CpuMask) -> Self {
        Nohz { idle_cpus: *all, count: all.count() as u32, next_balance: 0, next_blocked: 0 }
    }
}
