//! The rules of placement and balancing over the kernel's releases.
//!
//! Read in kernel/sched/{fair,core,topology}.c of 5.2.1, 5.7.14, 5.10.262 (Debian), mainline of March 2021 (what became
//! 5.13), 5.15.148, 6.1.192 (Debian), 6.3.8, 6.6.0, 6.12.0, 6.12.107 (Debian), 6.18.2, 7.2.13 and 7.3.4 (Debian).
//! Features that exist as switches are not here but in the feature table.

use crate::history::table::{choices, rules, Shown};

/// In which order the target's cache is searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleSearch {
    /// For an idle core, then within a budget for a CPU, then for a thread of the target's core.
    ThreePasses {
        /// The first busy thread ends the look at a core, and CPUs that the task may not use cost no budget.
        stops_early: bool,
    },
    /// Once, for a core or a CPU; without the hint of an idle core a thread of prev's core comes first.
    OnePass,
}

impl Shown for IdleSearch {
    fn shown(&self) -> String {
        match *self {
            IdleSearch::ThreePasses { stops_early: false } => "three passes",
            IdleSearch::ThreePasses { stops_early: true } => "three passes, a busy thread ends a core",
            IdleSearch::OnePass => "one pass",
        }
        .to_owned()
    }
}

choices! {
    /// Whether a CPU that runs only SCHED_IDLE tasks counts as idle for a wakee (`sched_idle_cpu`).
    pub enum SchedIdleCpu {
        /// It does not.
        Unknown = "no",
        /// It does.
        Counts = "yes",
        /// Not for a wakee that is SCHED_IDLE itself (`choose_sched_idle_rq`).
        CountsForOthers = "for wakees that are not SCHED_IDLE",
    }
}

choices! {
    /// Whether a wakee stays on its CPU with the per-CPU kthread that wakes it there.
    pub enum KthreadStacks {
        /// It does not.
        Never = "no",
        /// Also if an interrupt wakes it while the kthread, or the idle task, is current.
        AlsoInterrupted = "also if an interrupt stops the kthread",
        /// If the kthread itself wakes it (`in_task`).
        InTask = "yes",
    }
}

choices! {
    /// Where `recent_used_cpu` comes from.
    pub enum RecentCpu {
        /// The CPU on which the task last made an affine wakeup; prev once it was used itself.
        WhereItWoke = "where the task last woke another",
        /// The CPU before prev.
        BeforePrev = "the CPU before prev",
    }
}

choices! {
    /// When an idle period is counted into `avg_idle`.
    pub enum IdleSpell {
        /// At the wakeup that ends it (`ttwu_do_activate`).
        Wakeup = "at the wakeup that ends it",
        /// When the idle task is switched out, whatever ended it (`put_prev_task_idle`).
        SwitchOut = "when the idle task is switched out",
    }
}

choices! {
    /// When a wakeup goes to the wakelist of its CPU, which enqueues the task itself (`ttwu_queue_cond`).
    pub enum RemoteQueue {
        /// If no cache is shared; the waker waits for a task that is still leaving its CPU.
        OtherCache = "to another cache",
        /// Also if the task is still leaving its CPU and no other task is there (WF_ON_CPU).
        OrLeaving = "also to the CPU that the task is leaving",
        /// Also if no task is there.
        OrEmpty = "also to an empty CPU",
    }
}

choices! {
    /// By what groups of CPUs are compared, for a new task and for balancing.
    pub enum GroupsBy {
        /// Load per capacity.
        Load = "load",
        /// Type first: spare, busy, overloaded.
        Type = "type, then load",
    }
}

choices! {
    /// How uneven NUMA nodes may stay.
    pub enum NumaSlack {
        /// As any other domain.
        None = "none",
        /// Two tasks on the busier node; a new task stays while its node has an idle CPU.
        Pair = "two tasks",
        /// Two tasks, while a quarter of the CPUs is used.
        Quarter = "two tasks below a quarter of the CPUs",
        /// Two tasks, while no more than `imb_numa_nr` run.
        PerNode = "two tasks below imb_numa_nr",
    }
}

choices! {
    /// How big a task may be for the imbalance that it is to remove.
    pub enum DetachLimit {
        /// Twice as big by load.
        Double = "twice the load",
        /// Twice as big by load, any size after failures; by utilisation no bigger.
        DoubleUntilFailed = "twice the load until a pass fails",
        /// The bigger the more passes failed, by load; by utilisation no bigger.
        LoadGrows = "load grows with failed passes",
        /// The same by load and utilisation.
        Grows = "load and utilisation grow with failed passes",
    }
}

