//! The placement and balancing rules that differ between kernel versions, one row of data each.
//!
//! Read in kernel/sched/{fair,core,topology}.c of 5.2.1, 5.7.14, mainline of March 2021 (what became 5.13), 6.1.192
//! (Debian), 6.3.8, 6.6.0, 6.12.0, 6.12.107 (Debian), 6.18.2 and 7.2.13 (Debian). Features that exist as switches are not
//! here but in the feature table.

/// In which order the target's cache is searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleSearch {
    /// For an idle core, then within a budget for a CPU, then for a thread of the target's core (up to 5.11).
    ThreePasses {
        /// The first busy thread ends the look at a core, and CPUs that the task may not use cost no budget (5.7).
        stops_early: bool,
    },
    /// Once, for a core or a CPU; without the hint of an idle core a thread of prev's core comes first (5.12 and later).
    OnePass,
}

/// Whether a CPU that runs only SCHED_IDLE tasks counts as idle for a wakee (`sched_idle_cpu`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedIdleCpu {
    /// There is no such thing (5.2).
    Unknown,
    /// Yes (5.4 and later).
    Counts,
    /// Not for a wakee that is SCHED_IDLE itself (`choose_sched_idle_rq`, 7.x).
    CountsForOthers,
}

/// Where `recent_used_cpu` comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecentCpu {
    /// The CPU on which the task last woke somebody affine; prev once it was used itself (up to 5.14).
    WhereItWoke,
    /// The CPU before prev (5.15 and later).
    BeforePrev,
}

/// When an idle spell is counted into `avg_idle`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleSpell {
    /// At the wakeup that ends it (`ttwu_do_activate`).
    Wakeup,
    /// When the idle task is switched out, whoever ended it (`put_prev_task_idle`, 7.x).
    SwitchOut,
}

/// When a wakeup goes to the wakelist of its CPU, which enqueues it itself (`ttwu_queue_cond`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteQueue {
    /// If no cache is shared; the waker waits for a task that is still leaving its CPU (up to 5.7).
    OtherCache,
    /// The same, or if the task is still leaving its CPU and nobody else is there (WF_ON_CPU, 5.8 to 5.18).
    OrLeaving,
    /// The same, or if nobody is there (5.15 stable, 5.19 and later).
    OrEmpty,
}

/// By what groups of CPUs are compared, for a new task and for balancing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupsBy {
    /// Load per capacity (up to 5.4).
    Load,
    /// Type first: spare, busy, overloaded (5.5 and later).
    Type,
}

/// How uneven NUMA nodes may stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumaSlack {
    /// As any other domain (up to 5.4).
    None,
    /// Two tasks on the busier node; a new task stays while its node has an idle CPU (5.5 to 5.10).
    Pair,
    /// Two tasks, while a quarter of the CPUs is used (5.11 to 5.17).
    Quarter,
    /// Two tasks, while no more than `imb_numa_nr` run (5.18 and later).
    PerNode,
}

/// How big a task may be for the imbalance it is to remove.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DetachLimit {
    /// Twice as big by load (up to 5.4).
    Double,
    /// Twice as big by load, any size after failures; by utilisation no bigger (5.5 to 5.9).
    DoubleUntilFailed,
    /// The bigger the more passes failed, by load; by utilisation no bigger (5.10 to 6.6).
    LoadGrows,
    /// The same by load and utilisation (6.1 stable, 6.12 and later).
    Grows,
}

/// Rule choices of one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacementRules {
    /// `select_idle_sibling`: the search.
    pub idle_search: IdleSearch,
    /// The search starts at the target, not behind it (up to 5.13).
    pub search_from_target: bool,
    /// SIS_PROP counts with `avg_idle / 512`, not with `wake_avg_idle` (up to 5.13).
    pub prop_by_avg_idle: bool,
    /// `sched_idle_cpu`.
    pub sched_idle_cpu: SchedIdleCpu,
    /// `recent_used_cpu`.
    pub recent_cpu: RecentCpu,
    /// `wake_affine_idle` prefers an idle prev before loads are compared (5.11 and later).
    pub affine_prev_idle: bool,
    /// `wake_affine` does not count tasks whose dequeue is delayed (6.12.107+; 6.12.0 counts them).
    pub affine_skips_delayed: bool,
    /// `ttwu_queue_cond`.
    pub remote_queue: RemoteQueue,
    /// `avg_idle`.
    pub idle_spell: IdleSpell,
    /// `sched_balance_find_dst_group`, `find_busiest_group`.
    pub groups_by: GroupsBy,
    /// Among groups with equally many idle CPUs a new task goes to the one used least (5.10 and later).
    pub idlest_by_util: bool,
    /// `adjust_numa_imbalance`.
    pub numa_slack: NumaSlack,
    /// `sd_init`: busy CPUs balance so many times more seldom.
    pub busy_factor: u64,
    /// `get_sd_balance_interval`: and a jiffy earlier, so that levels do not meet (5.10 and later).
    pub busy_jiffy_less: bool,
    /// `sd_init`: imbalance_pct above the cache.
    pub imbalance_pct: u32,
    /// `newidle_balance`: the gate is what a pass over the lowest domain costs, a wakeup on its way ends it before it
    /// begins, and costs decay with newidle passes too (5.14 to 5.16 and later; before: the gate is migration_cost).
    pub newidle_by_cost: bool,
    /// `calculate_imbalance`: within a cache spare capacity is filled by tasks, not by utilisation (5.10 and later).
    pub tasks_in_llc: bool,
    /// `calculate_imbalance`: nothing to pull at or above the domain's average (5.15 and later).
    pub stops_at_average: bool,
    /// `detach_tasks`.
    pub detach_limit: DetachLimit,
    /// `task_hot` between threads of a core too (up to 5.9).
    pub hot_between_threads: bool,
    /// `need_active_balance` whatever the imbalance is counted in; the push counts as progress (up to 5.11).
    pub pushes_for_anything: bool,
    /// `should_we_balance`: above SMT an idle CPU of a wholly idle core goes before one with a busy sibling (6.6+).
    pub prefer_idle_core: bool,
    /// `sibling_imbalance`: running tasks are compared per core, and only an idle puller evens them out (6.6+).
    pub sibling_imbalance: bool,
    /// `group_smt_balance`: an idle puller takes from an SMT core with more than one task (6.6+).
    pub smt_balance: bool,
    /// Of equally busy groups without overload the last wins, unless the choice so far is an SMT core (6.6+).
    pub last_fully_busy: bool,
    /// `can_migrate_task`: a task whose dequeue is delayed moves only where load is to be evened out (6.14+).
    pub refuses_delayed: bool,
    /// `can_migrate_task`: until a pass has failed, a task that owes service stays if its queue there has anybody (6.14+).
    pub prefers_eligible: bool,
    /// `find_busiest_queue`: utilisation counts time spent waiting too (`cpu_util_cfs_boost`, 6.5+).
    pub runnable_boost: bool,
    /// An idle puller takes the only task of a CPU whose capacity others use (`sched_reduced_capacity`, 6.0+).
    pub reduced_capacity: bool,
    /// Of groups with equally big such tasks the last one counts (up to 6.6).
    pub last_misfit: bool,
}

