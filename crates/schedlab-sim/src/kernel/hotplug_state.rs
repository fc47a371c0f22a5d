//! A kernel's state of CPUs that go offline: the changes to come, the CPUs that tasks still have to leave, parked
//! timers.

use schedlab_model::CpuId;
use schedlab_spec::CpuChange;

use super::percpu::HrTimer;

/// The CPUs of a run that go offline and come back.
#[derive(Debug)]
pub struct Hotplug {
    /// Future changes, the next one last.
    pub(super) later: Vec<CpuChange>,
    /// CPUs that are no longer active, from which tasks still leave.
    pub(super) leaving: Vec<CpuId>,
    /// The timers of the kernel threads of CPUs that are offline, and whether they are deferrable.
    pub(super) parked: Vec<(CpuId, HrTimer, bool)>,
}

impl Hotplug {
    /// `None` if no CPU ever goes offline.
    pub fn new(changes: &[CpuChange]) -> Option<Box<Hotplug>> {
        let later: Vec<CpuChange> = changes.iter().rev().copied().collect();
        (!later.is_empty()).then(|| Box::new(Hotplug { later, leaving: Vec::new(), parked: Vec::new() }))
    }
}
