//! The clocks of a runqueue (`struct rq`), apart by name.

use schedlab_model::Nanos;

/// How far each clock of a runqueue lags behind the time of the run.
///
/// The kernel reads `sched_clock()` and takes from it what the CPU did not give to tasks: `update_rq_clock_task` takes
/// off the time of interrupts and what a hypervisor stole. Interrupts are not modelled; stolen time is left out in
/// guests with CONFIG_PARAVIRT_TIME_ACCOUNTING. Here the clock stops while time is being stolen, for remote readers,
/// too; in the kernel it goes on for them until the vCPU runs again and accounts for the steal.
#[derive(Clone, Copy, Debug)]
pub struct RqClock {
    /// Steal time so far.
    not_task: Nanos,
    /// Since when time is being stolen; the end of time if it is not.
    stolen_from: Nanos,
}

impl Default for RqClock {
    fn default() -> Self {
        RqClock { not_task: 0, stolen_from: Nanos::MAX }
    }
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
        now.min(self.stolen_from) - self.not_task
    }

    /// Time is stolen from now on: true, or has been stolen already.
    pub fn stop(&mut self, now: Nanos) -> bool {
        let begins = self.stolen_from == Nanos::MAX;
        self.stolen_from = self.stolen_from.min(now);
        begins
    }

    /// Time is no longer stolen: how much was, if it has been stolen.
    pub fn start(&mut self, now: Nanos) -> Option<Nanos> {
        let from = std::mem::replace(&mut self.stolen_from, Nanos::MAX);
        let lost = now.checked_sub(from)?;
        self.not_task += lost;
        Some(lost)
    }
}
