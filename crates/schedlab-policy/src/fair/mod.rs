//! The fair class (`kernel/sched/fair.c`): CFS from 5.2 to 6.3, EEVDF from its first posting to 7.3, with task groups.
//!
//! Functions have the kernel's names, and a file is named after the functions that it contains. There are four layers,
//! each of which uses the ones below it:
//!
//! 1. [`CfsRq`] and the entities on it: what one queue decides by itself (`average`, `place_entity`, `pick_eevdf`,
//!    `protect_slice`, `charge`, `reweight_entity`);
//! 2. `Arena`: all queues, entities and groups, the ways between them, load tracking and buddies (`arena`, `load_avg`,
//!    `buddies`, `sched_slice`, `task_group`);
//! 3. `Queues`: operations on an entity that reach other levels, a group's weight or its runtime (`update_curr`,
//!    `enqueue_entity`, `dequeue_entity`, `enqueue_task_fair`, `dequeue_entities`, `pick_next_entity`,
//!    `update_cfs_group`, `flat_hierarchy`, `bandwidth`);
//! 4. [`Fair`]: the class, in terms of CPUs and tasks (`wakeup_preempt`, `task_tick`, `hrtick`, `attributes`,
//!    `task_group_files`).
//!
//! [`View`] reads the state, [`Restore`] overwrites it for a replay. Left out so far: the deadline server. What differs
//! by version is a row of data ([`crate::Rules`]).
//!
//! Every context switch goes through `update_curr`, `enqueue_task`, `dequeue_task`, `pick_next_task` and
//! `wakeup_preempt`, about a third of a run's instructions (`valgrind --tool=callgrind` on the example `events`). What
//! they do for a task outside groups should stay short: look an entity or a queue up once per function, and keep
//! explanations and walks over groups in functions of their own.

mod arena;
mod attributes;
mod average;
mod bandwidth;
mod buddies;
mod cfs_rq;
mod cfs_tasks;
mod charge;
pub(crate) mod class;
mod decision_log;
mod dequeue_entities;
mod dequeue_entity;
mod enqueue_entity;
mod enqueue_task_fair;
mod entities;
mod entity;
mod explain;
mod fair_sched_class;
mod flat_hierarchy;
mod follow;
mod group_load_log;
mod group_shares;
mod hrtick;
mod load_avg;
mod member;
mod pick_eevdf;
mod pick_eevdf_by_vruntime;
mod pick_next_entity;
mod place_entity;
pub(crate) mod pool;
pub(crate) mod pools;
mod protect_slice;
mod queues;
mod recorded;
mod restore;
mod reweight_entity;
mod rq_online_fair;
mod sched_cache;
mod sched_create_group;
mod sched_fork;
mod sched_slice;
mod snapshot;
mod sums;
mod task_fork;
mod task_group;
mod task_group_files;
mod task_tick;
mod tree;
mod update_cfs_group;
mod update_curr;
mod view;
mod wakeup_preempt;

pub use crate::flags::{Dequeue, Enqueue, WakeFlags};
pub use crate::group_id::GroupId;
pub use crate::hrtick::Hrtick;
pub use crate::queue_view::{EntityState, EntityView, QueueView, RealTimeView};
pub use crate::sched_cache::ProcessShown;
pub use attributes::SchedParams;
pub use cfs_rq::CfsRq;
pub use decision_log::DecisionLog;
pub use entity::{Entity, EntityId};
pub use fair_sched_class::Fair;
pub use group_load_log::{GroupLoadAccess, GroupLoadLog};
pub use group_shares::GroupShares;
pub use member::Member;
pub use pool::{Bandwidth, BandwidthStats};
pub use recorded::{Contribution, CpuAverages, GroupState, LoadState, TaskState};
pub use restore::Restore;
pub use sums::Sums;
pub use task_group::TaskGroup;
pub use view::View;
