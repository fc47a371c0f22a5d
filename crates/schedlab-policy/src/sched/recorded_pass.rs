//! A balancing pass over one domain (`sched_balance_rq`) in the situation of a recorded one: what would be pulled, and
//! from where.
//!
//! The queues and loads are those of a [`Sched`], which stays as it is; the state of core code is passed with each
//! call. The pass begins where the kernel looks for the busiest group, so the check whether this CPU balances at all is
//! left out. Not modelled: per-CPU kthreads.

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

use super::placement::Placement;
use super::Sched;
use crate::balance::{CpuIdle, Env};
use crate::core::types::Moves;
use crate::fair::Fair;
use crate::flags::Dequeue;

/// The state that a pass depends on.
#[derive(Clone, Copy, Debug)]
pub struct PassSituation<'a> {
    /// The CPU that pulls.
    pub this: CpuId,
    /// Its state.
    pub idle: CpuIdle,
    /// The level of its domain, 0 = lowest ([`Placement::level`]).
    pub level: usize,
    /// The domain's `nr_balance_failed`.
    pub nr_balance_failed: u32,
    /// The CPUs that the pass considers (`env->cpus`).
    pub considered: CpuMask,
    /// The CPUs that are idle.
    pub idle_cpus: CpuMask,
    /// The CPUs that run a task of another class.
    pub others: CpuMask,
    /// The CPUs on which a task of another class waits.
    pub others_wait: CpuMask,
    /// `rq_clock_task` of each CPU when its queue is looked at.
    pub clocks: &'a [Nanos],
    /// The tick count, if the trace shows it.
    pub jiffies: Option<u64>,
}

/// What a pass does.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Pass {
    /// The CPU that it pulls from; `None`: it finds no imbalance.
    pub src: Option<CpuId>,
    /// The tasks that it moves, in the order in which they are detached.
    pub moved: Vec<TaskId>,
    /// The unit of the imbalance (`migration_type`), and how much of it was left in the end.
    pub imbalance: Option<(&'static str, u64)>,
    /// Utilisation and capacity of each cache as the pass leaves them; empty without cache-aware balancing.
    pub llc_stats: Vec<(u64, u64)>,
}

impl Placement {
    /// The level of a CPU's domain by its `imbalance_pct` and, where it is recorded, its number of CPUs. `None`: there
    /// is none, or several are alike.
    #[must_use]
    pub fn level(&self, cpu: CpuId, imbalance_pct: u32, weight: Option<u32>) -> Option<usize> {
        let fits = |level: &usize| {
            let domain = self.core.domains.at(cpu, *level);
            domain.imbalance_pct == imbalance_pct && weight.is_none_or(|weight| weight == domain.weight)
        };
        let mut found = (0..self.core.domains.depth(cpu)).filter(fits);
        found.next().filter(|_| found.next().is_none())
    }

    /// The capacity of a CPU (`rq->cpu_capacity`) from now on. Groups keep theirs until a pass renews it.
    pub fn set_capacity(&mut self, cpu: CpuId, capacity: u64) {
        let core = &mut self.core;
        core.capacities_shown |= std::mem::replace(&mut core.rqs[cpu.index()].cpu_capacity, capacity) != capacity;
    }

    /// `update_group_capacity` of a pass: the group of the pulling CPU has the capacity of that CPU, above the lowest
    /// domain the sum of the groups below.
    pub fn update_group_capacity(&mut self, this: CpuId, level: usize) {
        let core = &mut self.core;
        let capacity = match level.checked_sub(1) {
            None => core.rqs[this.index()].cpu_capacity,
            Some(below) => core.domains.at(this, below).groups.iter().map(|group| group.capacity).sum(),
        };
        core.domains.local_group_mut(this, level).capacity = capacity;
    }

    /// Whether affinity kept a lower level from balancing the CPU's group in a domain, and the group behind it
    /// (`sgc->imbalance`). Not followed from pass to pass: the kernel also clears the mark where it does not look for a
    /// group.
    pub fn set_marks(&mut self, cpu: CpuId, level: usize, marks: [Option<bool>; 2]) {
        self.core.domains.set_marks(cpu, level, marks);
    }

    /// The CPUs that a task may use.
    pub fn set_allowed(&mut self, task: TaskId, pid: i32, allowed: &CpuMask) {
        self.adopt(task, pid);
        let topology = self.core.topology.clone();
        self.core.tasks[task.index()].set_affinity(Some(allowed), &topology);
    }

    /// `sched_balance_rq`. `pids` has the pids of all tasks.
    pub fn sched_balance_rq(&mut self, sched: &Sched, asked: &PassSituation<'_>, pids: &[i32]) -> Pass {
        self.core.jiffies_shown = asked.jiffies;
        let mut fair = Fair::clone(&sched.fair);
        if asked.idle == CpuIdle::Newly {
            empty(&mut fair, asked.this, asked.clocks[asked.this.index()]);
        }
        let cpus: Vec<CpuId> = self.core.topology.all().iter().collect();
        for &cpu in &cpus {
            for task in fair.cfs_tasks(cpu).collect::<Vec<_>>() {
                if let Some(pid) = pids.get(task.index()) {
                    self.adopt(task, *pid);
                    self.core.tasks[task.index()].cpu = cpu;
                }
            }
        }
        let mut core = self.core.clone();
        let now = core.show_clocks(asked.clocks);
        core.domains.state_mut(asked.this, asked.level).nr_balance_failed = asked.nr_balance_failed;
        for &cpu in &cpus {
            let rq = &mut core.rqs[cpu.index()];
            (rq.curr, rq.idle) = (fair.curr(cpu), asked.idle_cpus.has(cpu));
            (rq.nr_running, rq.by_class, rq.ttwu_pending) = (0, Default::default(), false);
            fair.with(&mut core).take_counts(cpu);
            core.add_nr_running(cpu, u32::from(asked.others.has(cpu)) + u32::from(asked.others_wait.has(cpu)));
        }
        let left_out = self.core.domains.at(asked.this, asked.level).span.without(&asked.considered);
        let mut env = Env::new(asked.this, asked.level, asked.idle, now);
        env.excluded = (!left_out.is_empty()).then_some(left_out);
        let mut moves = Moves::default();
        fair.with(&mut core).pull(&mut env, &mut moves);
        Pass {
            src: env.src,
            moved: moves.moved.into_iter().map(|(task, _)| task).collect(),
            imbalance: env.src.map(|_| (env.migrate.name(), env.imbalance)),
            llc_stats: fair.llc_stats(),
        }
    }
}

/// A CPU that is about to become idle has dequeued its tasks, delayed ones too.
fn empty(fair: &mut Fair, cpu: CpuId, now: Nanos) {
    for task in fair.cfs_tasks(cpu).collect::<Vec<_>>() {
        fair.finish_delayed(task);
        if fair.entity(task).on_rq {
            fair.dequeue_task(cpu, task, Dequeue { sleep: true, special: true, ..Dequeue::default() }, now);
        }
    }
}
