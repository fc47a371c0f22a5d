//! The clocks of a runqueue (`struct rq`), apart by name.

use schedlab_model::Nanos;

/// How far each clock of a runqueue lags behind the time of the run.
///
/// The kernel reads `sched_clock()` and takes from it what the CPU did not give to tasks: `update_rq_clock_task` takes off
/// the time of interrupts and what a hypervisor stole. Neither is modelled yet, so the clocks show the same number today;
/// each use says which one it reads.
#[derive(Clone, Copy, Default, Debug)]
pub struct RqClock {
    /// Time in interrupts and steal time so far.
    not_task: Nanos,
}

impl RqClock {
    /// `rq->clock`: the time since boot.
    #[inline]
    pub fn clock(self, now: Nanos) -> Nanos {
        now
    }

    /// `rq->clock_task`: without interrupts and steal time. Runtime and vruntime are measured by it.
    #[inline]
    pub fn clock_task(self, now: Nanos) -> Nanos {
        now - self.not_task
    }
}
