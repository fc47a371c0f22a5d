//! The fair class (`kernel/sched/fair.c`): CFS from 5.2 to 6.3, EEVDF from its first posting to 7.2, with task groups.
//!
//! Functions carry the kernel's names. Those that take a queue and an entity work at one level of the hierarchy; those
//! that take a CPU and a task are the class's interface and walk up the parents. Left out so far: the deadline
//! server. Which version does what is a row of data ([`crate::Rules`]).
//!
//! Every context switch goes through `update_curr`, `enqueue_task`, `dequeue_task`, `pick_next_task` and `wakeup_preempt`, about
//! a third of a run's instructions (`valgrind --tool=callgrind` on the example `events`). What they do for a task outside
//! groups should stay short: look an entity or a queue up once per function, keep explanations and walks over groups in
//! functions of their own.

mod account;
mod average;
mod bandwidth;
mod buddies;
mod cfs_rq;
mod change;
mod class;
mod enqueue;
mod entity;
mod explain;
mod group;
mod group_files;
mod hierarchy;
mod hrtick;
mod load;
mod members;
mod pick;
mod place;
mod preempt;
mod protect;
mod replay;
mod restore;
mod search;
mod shares;
mod slice;
mod snapshot;
mod sums;
mod task;
mod tree;

pub use crate::group_id::GroupId;
pub use bandwidth::{Bandwidth, BandwidthStats};
pub use cfs_rq::CfsRq;
pub(crate) use class::FairClass;
pub use entity::{Entity, EntityId};
pub use group::TaskGroup;
pub use group_files::GroupShares;
pub use hrtick::Hrtick;
pub use members::Member;
pub use restore::{LoadState, TaskState};
pub use snapshot::{EntityState, EntityView, QueueView, RealTimeView};
pub use sums::Sums;

use crate::class::ClassId;
use crate::config::KernelConfig;
use crate::decision::Decision;
use crate::pelt::PeltClock;
use crate::preempt_model::PreemptModel;
use crate::{Algorithm, Resched, Rules};
use schedlab_model::{CpuId, Nanos, TaskId};
use tree::{Node, Slices};

/// The fair class of one kernel: every task and one queue per CPU.
///
/// Resched wishes are level-triggered: a queue remembers what any function asked for since its last pick
/// ([`Fair::need_resched`]), and functions that return [`Resched`] return that state.
#[derive(Clone, Debug)]
pub struct Fair {
    /// The kernel it belongs to.
    pub config: KernelConfig,
    /// Decisions taken with their reasons, if asked for; whoever switched it on drains it.
    pub decisions: Option<Vec<Decision>>,
    /// With every decision its CPU's queue as it stood, if asked for; tasks by their index.
    pub views: Option<Vec<QueueView>>,
    /// Its place among the classes of its scheduler.
    class: ClassId,
    rules: Rules,
    eevdf: bool,
    tick_nsec: Nanos,
    /// Tasks, then, once there are groups, room for more tasks and the groups' entities.
    entities: Vec<Entity>,
    nr_tasks: usize,
    /// Places of tasks that are gone, to be taken by the next ones.
    released: Vec<TaskId>,
    first_group: usize,
    groups: Vec<TaskGroup>,
    /// There are groups beside the root: entities may have parents. Paths that every switch takes test this alone.
    grouped: bool,
    /// Some group has a quota.
    bandwidth_used: bool,
    /// No timer of a pool fires before this.
    bandwidth_due: Nanos,
    /// The task whose wakeup is being judged, for its record.
    woken: TaskId,
    rqs: Vec<CfsRq>,
    nodes: Vec<Node>,
    recency: Vec<task::Recency>,
    /// Per CPU; read only once a scale was set.
    clocks: Vec<PeltClock>,
    scaled: bool,
}

/// Why an entity is enqueued (`ENQUEUE_*`). None of them: requeued, or moved by the balancer with `migrated`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Enqueue {
    /// ENQUEUE_WAKEUP.
    pub wakeup: bool,
    /// ENQUEUE_MIGRATED: it comes from another CPU's queue.
    pub migrated: bool,
    /// ENQUEUE_INITIAL: its first enqueue after fork.
    pub initial: bool,
    /// ENQUEUE_DELAYED: it is woken while its dequeue was delayed; it must be queued.
    pub delayed: bool,
}

