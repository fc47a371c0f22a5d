//! Per-entity load tracking: geometric averages of how much something ran, could have run, and weighed.
//!
//! Follows kernel/sched/pelt.c and the PELT parts of kernel/sched/fair.c, in integers.
//!
//! # The series
//!
//! Time is counted in units of 1024 ns and cut into segments of 1024 units (about 1 ms). If a signal was on for `u_i`
//! units of the segment that ended `i` segments ago, its *sum* is
//!
//! ```text
//! sum = u_0 + u_1 * y + u_2 * y^2 + ...        with y^32 = 1/2
//! ```
//!
//! so what happened 32 segments (about 32 ms) ago counts half. The sum needs no history: when a segment ends,
//! everything older moves one place to the right, that is, the sum is multiplied by `y`. After `n` segments it is
//! multiplied by `y^n`, from a table of `y^0 .. y^31` and shifts for whole halvings (`decay_load`).
//!
//! A signal that is always on approaches `1024 * (1 + y + y^2 + ...)`, which in the kernel's rounding is
//! [`LOAD_AVG_MAX`] = 47742. Dividing by the largest value that the sum could have had at this moment,
//! `LOAD_AVG_MAX - 1024 + (units of the current segment)`, gives the *average*, the share of recent time for which the
//! signal was on. The current segment counts only as far as it has passed, hence the correction.
//!
//! # The signals
//!
//! `load`: on while queued, times the weight. `runnable`: on while queued and not asleep, 1024 per task. `util`: on
//! while running, 1024 = all the time. A queue's sums and averages are those of its entities added up, including tasks
//! that sleep there; `cfs_rq_load` keeps them so while tasks come and go.
//!
//! [`SchedAvg`] is the state of one entity or queue, [`QueueLoad`] what a `cfs_rq` adds to it, [`PeltClock`] the clock
//! that they follow; [`Signals`] is what differs between versions. Left out: hardware (thermal) pressure, uclamp, and
//! cpufreq's callbacks.

pub(crate) mod cfs_rq_load;
pub(crate) mod clock;
pub(crate) mod group;
mod init_entity;
pub(crate) mod sched_avg;
pub(crate) mod series;
pub(crate) mod signals;
pub(crate) mod sum_floor;
mod update_load_sum;
pub(crate) mod util_est;

pub use cfs_rq_load::{QueueLoad, Removed};
pub use clock::PeltClock;
pub use group::{calc_group_runnable, calc_group_shares, propagate_entity_load_avg, GroupEntity, GroupLoad};
pub use sched_avg::SchedAvg;
pub use series::{CAPACITY_SCALE, CAPACITY_SHIFT, LOAD_AVG_MAX, PELT_MIN_DIVIDER};
pub use signals::Signals;
pub use sum_floor::{SumFloor, UnchangedLoad};
pub use util_est::UtilEst;
