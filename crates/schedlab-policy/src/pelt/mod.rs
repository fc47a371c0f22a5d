//! Per-entity load tracking: geometric averages of how much something ran, could have run, and weighed.
//!
//! Follows kernel/sched/pelt.c and the PELT parts of kernel/sched/fair.c: time in units of 1024 ns, segments of 1024
//! units, a half-life of 32 segments, all in integers. [`SchedAvg`] is one signal's state, [`QueueLoad`] what a `cfs_rq`
//! adds to it, [`PeltClock`] the clock they follow; [`Signals`] is what differs between versions. Left out:
//! hardware (thermal) pressure, uclamp, cpufreq's callbacks.

mod avg;
mod birth;
mod clock;
mod group;
mod queue;
mod series;
mod util_est;

pub use avg::SchedAvg;
pub use clock::PeltClock;
pub use group::{calc_group_shares, propagate_entity_load_avg, GroupLoad};
pub use queue::{QueueLoad, Removed};
pub use series::{CAPACITY_SCALE, CAPACITY_SHIFT, LOAD_AVG_MAX, PELT_MIN_DIVIDER};
pub use util_est::UtilEst;

/// What of load tracking differs between versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signals {
    /// The second signal is `runnable_load_avg`, weighted and without blocked tasks (5.2), not `runnable_avg`.
    pub runnable_load: bool,
    /// The scale of its sum: 10 bits, none for 5.2.
    pub runnable_shift: u32,
    /// How a queue's sums are kept with its averages when something leaves.
    pub floor: SumFloor,
    /// Delayed tasks do not count in a queue's runnable signal (6.12 stable and later).
    pub delayed_not_runnable: bool,
    /// A waking task that leaves an idle CPU is aged by the time its queue was not updated (`migrate_se_pelt_lag`).
    pub migrate_lag: bool,
    /// A queued task that moves is detached within its dequeue (DO_DETACH, 6.1 and later).
    pub detach_in_dequeue: bool,
    /// A new task's utilisation is guessed with its weight at full resolution (up to 6.6), which mostly hits the cap.
    pub init_full_weight: bool,
    /// Estimated utilisation.
    pub util_est: UtilEst,
    /// `update_tg_load_avg` at most once per this many ns and queue (6.12 and later).
    pub tg_update_interval: u64,
}

/// How a queue's sum follows when an average was reduced by what left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SumFloor {
    /// It is reduced on its own; it may run out while the average has not (up to 5.11).
    None,
    /// It is computed from the average, losing the part of a segment it was ahead (5.13).
    Synced,
    /// It is reduced, and raised to `avg * PELT_MIN_DIVIDER` if below (5.17 and later). The maximum is taken in 32 bits,
    /// which cuts larger sums off.
    Truncated,
    /// The same in the sum's own width (7.x).
    Wide,
}

impl Signals {
    /// 5.2.
    pub const V5_2: Signals =
        Signals { runnable_load: true, runnable_shift: 0, util_est: UtilEst::V5_2, ..Signals::V5_7 };
    /// 5.7.
    pub const V5_7: Signals = Signals {
        runnable_load: false,
        runnable_shift: CAPACITY_SHIFT,
        floor: SumFloor::None,
        delayed_not_runnable: false,
        migrate_lag: false,
        detach_in_dequeue: false,
        init_full_weight: true,
        util_est: UtilEst::V5_7,
        tg_update_interval: 0,
    };
    /// 5.13.
    pub const V5_13: Signals = Signals { floor: SumFloor::Synced, util_est: UtilEst::V5_13, ..Signals::V5_7 };
    /// 6.1 to 6.6.
    pub const V6_1: Signals =
        Signals { floor: SumFloor::Truncated, migrate_lag: true, detach_in_dequeue: true, ..Signals::V5_13 };
    /// 6.12.0.
    pub const V6_12: Signals =
        Signals { init_full_weight: false, util_est: UtilEst::V6_12, tg_update_interval: 1_000_000, ..Signals::V6_1 };
    /// 6.12 stable, 6.18.
    pub const V6_12_STABLE: Signals = Signals { delayed_not_runnable: true, ..Signals::V6_12 };
    /// 7.2.
    pub const V7_2: Signals = Signals { floor: SumFloor::Wide, ..Signals::V6_12_STABLE };
}
