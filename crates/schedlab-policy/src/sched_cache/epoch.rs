//! Run times that halve every epoch (`struct sched_cache_time`, `__update_mm_sched`, `fraction_mm_sched`).
//!
//! A CPU counts the run time of all processes, and a process its own on that CPU. The part of the CPU that the process
//! has is their quotient; both halve at the CPU's epochs, `llc_balancing/epoch_period` jiffies apart.

use schedlab_model::Nanos;

use crate::jiffies::Jiffies;

/// `NICE_0_LOAD` on 64-bit kernels.
const NICE_0_LOAD: u64 = 1 << 20;

/// The epochs of one CPU (`rq->cpu_epoch`, `rq->cpu_epoch_next`, `rq->cpu_runtime`).
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuEpoch {
    pub epoch: u64,
    next: Jiffies,
    pub runtime: Nanos,
}

/// What a process has run on one CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheTime {
    pub runtime: Nanos,
    pub epoch: u64,
}

impl CpuEpoch {
    /// The first epoch begins now.
    pub fn at(jiffies: Jiffies) -> CpuEpoch {
        CpuEpoch { epoch: 0, next: jiffies, runtime: 0 }
    }

    /// The part of `__update_mm_sched` that concerns the CPU: all epochs up to now.
    pub fn update(&mut self, jiffies: Jiffies, period: Jiffies) {
        if jiffies > self.next {
            let n = (jiffies - self.next).div_ceil(period);
            self.epoch += n;
            self.next += n * period;
            self.runtime = halved(self.runtime, n);
        }
    }
}

impl CacheTime {
    /// The part that concerns the process: it follows the CPU.
    pub fn follow(&mut self, cpu: &CpuEpoch) {
        self.runtime = halved(self.runtime, cpu.epoch - self.epoch);
        self.epoch = cpu.epoch;
    }

    /// `fraction_mm_sched`, after both were updated.
    pub fn fraction_mm_sched(&self, cpu: &CpuEpoch) -> u64 {
        (u128::from(NICE_0_LOAD) * u128::from(self.runtime) / (u128::from(cpu.runtime) + 1)) as u64
    }
}

fn halved(runtime: Nanos, times: u64) -> Nanos {
    u32::try_from(times).ok().and_then(|times| runtime.checked_shr(times)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_time_halves_at_each_epoch() {
        for (jiffies, epoch, next, left) in [
            (100, 0, 100, 800),
            (101, 1, 102, 400),
            (102, 1, 102, 400),
            (103, 2, 104, 200),
            (107, 4, 108, 50),
            (400, 150, 400, 0),
        ] {
            let mut cpu = CpuEpoch { runtime: 800, ..CpuEpoch::at(100) };
            let mut time = CacheTime { runtime: 400, epoch: 0 };
            // One step or several make no difference.
            for step in [100, 101, 104] {
                cpu.update(step.min(jiffies), 2);
            }
            cpu.update(jiffies, 2);
            time.follow(&cpu);
            assert_eq!((cpu.epoch, cpu.next, cpu.runtime, time.runtime), (epoch, next, left, left / 2), "at {jiffies}");
        }
        let (cpu, time) = (CpuEpoch { runtime: 999, ..CpuEpoch::at(0) }, CacheTime { runtime: 250, epoch: 0 });
        assert_eq!(time.fraction_mm_sched(&cpu), NICE_0_LOAD / 4);
    }
}
