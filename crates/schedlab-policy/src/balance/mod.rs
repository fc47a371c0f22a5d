//! Load balancing of the fair class: which CPU pulls tasks from which, and when (kernel/sched/fair.c 5.2 to 7.2).
//!
//! A pass over one domain ([`sched_balance_rq`]): statistics of its groups ([`sg_lb_stats`]), the busiest one and by
//! how much ([`sched_balance_find_src_group`]), then tasks are moved from one of its CPUs ([`detach_tasks`]). A pass is
//! run by a CPU that is about to become idle ([`sched_balance_newidle`]), at ticks ([`sched_balance_domains`]), and by
//! one idle CPU on behalf of the others ([`nohz`]). After repeated failures a running task is pushed
//! ([`active_balance`]). Not modelled: asymmetric packing, capacity used by interrupts.

mod active_balance;
mod capacity;
mod detach_tasks;
mod find_busiest_group_by_load;
pub(crate) mod nohz;
mod sched_balance_domains;
pub(crate) mod sched_balance_find_src_group;
mod sched_balance_newidle;
mod sched_balance_rq;
mod sched_cache_lb;
pub(crate) mod sg_lb_stats;
pub(crate) mod swqueue;

use schedlab_model::{CpuId, CpuMask, Nanos};

use crate::numa::Fbq;

/// The state of the pulling CPU (`enum cpu_idle_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpuIdle {
    /// It runs a task.
    Not,
    /// It is idle.
    Idle,
    /// It is about to become idle.
    Newly,
}

/// The unit of an imbalance (`enum migration_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Migrate {
    /// Sum of weights.
    Load,
    /// Utilisation.
    Util,
    /// Tasks.
    Task,
    /// One task that is too big for its CPU.
    Misfit,
    /// One task that prefers the cache of the pulling CPU (7.2 and later).
    LlcTask,
}

/// One balancing pass (`struct lb_env`).
#[derive(Clone, Debug)]
pub(crate) struct Env {
    /// The CPU that receives tasks.
    pub dst: CpuId,
    /// The level of the domain, 0 = lowest.
    pub level: usize,
    /// The balancing CPU, whose domain and counters are used.
    pub this: CpuId,
    pub idle: CpuIdle,
    pub now: Nanos,
    /// The CPU that tasks are taken from, once it is found (`src_cpu`).
    pub src: Option<CpuId>,
    /// CPUs no longer considered in this pass, once there are any.
    pub excluded: Option<CpuMask>,
    pub migrate: Migrate,
    pub imbalance: u64,
    pub pinned: Pinned,
    /// The tasks of the busiest group, by the nodes that they prefer.
    pub fbq: Fbq,
}

/// How affinity restricts a pass (`LBF_*` of `lb_env.flags`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Pinned {
    /// An imbalance was found, and no task that was considered may run on the destination (`LBF_ALL_PINNED`).
    pub all: bool,
    /// Some of them may not (`LBF_SOME_PINNED`).
    pub some: bool,
    /// A task was kept where it is by the preference of its process for a cache (`LBF_LLC_PINNED`).
    pub llc: bool,
    /// Another CPU of the destination's group that such a task may use (`LBF_DST_PINNED`, `new_dst_cpu`).
    pub elsewhere: Option<CpuId>,
}

impl Migrate {
    /// The kernel's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Migrate::Load => "migrate_load",
            Migrate::Util => "migrate_util",
            Migrate::Task => "migrate_task",
            Migrate::Misfit => "migrate_misfit",
            Migrate::LlcTask => "migrate_llc_task",
        }
    }
}

impl Env {
    /// A pass that has not begun.
    pub fn new(this: CpuId, level: usize, idle: CpuIdle, now: Nanos) -> Env {
        let (migrate, imbalance) = (Migrate::Load, 0);
        Env {
            dst: this,
            level,
            this,
            idle,
            now,
            src: None,
            excluded: None,
            migrate,
            imbalance,
            pinned: Pinned::default(),
            fbq: Fbq::All,
        }
    }

    pub fn considers(&self, cpu: CpuId) -> bool {
        self.excluded.as_ref().is_none_or(|mask| !mask.has(cpu))
    }

    pub fn exclude(&mut self, cpu: CpuId) {
        self.excluded.get_or_insert_with(CpuMask::default).set(cpu);
    }
}
