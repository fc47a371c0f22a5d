//! CFS bandwidth: a group may use `quota` of CPU time per `period`, over all CPUs (`struct cfs_bandwidth`).
//!
//! A pool per group is refilled every period: `runtime = quota` up to 5.13, `min(runtime + quota, quota + burst)`
//! later. A CPU's queue takes slices of it (`sched_cfs_bandwidth_slice_us`, 5 ms) as its tasks run, pays debts with the
//! next refill, and is throttled ([`throttle_cfs_rq`], [`throttle_cfs_rq_work`]) when the pool is empty. A queue that
//! becomes empty returns all but 1 ms; the slack timer gives that to throttled queues. The pools are in
//! [`super::pools`]. Simplified: timers cost no CPU time and expire on a grid whose phase the seed draws, other CPUs
//! are unthrottled at once and not by interrupt, and no period is ever too short to handle (the kernel stretches a
//! period once four of them end within one timer interrupt).

mod throttle_cfs_rq;
mod throttle_cfs_rq_work;
mod timers;