/// Why an entity is dequeued (`DEQUEUE_*`). None of them: it is moved to another group.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dequeue {
    /// DEQUEUE_SLEEP.
    pub sleep: bool,
    /// DEQUEUE_SPECIAL: a dead, parked or frozen task, never delayed.
    pub special: bool,
    /// DEQUEUE_THROTTLE: its group has no runtime. Neither it nor a group that it leaves empty is delayed.
    pub throttle: bool,
    /// DEQUEUE_DELAYED: the end of a delayed dequeue.
    pub delayed: bool,
    /// DEQUEUE_SAVE without DEQUEUE_MOVE: it comes back unchanged, the queue's minimum stays.
    pub save: bool,
    /// TASK_ON_RQ_MIGRATING: the balancer takes it to another CPU, and its load goes along.
    pub migrating: bool,
}

/// What is known about a wakeup (`WF_*`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WakeFlags {
    /// WF_SYNC: the waker is about to sleep.
    pub sync: bool,
    /// WF_FORK: a new task.
    pub fork: bool,
}

impl Fair {
    /// Empty queues for every CPU of the kernel.
    #[must_use]
    pub fn new(config: KernelConfig) -> Self {
        let rules = config.rules;
        let slices = Slices::read_by(&rules, false);
        Fair {
            class: ClassId::default(),
            rules,
            eevdf: rules.algorithm == Algorithm::Eevdf,
            tick_nsec: config.tick_nsec(),
            entities: Vec::new(),
            nr_tasks: 0,
            released: Vec::new(),
            first_group: 0,
            groups: vec![TaskGroup::root()],
            grouped: false,
            bandwidth_used: false,
            bandwidth_due: Nanos::MAX,
            woken: TaskId(0),
            rqs: (0..config.nr_cpus)
                .map(|cpu| CfsRq::new(GroupId::ROOT, CpuId(cpu as u32), rules.averaging(), slices))
                .collect(),
            nodes: Vec::new(),
            recency: Vec::new(),
            clocks: vec![PeltClock::default(); config.nr_cpus],
            scaled: false,
            decisions: None,
            views: None,
            config,
        }
    }

    /// A task's entity.
    #[inline]
    #[must_use]
    pub fn entity(&self, task: TaskId) -> &Entity {
        &self.entities[task.index()]
    }

    /// A CPU's queue.
    #[inline]
    #[must_use]
    pub fn rq(&self, cpu: CpuId) -> &CfsRq {
        &self.rqs[cpu.index()]
    }

    /// The running task of a CPU; after it blocked, until the next pick, still that task.
    #[inline]
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.leaf(cpu.index()).task()
    }

    /// What has been asked of the CPU since its last pick.
    #[inline]
    #[must_use]
    pub fn need_resched(&self, cpu: CpuId) -> Resched {
        self.rq(cpu).resched
    }

    /// Forgets it (`clear_tsk_need_resched`); [`Fair::pick_next_task`] does so itself.
    #[inline]
    pub fn clear_resched(&mut self, cpu: CpuId) {
        self.rqs[cpu.index()].resched = Resched::No;
    }

    #[inline]
    fn se(&self, id: EntityId) -> &Entity {
        &self.entities[id.index()]
    }

    #[inline]
    fn se_mut(&mut self, id: EntityId) -> &mut Entity {
        &mut self.entities[id.index()]
    }

    /// The queue of the CPU a queue belongs to.
    #[inline]
    fn root_of(&self, rq: usize) -> usize {
        if self.grouped {
            self.rqs[rq].cpu.index()
        } else {
            rq
        }
    }

    #[inline]
    fn resched_curr(&mut self, rq: usize) {
        let root = self.root_of(rq);
        self.rqs[root].resched = Resched::Full;
    }

    /// `resched_curr_lazy`; kernels without it reschedule fully.
    #[inline]
    fn resched_curr_lazy(&mut self, rq: usize) {
        let lazy = self.rules.lazy && self.config.preempt == PreemptModel::Lazy;
        let wish = if lazy { Resched::Lazy } else { Resched::Full };
        let root = self.root_of(rq);
        let asked = &mut self.rqs[root].resched;
        *asked = wish.max(*asked);
    }
}
