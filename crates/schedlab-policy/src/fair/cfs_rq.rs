//! A runqueue of the fair class (`struct cfs_rq`): one per group and CPU, the root group's being the CPU's own.
//!
//! The other files of this folder add functions over one queue and the entities on it: [`average`](super::average),
//! [`place_entity`](super::place_entity), [`pick_eevdf`](super::pick_eevdf), [`protect_slice`](super::protect_slice),
//! [`charge`](super::charge), [`reweight_entity`](super::reweight_entity). None of them accesses another queue.

use super::entities::Entities;
use super::entity::{Entity, EntityId};
use super::tree::{Node, Slices, Tree};
use crate::group_id::GroupId;
use crate::pelt::cfs_rq_load::QueueLoad;
use crate::pelt::signals::Signals;
use crate::weight::LoadWeight;
use crate::{Averaging, KernelConfig, Resched, TreeKey, ZeroPoint};
use schedlab_model::{rarely, CpuId, Nanos, TaskId, Vruntime};

/// A queue's state. The running entity (`curr`) is outside the tree and outside `avg_vruntime` and `avg_load`, but
/// inside every other sum. From 7.3 on only tasks compete, all of them on the CPU's own queue: the tree, the sums
/// behind V and the buddies of any other are empty, and the CPU's own has the tasks of all groups in them.
#[derive(Clone, Debug)]
pub struct CfsRq {
    /// Its CPU.
    pub cpu: CpuId,
    /// Its group.
    pub group: GroupId,
    /// `cpu.idle` of that group.
    pub idle: bool,
    /// Entities, delayed ones included.
    pub nr_running: u32,
    /// Tasks below, delayed ones included.
    pub h_nr_running: u32,
    /// Tasks below whose dequeue is delayed.
    pub h_nr_delayed: u32,
    /// The task counters have changed since the CPU's runqueue took them over (`FairClass::sync`). Not read on the
    /// queues of groups.
    pub(super) counted: bool,
    /// Idle entities.
    pub idle_nr_running: u32,
    /// SCHED_IDLE tasks below, and every task below an idle group.
    pub idle_h_nr_running: u32,
    /// Its group has a quota.
    pub(super) runtime_enabled: bool,
    /// Out of runtime.
    pub throttled: bool,
    /// Throttled queues from here up.
    pub(super) throttle_count: u32,
    /// Its local share of the group's runtime; negative = debt.
    pub(super) runtime_remaining: i64,
    /// When it was throttled.
    pub(super) throttled_at: Nanos,
    /// Since when a task on it has been kept from running, which is what `throttled_time` counts.
    pub(super) throttled_clock: Option<Nanos>,
    /// When its runtime is void, and to which refill it belongs (5.2).
    pub(super) runtime_expires: Nanos,
    pub(super) expires_seq: u32,
    /// Throttled tasks, the latest first (6.18 and later).
    pub(super) limbo: Vec<EntityId>,
    /// Sum of weights.
    pub load: LoadWeight,
    /// The zero point of keys (v0): a monotonic lower bound of vruntimes, or `zero_vruntime`, V when last computed.
    pub min_vruntime: Vruntime,
    /// Sum of (v - v0) * w over the tree.
    pub avg_vruntime: i64,
    /// Sum of w over the tree.
    pub avg_load: i64,
    /// Sum of slice * w over the tree (2023 series).
    pub(super) avg_slice: u64,
    /// Load tracking.
    pub pelt: QueueLoad,
    pub(super) averaging: Averaging,
    pub(super) tree: Tree,
    /// The entity that runs, among those that compete here.
    pub(super) curr: EntityId,
    /// The entity of the group's queue that runs: the same up to 7.2.
    pub(super) h_curr: EntityId,
    pub(super) next: EntityId,
    pub(super) last: EntityId,
    pub(super) skip: EntityId,
    pub(super) most_recent: EntityId,
    pub(super) least_recent: EntityId,
    pub(super) resched: Resched,
    /// The CPU's slice-end timer is running; kept on the CPU's own queue by the owner of the timer.
    pub(super) hrtick_active: bool,
}

impl CfsRq {
    /// An empty queue (`init_cfs_rq`).
    pub(super) fn new(group: GroupId, cpu: CpuId, averaging: Averaging, slices: Slices) -> Self {
        let nil = EntityId::NIL;
        CfsRq {
            cpu,
            group,
            idle: false,
            nr_running: 0,
            h_nr_running: 0,
            h_nr_delayed: 0,
            counted: false,
            idle_nr_running: 0,
            idle_h_nr_running: 0,
            hrtick_active: false,
            runtime_enabled: false,
            throttled: false,
            throttle_count: 0,
            runtime_remaining: 0,
            throttled_at: 0,
            throttled_clock: None,
            runtime_expires: 0,
            expires_seq: 0,
            limbo: Vec::new(),
            load: LoadWeight::default(),
            // Close before the wrap, so that every run crosses it.
            min_vruntime: Vruntime(0).plus(-(1 << 20)),
            avg_vruntime: 0,
            avg_load: 0,
            avg_slice: 0,
            pelt: QueueLoad::default(),
            averaging,
            tree: Tree::new(slices),
            curr: nil,
            h_curr: nil,
            next: nil,
            last: nil,
            skip: nil,
            most_recent: nil,
            least_recent: nil,
            resched: Resched::No,
        }
    }

    /// The buddies next, last and skip, of a queue without groups on it.
    #[must_use]
    pub fn buddies(&self) -> [Option<TaskId>; 3] {
        [self.next.task(), self.last.task(), self.skip.task()]
    }

    /// Only idle entities are queued, and at least one (`sched_idle_cfs_rq`).
    #[inline]
    #[must_use]
    pub fn is_sched_idle(&self) -> bool {
        self.nr_running > 0 && self.nr_running == self.idle_nr_running
    }

