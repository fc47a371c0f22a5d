//! The CPU that a task of the fair class is placed on when it wakes up, forks or calls exec (`select_task_rq_fair`,
//! kernel/sched/fair.c).
//!
//! A file is named after the function that it contains. Wakeups take the fast path ([`wake_affine`], then
//! [`select_idle_sibling`]), fork and exec the slow path ([`sched_balance_find_dst_cpu`]). Where CPUs differ in
//! capacity, the rules of [`crate::asym`] apply as well. Not modelled: migration-disabled tasks.

mod candidate_views;
mod find_idlest_group_by_load;
mod sched_balance_find_dst_cpu;
pub(crate) mod select_idle_cpu;
mod select_idle_cpu_up_to_5_11;
mod select_idle_sibling;
pub(crate) mod select_rule;
mod select_task_rq_fair;
mod sis_budget;
mod wake_affine;
pub(crate) mod wake_wide;

pub use select_rule::SelectRule;
pub use sis_budget::LEAST_OF_SIS_PROP;