/// 6.1.192.
pub(crate) const V6_1: PlacementRules = PlacementRules {
    idle_search: IdleSearch::OnePass,
    search_from_target: false,
    prop_by_avg_idle: false,
    sched_idle_cpu: SchedIdleCpu::Counts,
    recent_cpu: RecentCpu::BeforePrev,
    affine_prev_idle: true,
    affine_skips_delayed: false,
    remote_queue: RemoteQueue::OrEmpty,
    idle_spell: IdleSpell::Wakeup,
    groups_by: GroupsBy::Type,
    idlest_by_util: true,
    numa_slack: NumaSlack::PerNode,
    busy_factor: 16,
    busy_jiffy_less: true,
    imbalance_pct: 117,
    newidle_by_cost: true,
    tasks_in_llc: true,
    stops_at_average: true,
    detach_limit: DetachLimit::Grows,
    hot_between_threads: false,
    pushes_for_anything: false,
    prefer_idle_core: false,
    sibling_imbalance: false,
    smt_balance: false,
    last_fully_busy: false,
    refuses_delayed: false,
    prefers_eligible: false,
    runnable_boost: false,
    reduced_capacity: true,
    last_misfit: true,
};

/// 5.13.
pub(crate) const V5_13: PlacementRules = PlacementRules {
    search_from_target: true,
    prop_by_avg_idle: true,
    recent_cpu: RecentCpu::WhereItWoke,
    remote_queue: RemoteQueue::OrLeaving,
    numa_slack: NumaSlack::Quarter,
    newidle_by_cost: false,
    reduced_capacity: false,
    stops_at_average: false,
    detach_limit: DetachLimit::LoadGrows,
    ..V6_1
};

/// 5.7.
pub(crate) const V5_7: PlacementRules = PlacementRules {
    idle_search: IdleSearch::ThreePasses { stops_early: true },
    affine_prev_idle: false,
    remote_queue: RemoteQueue::OtherCache,
    idlest_by_util: false,
    numa_slack: NumaSlack::Pair,
    busy_factor: 32,
    busy_jiffy_less: false,
    imbalance_pct: 125,
    tasks_in_llc: false,
    detach_limit: DetachLimit::DoubleUntilFailed,
    hot_between_threads: true,
    pushes_for_anything: true,
    ..V5_13
};

/// 5.2.
pub(crate) const V5_2: PlacementRules = PlacementRules {
    idle_search: IdleSearch::ThreePasses { stops_early: false },
    sched_idle_cpu: SchedIdleCpu::Unknown,
    groups_by: GroupsBy::Load,
    numa_slack: NumaSlack::None,
    detach_limit: DetachLimit::Double,
    ..V5_7
};

/// 6.3, and the series of 2023 on it.
pub(crate) const V6_3: PlacementRules = PlacementRules { detach_limit: DetachLimit::LoadGrows, ..V6_1 };

/// 6.6.
pub(crate) const V6_6: PlacementRules = PlacementRules {
    prefer_idle_core: true,
    sibling_imbalance: true,
    smt_balance: true,
    last_fully_busy: true,
    runnable_boost: true,
    ..V6_3
};

/// 6.12.0.
pub(crate) const V6_12: PlacementRules =
    PlacementRules { detach_limit: DetachLimit::Grows, last_misfit: false, ..V6_6 };

/// From 6.12 stable on.
pub(crate) const V6_12_107: PlacementRules = PlacementRules { affine_skips_delayed: true, ..V6_12 };

/// From 6.14 on.
pub(crate) const V6_18: PlacementRules = PlacementRules { refuses_delayed: true, prefers_eligible: true, ..V6_12_107 };

/// 7.2.
pub(crate) const V7_2: PlacementRules =
    PlacementRules { sched_idle_cpu: SchedIdleCpu::CountsForOthers, idle_spell: IdleSpell::SwitchOut, ..V6_18 };