    /// Entities that compete here, delayed ones included.
    #[inline]
    #[must_use]
    pub fn nr_competing(&self, config: &KernelConfig) -> u32 {
        if rarely(config.rules.flat_hierarchy) {
            self.h_nr_running
        } else {
            self.nr_running
        }
    }

    /// A vruntime as distance from v0 (`entity_key`).
    #[inline]
    #[must_use]
    pub fn key(&self, vruntime: Vruntime) -> i64 {
        vruntime.since(self.min_vruntime)
    }

    /// `update_cfs_rq_load_avg`.
    #[inline(never)]
    pub(super) fn update_cfs_rq_load_avg(&mut self, now: Nanos, signals: &Signals) -> bool {
        let (weight, runnable, running) = (self.load.scaled(), self.runnable(signals), self.h_curr.is_some());
        self.pelt.update_cfs_rq_load_avg(now, weight, runnable, running, signals)
    }

    /// Tasks below that count in the runnable signal (`h_nr_runnable`). While a delayed dequeue ends, 7.3 counts the
    /// task down twice, which shows until the end in a group that stays queued.
    #[inline]
    pub(super) fn runnable(&self, signals: &Signals) -> u64 {
        let delayed = if signals.delayed_not_runnable { self.h_nr_delayed } else { 0 };
        u64::from(self.h_nr_running.wrapping_sub(delayed))
    }

    /// The running entity, if it is still queued.
    #[inline]
    pub(super) fn running(&self, entities: &Entities) -> Option<EntityId> {
        (self.curr.is_some() && entities[self.curr].on_rq).then_some(self.curr)
    }

    /// The same as a reference.
    #[inline(always)]
    pub(super) fn running_entity<'a>(&self, entities: &'a Entities) -> Option<&'a Entity> {
        self.curr.some().map(|curr| &entities[curr]).filter(|curr| curr.on_rq)
    }

    /// Time of the last charge to the running entity: the clock of calls without a time of their own.
    pub(super) fn last_charge(&self, entities: &Entities) -> Nanos {
        self.curr.some().map_or(0, |curr| entities[curr].exec_start)
    }

    /// Every link to an entity.
    pub(super) fn links(&mut self) -> [&mut EntityId; 9] {
        let [root, first] = self.tree.links();
        let [recent, old] = [&mut self.most_recent, &mut self.least_recent];
        [root, first, &mut self.curr, &mut self.h_curr, &mut self.next, &mut self.last, &mut self.skip, recent, old]
    }

    /// Whether the entity is one of the buddies.
    #[inline]
    pub(super) fn has_buddy(&self, se: EntityId) -> bool {
        self.next == se || self.last == se || self.skip == se
    }

    /// `__enqueue_entity`: into the tree, and into the sums behind V.
    #[inline(always)]
    pub(super) fn __enqueue_entity(&mut self, entities: &mut Entities, config: &KernelConfig, id: EntityId) {
        let (se, nodes) = entities.with_nodes(id);
        self.join_tree(se, nodes, config, id);
        self.tree_changed(entities, config);
    }

    /// `__dequeue_entity`: out of both.
    #[inline(always)]
    pub(super) fn __dequeue_entity(&mut self, entities: &mut Entities, config: &KernelConfig, id: EntityId) {
        let (se, nodes) = entities.with_nodes(id);
        self.leave_tree(se, nodes, config, id);
        self.tree_changed(entities, config);
    }

    /// The part of `__enqueue_entity` that concerns no other entity. [`CfsRq::tree_changed`] must follow.
    #[inline(always)]
    pub(super) fn join_tree(&mut self, se: &Entity, nodes: &mut [Node], config: &KernelConfig, id: EntityId) {
        let (mut key, mut value) = (se.vruntime, se.vruntime);
        if config.is_eevdf() {
            self.avg_vruntime_add(se);
            match config.rules.tree_key {
                TreeKey::Deadline => key = se.deadline,
                TreeKey::Vruntime => value = se.deadline,
            }
        }
        self.tree.rb_add_augmented_cached(nodes, id, key, value, se.slice);
    }

    /// The part of `__dequeue_entity` that concerns no other entity. [`CfsRq::tree_changed`] must follow.
    #[inline(always)]
    pub(super) fn leave_tree(&mut self, se: &Entity, nodes: &mut [Node], config: &KernelConfig, id: EntityId) {
        self.tree.rb_erase_augmented_cached(nodes, id);
        if config.is_eevdf() {
            self.avg_vruntime_sub(se);
        }
    }

    /// `update_zero_vruntime` where v0 moves with the tree.
    #[inline(always)]
    pub(super) fn tree_changed(&mut self, entities: &Entities, config: &KernelConfig) {
        if config.rules.zero == ZeroPoint::AverageOfTree && config.is_eevdf() {
            self.zero_to_average(entities);
        }
    }

    /// `account_entity_enqueue`.
    #[inline]
    pub(super) fn account_entity_enqueue(&mut self, se: &Entity, signals: &Signals) {
        if signals.runnable_load {
            self.pelt.enqueue_runnable_load_avg(&se.avg, se.runnable_weight());
        }
        self.load.weight += se.load.weight;
        self.nr_running += 1;
        self.idle_nr_running += u32::from(se.is_idle());
    }

    /// `account_entity_dequeue`.
    #[inline]
    pub(super) fn account_entity_dequeue(&mut self, se: &Entity, signals: &Signals) {
        if signals.runnable_load {
            self.pelt.dequeue_runnable_load_avg(&se.avg, se.runnable_weight());
        }
        self.load.weight -= se.load.weight;
        self.nr_running -= 1;
        self.idle_nr_running -= u32::from(se.is_idle());
    }
}
