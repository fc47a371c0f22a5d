//! What a version calls the functions that decide; only those that were renamed on the way.

/// Names of functions in `kernel/sched`.
#[derive(Debug)]
pub struct Names {
    /// Whether a woken task preempts, across the classes (core.c).
    pub preempt: &'static str,
    /// The same within the fair class.
    pub preempt_fair: &'static str,
    /// The same within the real-time class.
    pub preempt_rt: &'static str,
    /// The least busy CPU for a new task.
    pub idlest_cpu: &'static str,
    /// The least busy group of a domain for it.
    pub idlest_group: &'static str,
    /// The least busy CPU of that group.
    pub idlest_group_cpu: &'static str,
    /// One balancing pass.
    pub balance: &'static str,
}

/// Up to 6.6.
pub(super) const CHECK_PREEMPT_CURR: Names = Names {
    preempt: "check_preempt_curr",
    preempt_fair: "check_preempt_wakeup",
    preempt_rt: "check_preempt_curr_rt",
    idlest_cpu: "find_idlest_cpu",
    idlest_group: "find_idlest_group",
    idlest_group_cpu: "find_idlest_group_cpu",
    balance: "load_balance",
};

/// From 6.7 and, for placement and balancing, 6.10 on.
pub(super) const WAKEUP_PREEMPT: Names = Names {
    preempt: "wakeup_preempt",
    preempt_fair: "check_preempt_wakeup_fair",
    preempt_rt: "wakeup_preempt_rt",
    idlest_cpu: "sched_balance_find_dst_cpu",
    idlest_group: "sched_balance_find_dst_group",
    idlest_group_cpu: "sched_balance_find_dst_group_cpu",
    balance: "sched_balance_rq",
};

/// 7.x.
pub(super) const WAKEUP_PREEMPT_FAIR: Names = Names { preempt_fair: "wakeup_preempt_fair", ..WAKEUP_PREEMPT };