choices! {
    /// Which mappings of its process a task scans for NUMA balancing.
    pub enum NumaScan {
        /// All.
        All = "all",
        /// Those in which it had a fault recently.
        ByPid = "those that it uses",
        /// The same, and those that no other thread scans.
        Forced = "those that it uses, and those left out for long",
    }
}

rules! {
    /// The rules of placement and balancing that differ between releases.
    pub struct PlacementRules in PLACEMENT;

    /// The search for an idle CPU in the target's cache.
    BOTH "idle search: passes" in "select_idle_sibling"
    idle_search: IdleSearch = IdleSearch::ThreePasses { stops_early: false },
        from "5.6" by "60588bfa223f" => IdleSearch::ThreePasses { stops_early: true },
        from "5.12" by "9fe1f127b913" => IdleSearch::OnePass;

    /// The search starts at the target, not behind it.
    BOTH "idle search: where it begins" in "select_idle_cpu"
    search_from_target: bool = true,
        from "5.15" by "56498cfb045d" => false;

    /// A wakeup can request the CPU of the waker (WF_CURRENT_CPU).
    BOTH "wakeup: on the waker's CPU" in "select_task_rq_fair"
    wakes_here: bool = false,
        from "6.6" unverified "read in 6.12.117, absent in 6.1.192; perf has the mode since 6.6" => true;

    /// The scheduling domains are built anew while the CPU that goes offline is still online, not after it
    /// (`cpuset_handle_hotplug`).
    BOTH "hotplug: domains without a work item" in "cpuset_update_active_cpus"
    hotplug_is_synchronous: bool = false,
        from "6.10" by "2125c0034c5d" => true;

    /// A task that must leave its CPU for a new affinity goes to the CPU after the one that was chosen at the last
    /// change of an affinity on the calling CPU, not to the first one.
    BOTH "affinity: CPU of a task that must move" in "__set_cpus_allowed_ptr"
    affinity_distributes: bool = false,
        from "5.7" by "46a87b3851f0" => true;

    /// The same where a real-time or deadline task may go to several CPUs of a domain.
    BOTH "real-time: CPU among equals" in "find_lowest_rq"
    rt_distributes: bool = false,
        from "5.11" by "14e292f8d453" => true;

    /// A change of a cpuset keeps the affinity that its tasks asked for.
    BOTH "cpuset: keeps affinities" in "__set_cpus_allowed_ptr"
    cpuset_keeps_affinity: bool = false,
        from "6.2" by "da019032819a" => true;

    /// Clusters are scheduling domains (CONFIG_SCHED_CLUSTER).
    BOTH "domains: clusters" in "set_sched_topology"
    cluster_domains: bool = false,
        from "5.16" by "778c558f49a2" => true;

    /// The target's cluster is searched before the rest of its cache, and an idle prev or recent CPU in another cluster
    /// is taken only if the search fails.
    BOTH "idle search: cluster first" in "select_idle_cpu"
    cluster_scan: bool = false,
        from "6.7" by "8881e1639f1f" => true;

    /// SIS_PROP counts with `avg_idle / 512`, not with `wake_avg_idle`.
    BOTH "idle search: budget of SIS_PROP" in "select_idle_cpu"
    prop_by_avg_idle: bool = true,
        from "5.14" by "94aafc3ee31d" => false;

    /// Whether a CPU with nothing but SCHED_IDLE tasks counts as idle.
    BOTH "idle search: SCHED_IDLE CPUs" in "sched_idle_cpu"
    sched_idle_cpu: SchedIdleCpu = SchedIdleCpu::Unknown,
        from "5.4" by "3c29e651e16d" => SchedIdleCpu::Counts,
        from "7.1" by "fd54d81c2c0e" => SchedIdleCpu::CountsForOthers;

    /// A wakee stays on its CPU with the per-CPU kthread that wakes it there (`is_per_cpu_kthread`).
    BOTH "idle search: per-CPU kthreads" in "select_idle_sibling"
    kthread_stacks: KthreadStacks = KthreadStacks::Never,
        from "5.6" by "52262ee567ad" => KthreadStacks::AlsoInterrupted,
        from "5.16" by "8b4e74ccb582" => KthreadStacks::InTask,
        seen "5.10.262" unverified "read in 5.10.262" => KthreadStacks::InTask,
        seen "5.15.148" unverified "read in 5.10.262 and 6.1.192, the neighbours of 5.15.148" => KthreadStacks::InTask;

    /// Where `recent_used_cpu` comes from.
    BOTH "idle search: recent CPU" in "select_idle_sibling"
    recent_cpu: RecentCpu = RecentCpu::WhereItWoke,
        from "5.15" by "89aafd67f28c" => RecentCpu::BeforePrev;

    /// `wake_affine_idle` prefers an idle prev before loads are compared.
    BOTH "wake_affine: idle prev" in "wake_affine_idle"
    affine_prev_idle: bool = false,
        from "5.11" by "d8fcb81f1acf" => true;

    /// `wake_affine` does not count tasks whose dequeue is delayed.
    BOTH "wake_affine: delayed tasks" in "wake_affine_idle"
    affine_skips_delayed: bool = false,
        from "6.16" by "aa3ee4f0b754" => true,
        from "6.12.37" by "aa3ee4f0b754" => true;

    /// When a wakeup goes to the wakelist of its CPU.
    BOTH "wakeup: through the wakelist" in "ttwu_queue_cond"
    remote_queue: RemoteQueue = RemoteQueue::OtherCache,
        from "5.8" by "2ebb17717550" => RemoteQueue::OrLeaving,
        from "6.0" by "f3dd3f674555" => RemoteQueue::OrEmpty,
        seen "5.15.148" by "f3dd3f674555" => RemoteQueue::OrEmpty;

    /// When an idle period is counted into `avg_idle`.
    BOTH "idle time: which periods count" in "update_avg"
    idle_spell: IdleSpell = IdleSpell::Wakeup,
        from "7.0" by "4b603f1551a7" => IdleSpell::SwitchOut;

    /// By what groups of CPUs are compared.
    BOTH "balance: groups compared by" in "find_busiest_group"
    groups_by: GroupsBy = GroupsBy::Load,
        from "5.5" by "0b0695f2b34a" => GroupsBy::Type;

    /// Among groups with equally many idle CPUs a new task goes to the one used least.
    BOTH "fork: equally idle groups" in "find_idlest_group"
    idlest_by_util: bool = false,
        from "5.9" by "3edecfef0285" => true;

    /// Of a group only the CPUs that the new task may use count.
    BOTH "fork: affinity" in "update_sg_wakeup_stats"
    wakeup_stats_mind_affinity: bool = false,
        from "6.19" by "82d6e01a0699" => true,
        from "5.10.261" by "82d6e01a0699" => true,
        from "6.1.178" by "82d6e01a0699" => true,
        from "6.12.97" by "82d6e01a0699" => true,
        // Not read; later than 6.12.97.
        seen "6.18.44" by "82d6e01a0699" => true;

    /// How uneven NUMA nodes may stay.
    BOTH "balance: NUMA imbalance" in "adjust_numa_imbalance"
    numa_slack: NumaSlack = NumaSlack::None,
        from "5.6" by "b396f52326de" => NumaSlack::Pair,
        from "5.11" by "7d2b5dd0bcc4" => NumaSlack::Quarter,
        from "5.18" by "e496132ebedd" => NumaSlack::PerNode;

    /// Busy CPUs balance this many times less often.
    BOTH "balance: interval of busy CPUs" in "sd_init"
    busy_factor: u64 = 32,
        from "5.10" by "6e7499135db7" => 16;

    /// A busy CPU balances one jiffy earlier, so that domain levels do not balance at once.
    BOTH "balance: levels do not meet" in "get_sd_balance_interval"
    busy_jiffy_less: bool = false,
        from "5.10" by "e4d32e4d5444" => true;

    /// `imbalance_pct` above the cache.
    BOTH "balance: imbalance_pct" in "sd_init"
    imbalance_pct: u32 = 125,
        from "5.10" by "2208cdaa56c9" => 117;

    /// A pending wakeup ends newidle balancing before it begins.
    BOTH "balance: newidle and pending wakeups" in "newidle_balance"
    newidle_minds_wakeups: bool = false,
        from "5.16" unverified "read in 6.1.192" => true,
        seen "5.15.148" unverified "read in 5.15.148" => true;

    /// The gate of newidle balancing is the cost of a pass over the lowest domain instead of migration_cost, and costs
    /// decay with newidle passes too.
    BOTH "balance: newidle gate" in "newidle_balance"
    newidle_by_cost: bool = false,
        from "5.16" by "c5b0a7eefc70" => true;

    /// After a newidle pass that pulls nothing the cost of its domain is 3/2 of what it was, up to migration_cost and
    /// 200 ns.
    BOTH "balance: newidle pass in vain" in "sched_balance_newidle"
    newidle_failure_costs: bool = false,
        from "6.17" by "155213a2aed4" => true,
        from "6.19" by "d206fbad9328" => false,
        from "6.1.149" by "155213a2aed4" => true,
        from "6.1.160" by "d206fbad9328" => false,
        from "6.12.43" by "155213a2aed4" => true,
        from "6.12.64" by "d206fbad9328" => false,
        from "6.16.2" by "155213a2aed4" => true,
        from "6.18.3" by "d206fbad9328" => false;

    /// The pick of the fair class balances, whatever class the task that leaves is of; before, the balance callback of
    /// the class does so, once and before the pick, where that task is of a higher class.
    BOTH "balance: newidle after higher classes" in "pick_task_fair"
    newidle_in_pick: bool = false,
        from "7.2" unverified "c095741713d1 (7.2) excepts core scheduling from it; absent in 6.12.117" => true;

    /// Within a cache spare capacity is filled by tasks, not by utilisation.
    BOTH "balance: tasks within a cache" in "calculate_imbalance"
    tasks_in_llc: bool = false,
        from "5.10" by "16b0a7a1a0af" => true;

    /// Nothing is pulled at or above the domain's average load.
    BOTH "balance: stops at the average" in "calculate_imbalance"
    stops_at_average: bool = false,
        from "6.3" by "91dcf1e8068e" => true,
        seen "5.10.262" by "91dcf1e8068e" => true,
        seen "5.15.148" by "91dcf1e8068e" => true,
        from "6.1.25" by "91dcf1e8068e" => true;

    /// How big a task may be for the imbalance that it is to remove.
    BOTH "balance: size of a task" in "detach_tasks"
    detach_limit: DetachLimit = DetachLimit::Double,
        from "5.5" by "0b0695f2b34a" => DetachLimit::DoubleUntilFailed,
        from "5.10" by "5a7f55590467" => DetachLimit::LoadGrows,
        from "6.8" by "3af7524b1419" => DetachLimit::Grows,
        seen "5.10.262" by "3af7524b1419" => DetachLimit::Grows,
        from "6.1.103" by "3af7524b1419" => DetachLimit::Grows;

    /// From 5.16 on the kernel is assumed to be built with PREEMPT_DYNAMIC, which sets CONFIG_PREEMPTION under every
    /// model: a newidle pass moves one task at most. Older kernels have CONFIG_PREEMPTION only if built for full
    /// preemption.
    BOTH "balance: newidle moves one task" in "detach_tasks"
    preempt_dynamic: bool = false,
        from "5.16" by "c597bfddc9e9" => true;

    /// A task is cache hot between threads of a core too.
    BOTH "balance: hot between threads" in "task_hot"
    hot_between_threads: bool = true,
        from "5.10" by "ec73240b1627" => false;

    /// A per-CPU kthread that may not move is no sign that affinity hinders balancing.
    BOTH "balance: per-CPU kthreads" in "can_migrate_task"
    kthreads_are_no_obstacle: bool = false,
        from "5.13" unverified "read in 5.10.262 and 6.1.192; absent in 5.2.1" => true,
        seen "5.10.262" unverified "read in 5.10.262" => true;

    /// Active balancing starts whatever the imbalance is counted in, and its push counts as progress.
    BOTH "balance: active balancing" in "need_active_balance"
    pushes_for_anything: bool = true,
        from "5.12" by "e9b9734b7465" => false;

    /// If affinity forbids to push the running task, the interval may grow as if all tasks were pinned, although others
    /// wait.
    BOTH "balance: running task is pinned" in "sched_balance_rq"
    forbidden_push_is_pinned: bool = true,
        from "5.12" unverified "read in 5.10.262, absent in 6.1.192; posted in January 2021 in one series with e9b9734b7465" => false;

    /// Above SMT an idle CPU of a wholly idle core balances before one with a busy sibling.
    BOTH "balance: prefers idle cores" in "should_we_balance"
    prefer_idle_core: bool = false,
        from "6.6" by "b1bfeab9b002" => true;

    /// A CPU of a wholly idle core balances on behalf of the other idle CPUs before one with a busy sibling.
    BOTH "balance: idle core for idle CPUs" in "find_new_ilb"
    ilb_prefers_idle_core: bool = false,
        from "7.3" unverified "read in 7.3.4" => true;

    /// Running tasks are compared per core, and only an idle puller evens them out.
    BOTH "balance: per core" in "sibling_imbalance"
    sibling_imbalance: bool = false,
        from "6.6" by "7ff1693236f5" => true;

    /// An idle puller takes from an SMT core with more than one task (`group_smt_balance`).
    BOTH "balance: from busy cores" in "smt_balance"
    smt_balance: bool = false,
        from "6.6" by "fee1759e4f04" => true;

    /// Of equally busy groups without overload the last one wins, unless the choice so far is an SMT core.
    BOTH "balance: last fully busy" in "update_sd_pick_busiest"
    last_fully_busy: bool = false,
        from "6.5" by "5fd6d7f43958" => true;

    /// Utilisation counts time spent waiting too (`cpu_util_cfs_boost`).
    BOTH "balance: runnable boost" in "find_busiest_queue"
    runnable_boost: bool = false,
        from "6.5" by "7d0583cf9ec7" => true;

    /// An idle puller takes the only task of a CPU whose capacity other classes use.
    BOTH "balance: reduced capacity" in "sched_reduced_capacity"
    reduced_capacity: bool = false,
        from "6.0" by "c82a69629c53" => true;

    /// Of groups with equally big misfit tasks the last one counts.
    BOTH "balance: misfit ties" in "update_sd_pick_busiest"
    last_misfit: bool = true,
        from "6.9" by "7f1a7229718d" => false;

    /// A task that runs on the biggest CPU of those that it may use is never too big for it.
    BOTH "capacities: affinity of big tasks" in "update_misfit_status"
    misfit_minds_affinity: bool = false,
        from "6.10" by "22d5607400c6" => true;

    /// A pass that could not move a task that is too big for its CPU counts as no failure and does not lengthen the
    /// interval.
    BOTH "capacities: failures of big tasks" in "sched_balance_rq"
    misfit_keeps_interval: bool = false,
        from "6.10" by "58eeb2d79b54" => true;

    /// The search for a CPU that is big enough is bounded by the utilisation of the machine (SIS_UTIL).
    BOTH "capacities: budget of the search" in "select_idle_capacity"
    capacity_scan_limit: bool = false,
        from "7.2" unverified "read in 7.2.13" => true;

    /// With an energy model a group is overloaded only if one of its CPUs is overutilized.
    BOTH "capacities: overloaded groups" in "group_is_overloaded"
    overload_minds_energy: bool = false,
        from "7.2" unverified "read in 7.2.13" => true;

    /// Tasks whose dequeue is delayed do not count where the numbers of tasks are compared (`h_nr_runnable`).
    BOTH "balance: delayed tasks left out of counts" in "update_sg_lb_stats"
    delayed_do_not_count: bool = false,
        from "6.14" unverified "read in 6.18.2 and 7.2.13; 6.12.118 counts them" => true;

    /// A task whose dequeue is delayed moves only where load is to be evened out.
    BOTH "balance: delayed tasks" in "can_migrate_task"
    refuses_delayed: bool = false,
        from "6.14" by "61b82dfb6b7e" => true;

    /// The threads of a process are brought together under one last-level cache (CONFIG_SCHED_CACHE).
    BOTH "balance: cache-aware" in "can_migrate_llc"
    cache_aware: bool = false,
        from "7.2" by "df0d98475954" => true;

    /// Which mappings of its process a task scans.
    BOTH "NUMA balancing: mappings scanned" in "task_numa_work"
    numa_scan: NumaScan = NumaScan::All,
        from "6.4" by "fc137c0ddab2" => NumaScan::ByPid,
        from "6.7" by "f169c62ff7cd" => NumaScan::Forced;

    /// Tasks of one group do not change places while the destination node has spare CPUs.
    BOTH "NUMA balancing: swaps within a group" in "task_numa_compare"
    numa_keeps_with_spare: bool = false,
        from "6.0" by "13ede3315087" => true;

    /// A pass without local or shared faults discards what it has counted.
    BOTH "NUMA balancing: quiet passes" in "update_task_scan_period"
    numa_quiet_pass_resets: bool = false,
        seen "6.12.107" unverified "read in 6.12.117; absent in 6.1.192 and 7.2.13" => true;

    /// A task that has as many of its faults on both nodes may move unless it is cache hot.
    BOTH "NUMA balancing: equal nodes" in "migrate_degrades_locality"
    numa_equal_is_neutral: bool = false,
        from "6.14" unverified "read in 7.2.13; absent in 6.12.117" => true;

    /// Until a pass has failed, a task with negative lag stays if its queue at the destination has tasks.
    BOTH "balance: ineligible tasks" in "can_migrate_task"
    prefers_eligible: bool = false,
        from "6.14" by "873199d27bb2" => true;
}
