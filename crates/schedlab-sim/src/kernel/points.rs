//! Where a request to reschedule is honoured, by the preemption model: which modes are left at once, and whether the points
//! at which kernel code offers to reschedule do so.

use schedlab_policy::PreemptModel;

use super::percpu::PerCpu;
use crate::machine::{Mode, Segment};

/// The preemption model as the simulator uses it.
#[derive(Clone, Copy, Debug)]
pub struct Points {
    /// Modes that a request seen by the kernel's entry code ends at once, one bit per mode.
    preempted: u16,
    cond_resched: bool,
    might_sleep: bool,
}

impl Points {
    /// Those of a model.
    pub fn of(model: PreemptModel) -> Points {
        let bit = |mode: Mode| 1u16 << mode as u16;
        let mut preempted = bit(Mode::User) | bit(Mode::Stream) | bit(Mode::Wall) | bit(Mode::Spin) | bit(Mode::Guest);
        if model.is_preemptible() {
            preempted |= bit(Mode::Kernel);
        }
        if model.has_sleeping_locks() {
            preempted |= bit(Mode::Locked);
        }
        Points { preempted, cond_resched: model.has_cond_resched(), might_sleep: model.has_might_resched() }
    }

    /// Whether the CPU calls `__schedule` as soon as its overhead is spent.
    #[inline(always)]
    pub fn switches_now(&self, cpu: &PerCpu, segment: &Segment) -> bool {
        cpu.resched_seen && self.preempted >> segment.mode as u16 & 1 != 0
            || segment.every != 0 && self.reschedules_at_points(cpu, segment) && segment.until_point() == 0
    }

    /// Whether the segment's points find the flag set.
    #[inline(never)]
    pub fn reschedules_at_points(&self, cpu: &PerCpu, segment: &Segment) -> bool {
        let honoured = if segment.might_sleep { self.might_sleep } else { self.cond_resched };
        honoured && cpu.need_resched && segment.mode == Mode::Kernel
    }
}
