//! The placement and balancing rules that differ between kernel versions, one row of data each.
//!
//! Read in kernel/sched/fair.c of 6.1.192 and 6.12.107 (Debian), 6.12.0 (vanilla) and 7.2.13 (Debian); features that exist as switches are not here
//! but in the feature table. Rows of other versions belong to the issue that brings their exact rules.

/// Rule choices of one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacementRules {
    /// `should_we_balance`: above SMT an idle CPU of a wholly idle core goes before one with a busy sibling (6.6+).
    pub prefer_idle_core: bool,
    /// `sibling_imbalance`: running tasks are compared per core, and only an idle puller evens them out (6.6+).
    pub sibling_imbalance: bool,
    /// `group_smt_balance`: an idle puller takes from an SMT core with more than one task (6.6+).
    pub smt_balance: bool,
    /// Of equally busy groups without overload the last wins, unless the choice so far is an SMT core (6.6+).
    pub last_fully_busy: bool,
    /// `wake_affine` does not count tasks whose dequeue is delayed (6.12.107+; 6.12.0 counts them).
    pub affine_skips_delayed: bool,
    /// `can_migrate_task`: a task whose dequeue is delayed moves only where load is to be evened out (6.13+).
    pub refuses_delayed: bool,
    /// `can_migrate_task`: until a pass has failed, a task that owes service stays if its queue there has anybody (6.14+).
    pub prefers_eligible: bool,
    /// `find_busiest_queue`: utilisation counts time spent waiting too (`cpu_util_cfs_boost`, 6.5+).
    pub runnable_boost: bool,
}

/// Up to 6.4.
pub(crate) const OLD: PlacementRules = PlacementRules {
    prefer_idle_core: false,
    sibling_imbalance: false,
    smt_balance: false,
    last_fully_busy: false,
    affine_skips_delayed: false,
    refuses_delayed: false,
    prefers_eligible: false,
    runnable_boost: false,
};

/// From 6.6 on.
pub(crate) const CORE_AWARE: PlacementRules = PlacementRules {
    prefer_idle_core: true,
    sibling_imbalance: true,
    smt_balance: true,
    last_fully_busy: true,
    affine_skips_delayed: false,
    refuses_delayed: false,
    prefers_eligible: false,
    runnable_boost: true,
};

/// From 6.12 stable on.
pub(crate) const V6_12_107: PlacementRules = PlacementRules { affine_skips_delayed: true, ..CORE_AWARE };

/// From 6.14 on.
pub(crate) const V6_18: PlacementRules = PlacementRules { refuses_delayed: true, prefers_eligible: true, ..V6_12_107 };
