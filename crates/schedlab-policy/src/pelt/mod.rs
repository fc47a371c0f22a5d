//! Per-entity load tracking: geometric averages of how much something ran, could have run, and weighed.
//!
//! Follows kernel/sched/pelt.c and the PELT parts of kernel/sched/fair.c: time in units of 1024 ns, segments of 1024
//! units, a half-life of 32 segments, all in integers. [`SchedAvg`] is one signal's state, [`QueueLoad`] what a `cfs_rq`
//! adds to it, [`PeltClock`] the clock they follow; [`Signals`] is what differs between versions. Left out:
//! hardware (thermal) pressure, uclamp, cpufreq's callbacks.

mod avg;
mod clock;
mod group;
mod init_entity;
mod queue;
mod series;
mod util_est;

pub use avg::SchedAvg;
pub use clock::PeltClock;
pub use group::{calc_group_shares, propagate_entity_load_avg, GroupLoad};
pub use queue::{QueueLoad, Removed};
pub use series::{CAPACITY_SCALE, CAPACITY_SHIFT, LOAD_AVG_MAX, PELT_MIN_DIVIDER};
pub use util_est::UtilEst;

pub use crate::version::load::Signals;

/// How a queue's sum follows when an average was reduced by what left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SumFloor {
    /// It is reduced on its own; it may reach 0 before the average does.
    None,
    /// It is computed from the average, and loses the part of a segment that it was ahead.
    Synced,
    /// It is reduced, and raised to `avg * PELT_MIN_DIVIDER` if below. The maximum is taken in 32 bits, which truncates
    /// larger sums.
    Truncated,
    /// The same in the sum's own width.
    Wide,
}
