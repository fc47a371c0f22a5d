//! CPUs that go offline and come back.

use schedlab_model::{CpuMask, Nanos};

/// `/sys/devices/system/cpu/cpuN/online` of some CPUs is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuChange {
    /// When, since the start of the run.
    pub at: Nanos,
    /// Which CPUs.
    pub cpus: CpuMask,
    /// Whether they come online.
    pub online: bool,
}
