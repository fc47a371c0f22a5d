//! The fair class: incremental sums equal sums recomputed, and lag stays within its bound.

use schedlab_model::{CpuId, Nanos, Table};
use schedlab_policy::fair::GroupId;
use schedlab_policy::{Algorithm, Sched};

use super::Finding;

/// The checker's record per CPU.
#[derive(Clone, Debug)]
pub struct FairSums {
    cpus: Table<Pace>,
    /// Largest slice seen.
    slice_max: Nanos,
    /// Longest time between two picks on any CPU: a task keeps its lag when it changes CPU, so the slowest CPU bounds
    /// all.
    longest: Nanos,
    pub looks: u64,
    pub lags: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Pace {
    last_pick: Nanos,
    /// When a task was last enqueued on it or dequeued, by `rq->clock_task`.
    changed: Nanos,
}

/// A group's entity is queued on a CPU exactly while tasks are queued in the group there and it is not throttled, or
/// while the entity's own dequeue is delayed.
fn wrong_entity(sched: &Sched, group: GroupId, cpu: CpuId) -> Option<String> {
    let se = sched.fair.group_entity(group, cpu)?;
    let below = sched.fair.group_rq(group, cpu);
    let throttled = below.throttled && !sched.fair.config.rules.throttles_tasks();
    let queued = below.nr_running;
    let wrong = se.on_rq != (queued > 0 && !throttled || se.sched_delayed);
    wrong.then(|| format!("{queued} entities are queued in it, but its own is queued: {}", se.on_rq))
}

impl FairSums {
    pub fn new(nr_cpus: usize) -> Self {
        FairSums { cpus: vec![Pace::default(); nr_cpus].into(), slice_max: 0, longest: 0, looks: 0, lags: 0 }
    }

    #[inline]
    pub fn picked(&mut self, cpu: CpuId, now: Nanos) {
        let pace = &mut self.cpus[cpu.index()];
        self.longest = self.longest.max(now - pace.last_pick);
        pace.last_pick = now;
    }

    /// A task was enqueued on the CPU or dequeued, or its weight or slice changed.
    #[inline]
    pub fn changed(&mut self, cpu: CpuId, clock_task: Nanos) {
        self.cpus[cpu.index()].changed = clock_task;
    }

    /// Looks at one CPU's queue. Service is measured by `clock_task`, which stands while time is stolen.
    pub fn look(&mut self, sched: &Sched, cpu: CpuId, now: Nanos, clock_task: Nanos) -> Option<Finding> {
        self.looks += 1;
        for group in (0..sched.fair.nr_groups() as u32).map(GroupId) {
            let (kept, fresh) = (sched.fair.view().sums(group, cpu), sched.fair.view().recomputed_sums(group, cpu));
            if kept != fresh {
                return Some(("fair_sums", format!("{cpu:?} {group:?}: kept {kept:?}, recomputed {fresh:?}")));
            }
            if let Some(message) = wrong_entity(sched, group, cpu) {
                return Some(("fair_groups", format!("{cpu:?} {group:?}: {message}")));
            }
        }
        // A group's weight follows its load, so no share is steady enough for a bound.
        match sched.fair.nr_groups() {
            1 => self.look_at_lags(sched, cpu, now, clock_task),
            _ => None,
        }
    }

    /// EEVDF bounds every task's lag, in ns of service, by r_max + q: the largest request plus the longest time
    /// between two picks (ticks and sections that cannot be preempted round requests up).
    ///
    /// The theorem is about a steady set of competitors that start without lag. A task that is enqueued may carry as
    /// much lag as the kernel's clamp allows, and moves V for the others; positive lag is served first. So the bound
    /// applies to a queue whose set has not changed for as long as it takes to serve every task's clamp and request.
    /// For negative lag, which only the progress of V reduces, the clamp is the bound where it is larger.
    ///
    /// Picks happen only every q, so a shorter request overshoots. While a task is owed service, each of the n - 1
    /// others may overshoot once, and the task's share of that time, (n - 1) q w / W, is owed as well.
    fn look_at_lags(&mut self, sched: &Sched, cpu: CpuId, now: Nanos, clock_task: Nanos) -> Option<Finding> {
        if sched.fair.config.rules.algorithm != Algorithm::Eevdf {
            return None;
        }
        let pace = self.cpus[cpu.index()];
        self.longest = self.longest.max(now - pace.last_pick);
        let tasks = || sched.fair.view().queued(cpu);
        let slice_max = tasks().map(|task| sched.fair.entity(task).slice).max().unwrap_or(0);
        self.slice_max = self.slice_max.max(slice_max);
        let bound = self.slice_max + self.longest;
        // update_entity_lag's clamp, as service.
        let clamp = (2 * self.slice_max).max(sched.fair.config.tick_nsec());
        let settled = pace.changed + (bound + clamp) * u64::from(sched.nr_running(cpu));
        if clock_task < settled {
            return None;
        }
        let load = sched.fair.rq(cpu).load.weight.max(1);
        for task in tasks() {
            self.lags += 1;
            let entity = sched.fair.entity(task);
            let service = i128::from(sched.fair.view().lag(task)) * i128::from(entity.load.weight >> 10) / 1024;
            let share = u128::from(entity.load.weight) * u128::from(self.longest) / u128::from(load);
            let overshoot = (share * u128::from(sched.nr_running(cpu).saturating_sub(1))) as u64;
            let limit = if service < 0 { bound.max(clamp) } else { bound + overshoot };
            if service.unsigned_abs() > u128::from(limit) {
                let message = format!("{task:?} on {cpu:?}: lag {service} ns of service is beyond {limit} ns");
                return Some(("lag_bound", message));
            }
        }
        None
    }
}
