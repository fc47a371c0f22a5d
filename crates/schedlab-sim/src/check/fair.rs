//! The fair class: incremental sums equal sums recomputed, and lag stays within its bound.

use schedlab_model::{CpuId, Nanos};
use schedlab_policy::Sched;

use super::Finding;

/// The checker's own record per CPU.
#[derive(Clone, Debug)]
pub struct FairSums {
    cpus: Vec<Pace>,
    pub looks: u64,
    pub lags: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Pace {
    last_pick: Nanos,
    /// Longest time between two picks while it had work.
    longest: Nanos,
    /// Largest slice seen on it.
    slice_max: Nanos,
}

impl FairSums {
    pub fn new(nr_cpus: usize) -> Self {
        FairSums { cpus: vec![Pace::default(); nr_cpus], looks: 0, lags: 0 }
    }

    #[inline]
    pub fn picked(&mut self, cpu: CpuId, now: Nanos) {
        let pace = &mut self.cpus[cpu.index()];
        pace.longest = pace.longest.max(now - pace.last_pick);
        pace.last_pick = now;
    }

    /// Looks at one CPU's queue.
    pub fn look(&mut self, sched: &Sched, cpu: CpuId, now: Nanos) -> Option<Finding> {
        self.looks += 1;
        let (kept, fresh) = (sched.fair.sums(cpu), sched.fair.recompute(cpu));
        if kept != fresh {
            return Some(("fair_sums", format!("{cpu:?}: kept {kept:?}, recomputed {fresh:?}")));
        }
        self.look_at_lags(sched, cpu, now)
    }

    /// EEVDF bounds every task's lag, in ns of service, by r_max + q: the largest request plus the longest time
    /// between two picks (ticks and sections that cannot be preempted round requests up).
    fn look_at_lags(&mut self, sched: &Sched, cpu: CpuId, now: Nanos) -> Option<Finding> {
        if sched.fair.config.version.rules.policy != schedlab_policy::Policy::Eevdf {
            return None;
        }
        let pace = &mut self.cpus[cpu.index()];
        let tasks = || sched.fair.queued(cpu);
        pace.slice_max = tasks().map(|task| sched.fair.entity(task).slice).max().unwrap_or(0).max(pace.slice_max);
        let bound = pace.slice_max + pace.longest.max(now - pace.last_pick);
        for task in tasks() {
            self.lags += 1;
            let entity = sched.fair.entity(task);
            let service = i128::from(sched.fair.lag(task)) * i128::from(entity.load.weight >> 10) / 1024;
            if service.unsigned_abs() > u128::from(bound) {
                let message = format!("{task:?} on {cpu:?}: lag {service} ns of service is beyond {bound} ns");
                return Some(("lag_bound", message));
            }
        }
        None
    }
}
