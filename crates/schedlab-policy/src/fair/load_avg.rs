//! Load tracking of entities, queues and groups as they are enqueued, run, sleep and move (`update_load_avg` and what
//! calls it, `update_blocked_averages`).
//!
//! A queue follows its CPU's [`PeltClock`](crate::pelt::PeltClock), which is the task clock unless the CPU's capacity
//! or frequency is scaled. A group's entity follows its own history of running; the load of a task that enters or
//! leaves the group below it is propagated ([`crate::pelt::group`]).
//!
//! Simplified: clocks start at 1 ms instead of 0, because 0 in `last_update_time` means "not attached".

use super::arena::Arena;
use super::cfs_rq::CfsRq;
use super::entity::{Entity, EntityId};
use crate::features::Feature;
use crate::pelt::clock::PeltClock;
use crate::pelt::group::{calc_group_runnable, calc_group_shares, propagate_entity_load_avg, GroupEntity};
use crate::pelt::sched_avg::State;
use crate::pelt::series::CAPACITY_SHIFT;
use crate::pelt::signals::Signals;
use crate::weight::{scale_load_down, LoadWeight};
use crate::KernelConfig;
use schedlab_model::{rarely, CpuId, Nanos};

/// The clock's start: 0 means "not attached".
pub(super) const BOOT: Nanos = 1 << 20;

impl CfsRq {
    /// The entity and the queue are brought up to `at`, by the clock of load tracking. Whether the queue's averages
    /// changed. Less than a unit of time changes nothing, and often the queue was updated just before, for another
    /// task.
    #[inline(always)]
    pub(super) fn update_load_avg(&mut self, se: &mut Entity, id: EntityId, at: Nanos, signals: &Signals) -> bool {
        if se.avg.is_due(at) {
            se.update_load_avg(at, self.h_curr == id, signals);
        }
        self.pelt.is_due(at) && self.update_cfs_rq_load_avg(at, signals)
    }
}

impl Entity {
    /// The part of `update_load_avg` that concerns the entity itself.
    #[inline(never)]
    fn update_load_avg(&mut self, at: Nanos, running: bool, signals: &Signals) {
        let load = u64::from(self.on_rq);
        let runnable = if signals.runnable_load { load } else { self.nr_runnable() << CAPACITY_SHIFT };
        // An entity that is not attached was last updated at 0, more than a segment ago.
        if !self.avg.add_within_segment(at, State { load, runnable, running }) {
            self.end_segment(at, running, signals);
        }
    }

    /// The same where a segment ends.
    #[inline(never)]
    fn end_segment(&mut self, at: Nanos, running: bool, signals: &Signals) {
        if self.avg.last_update_time != 0 {
            let runnable = match signals.runnable_load {
                true => scale_load_down(self.runnable_weight()),
                false => self.nr_runnable(),
            };
            self.avg.__update_load_avg_se(at, self.load, self.on_rq, runnable, running, signals);
        }
    }

    /// How many runnable tasks it stands for.
    #[inline(always)]
    fn nr_runnable(&self) -> u64 {
        if self.sched_delayed {
            0
        } else {
            u64::from(self.runnable)
        }
    }
}

/// Updates.
impl Arena {
    /// `update_load_avg`: brings an entity and its queue up to now; a group's entity follows what moved below it. `tg`:
    /// UPDATE_TG, the group's sum follows the queue.
    #[inline(always)]
    pub fn update_load_avg(&mut self, signals: &Signals, rq: usize, id: EntityId, tg: bool, now: Nanos) {
        let at = self.cfs_rq_clock_pelt(rq, now);
        if rarely(self.grouped) {
            return self.update_group_load_avg(signals, rq, id, tg, at, now);
        }
        self.rqs[rq].update_load_avg(&mut self.entities[id], id, at, signals);
    }

    /// The same where there are groups; `at`: now, by the clock of load tracking.
    #[inline(never)]
    fn update_group_load_avg(&mut self, signals: &Signals, rq: usize, id: EntityId, tg: bool, at: Nanos, now: Nanos) {
        let changed = self.rqs[rq].update_load_avg(&mut self.entities[id], id, at, signals);
        self.update_load_avg_of_groups(signals, rq, id, tg, changed, now);
    }

    /// The part of `update_load_avg` that concerns groups, after the averages of the entity and of its queue: a group's
    /// entity follows the queue below, and with `tg` the group's sum the queue. `changed`: whether the averages of the
    /// entity's queue have changed.
    pub fn update_load_avg_of_groups(
        &mut self,
        signals: &Signals,
        rq: usize,
        id: EntityId,
        tg: bool,
        mut changed: bool,
        now: Nanos,
    ) {
        if let Some(below) = self.entities[id].my_q {
            changed |= self.propagate_entity_load_avg(signals, rq, id, below as usize);
        }
        if changed && tg {
            self.update_tg_load_avg(signals, rq, now);
        }
    }

    /// `propagate_entity_load_avg` of a group's entity on queue `rq`.
    fn propagate_entity_load_avg(&mut self, signals: &Signals, rq: usize, id: EntityId, below: usize) -> bool {
        // A group is younger than the one above it.
        let (upper, lower) = self.rqs.split_at_mut(below);
        let (queue, group) = (&mut upper[rq].pelt, &mut lower[0]);
        let weight = group.load.weight;
        let se = &mut self.entities[id];
        let runnable = scale_load_down(se.runnable_weight());
        let entity = GroupEntity { weight: se.load.scaled(), runnable, on_rq: se.on_rq };
        propagate_entity_load_avg(queue, &mut se.avg, entity, &mut group.pelt, weight, signals)
    }

    /// `update_tg_load_avg`; the root group's sum is not used. From 6.8 on a CPU that is not active contributes
    /// nothing.
    #[inline]
    fn update_tg_load_avg(&mut self, signals: &Signals, rq: usize, now: Nanos) {
        let left = || signals.offline_leaves_groups && !self.active.has(self.rqs[rq].cpu);
        if !self.is_root(rq) && !left() {
            let q = &mut self.rqs[rq];
            if self.groups[q.group.index()].load.update_tg_load_avg(&mut q.pelt, now, signals) {
                self.group_loads.push(q.group, true);
            }
        }
    }

    /// `clear_tg_offline_cfs_rqs` of every CPU: no queue contributes to the sum of its group until its next
    /// `update_tg_load_avg`.
    pub fn clear_tg_offline_cfs_rqs(&mut self, now: Nanos) {
        for rq in self.nr_cpus()..self.rqs.len() {
            let q = &mut self.rqs[rq];
            self.groups[q.group.index()].load.clear_tg_load_avg(&mut q.pelt, now);
        }
    }

    /// `propagate_entity_cfs_rq`: the levels from `id` up follow at once what joined or left below.
    fn propagate_entity_cfs_rq(&mut self, signals: &Signals, mut id: EntityId, now: Nanos) {
        while id.is_some() {
            self.update_load_avg(signals, self.entities[id].rq(), id, true, now);
            id = self.entities[id].parent;
        }
    }

    /// `update_blocked_averages` (`sched_balance_update_blocked_averages` from 6.10 on): what sleeps on the CPU decays,
    /// from the leaves of the group tree up.
    pub fn update_blocked_averages(&mut self, signals: &Signals, cpu: CpuId, now: Nanos) {
        let n = self.nr_cpus();
        for rq in (1..self.groups.len()).rev().map(|group| group * n + cpu.index()) {
            if !self.rqs[rq].pelt.cfs_rq_is_decayed() {
                self.update_blocked_queue(signals, rq, now);
            }
        }
        self.update_blocked_queue(signals, cpu.index(), now);
    }

    /// The same of one queue.
    pub fn update_blocked_queue(&mut self, signals: &Signals, rq: usize, now: Nanos) {
        let at = self.cfs_rq_clock_pelt(rq, now);
        if self.rqs[rq].update_cfs_rq_load_avg(at, signals) {
            self.update_tg_load_avg(signals, rq, now);
        }
        let id = self.entity_of_queue(rq);
        // skip_blocked_update
        if id.is_some() {
            let se = &self.entities[id];
            if se.avg.load_avg > 0 || se.avg.util_avg > 0 || self.rqs[rq].pelt.propagate {
                self.update_load_avg(signals, se.rq(), id, true, now);
            }
        }
    }

    /// `cfs_rq_clock_pelt`.
    #[inline(always)]
    pub fn cfs_rq_clock_pelt(&mut self, rq: usize, now: Nanos) -> Nanos {
        if rarely(self.scaled) {
            return self.scaled_clock_pelt(rq, now);
        }
        now + BOOT
    }

    #[inline(never)]
    fn scaled_clock_pelt(&mut self, rq: usize, now: Nanos) -> Nanos {
        self.clocks[self.rqs[rq].cpu.index()].rq_clock_pelt(now) + BOOT
    }

    /// The CPU's clock of load tracking.
    pub fn clock_pelt(&mut self, cpu: CpuId) -> &mut PeltClock {
        &mut self.clocks[cpu.index()]
    }

    /// Up to when the queue of the CPU was charged or decayed.
    pub fn updated_to(&self, cpu: CpuId) -> Nanos {
        let root = &self.rqs[cpu.index()];
        let decayed = if self.scaled { 0 } else { root.pelt.avg.last_update_time.saturating_sub(BOOT) };
        let leaf = self.leaf(cpu.index());
        let charged = leaf.some().map_or(0, |leaf| self.entities[leaf].exec_start);
        decayed.max(charged).max(root.last_charge(&self.entities))
    }
}

/// Entities that join and leave.
impl Arena {
    /// The DO_ATTACH part of `update_load_avg`: an entity from elsewhere adds its averages to the queue's.
    #[inline]
    pub fn attach_entity_load_avg(&mut self, signals: &Signals, rq: usize, id: EntityId, now: Nanos) {
        let se = &mut self.entities[id];
        if se.avg.last_update_time == 0 {
            self.rqs[rq].pelt.attach_entity_load_avg(&mut se.avg, se.load.scaled(), signals);
            self.update_tg_load_avg(signals, rq, now);
        }
    }

    /// The DO_DETACH part of `update_load_avg`: takes the averages of an entity that is up to date out of the queue's.
    pub fn detach_entity_load_avg(&mut self, signals: &Signals, rq: usize, id: EntityId, now: Nanos) {
        let se = &mut self.entities[id];
        self.rqs[rq].pelt.detach_entity_load_avg(&se.avg, se.load.scaled(), signals);
        se.avg.last_update_time = 0;
        self.update_tg_load_avg(signals, rq, now);
    }

    /// `attach_entity_cfs_rq`: a task from another group adds its averages here, at every level.
    pub fn attach_entity_cfs_rq(&mut self, signals: &Signals, id: EntityId, now: Nanos) {
        let rq = self.entities[id].rq();
        self.update_load_avg(signals, rq, id, false, now);
        self.attach_entity_load_avg(signals, rq, id, now);
        self.propagate_entity_cfs_rq(signals, self.entities[id].parent, now);
    }

    /// `detach_entity_cfs_rq`: a task about to change its group or class takes its averages out, at every level.
    pub fn detach_entity_cfs_rq(&mut self, signals: &Signals, id: EntityId, now: Nanos) {
        if self.entities[id].avg.last_update_time != 0 {
            let rq = self.entities[id].rq();
            self.update_load_avg(signals, rq, id, false, now);
            self.detach_entity_load_avg(signals, rq, id, now);
            self.propagate_entity_cfs_rq(signals, self.entities[id].parent, now);
        }
    }

    /// The part of `migrate_task_rq_fair` that concerns load: a task that was dequeued takes its averages along at
    /// once, a sleeper leaves them to be subtracted at the next update of its old queue. `now`: when the queue's clock
    /// is known; then a sleeper first decays by the time for which its idle queue was not updated
    /// (`migrate_se_pelt_lag`).
    pub fn migrate_load_avg(&mut self, signals: &Signals, id: EntityId, now: Option<Nanos>) {
        let rq = self.entities[id].rq();
        if self.entities[id].avg.last_update_time == 0 {
            return;
        }
        let (q, se) = (&mut self.rqs[rq], &mut self.entities[id]);
        if se.asleep {
            q.pelt.remove_entity_load_avg(&mut se.avg, se.load.scaled(), signals);
            let lag = signals.migrate_lag && self.clocks[q.cpu.index()].is_idle() && !se.avg.load_avg_is_decayed();
            if let Some(now) = now.filter(|_| lag) {
                let now = self.cfs_rq_clock_pelt(rq, now);
                let se = &mut self.entities[id];
                se.avg.__update_load_avg_blocked_se(now, se.load.scaled(), signals);
            }
        } else {
            q.pelt.detach_entity_load_avg(&se.avg, se.load.scaled(), signals);
            if let Some(now) = now {
                self.update_tg_load_avg(signals, rq, now);
                self.propagate_entity_cfs_rq(signals, self.entities[id].parent, now);
            }
        }
        self.entities[id].avg.last_update_time = 0;
    }

    /// `sync_entity_load_avg`: the averages decay up to the last update of the queue as those of a sleeper, even if the
    /// task runs.
    pub fn sync_entity_load_avg(&mut self, signals: &Signals, id: EntityId) {
        let se = &mut self.entities[id];
        if se.avg.last_update_time != 0 {
            let until = self.rqs[se.rq()].pelt.avg.last_update_time;
            se.avg.__update_load_avg_blocked_se(until, se.load.scaled(), signals);
        }
    }

    /// `remove_entity_load_avg` of a task that has exited.
    pub fn remove_entity_load_avg(&mut self, signals: &Signals, id: EntityId) {
        let se = &mut self.entities[id];
        if se.avg.last_update_time != 0 {
            self.rqs[se.rq()].pelt.remove_entity_load_avg(&mut se.avg, se.load.scaled(), signals);
            se.avg.last_update_time = 0;
        }
    }

    /// `post_init_entity_util_avg`: the first guess for a task about to be queued for the first time.
    pub fn post_init_entity_util_avg(&mut self, signals: &Signals, cpu: CpuId, id: EntityId) {
        let (se, capacity) = (&mut self.entities[id], self.clocks[cpu.index()].capacity());
        se.avg.post_init_entity_util_avg(se.load, &self.rqs[se.rq()].pelt.avg, capacity, signals);
    }

    /// The part of `reweight_entity` that concerns load, before the weight changes: the averages of the entity and of
    /// its queue follow the new weight.
    pub fn reweight_load_avg(&mut self, signals: &Signals, id: EntityId, load: LoadWeight) {
        if !signals.runnable_load {
            return self.reweight_load(signals, id, load);
        }
        let below = self.entities[id].my_q.map(|below| &self.rqs[below as usize]);
        let runnable = below.map(|q| calc_group_runnable(load.weight, q.load.weight, &q.pelt));
        let se = &self.entities[id];
        let (rq, on_rq) = (se.rq(), se.on_rq);
        if on_rq {
            self.rqs[rq].pelt.dequeue_runnable_load_avg(&se.avg, se.runnable_weight());
        }
        self.reweight_load(signals, id, load);
        let se = &mut self.entities[id];
        if let Some(runnable) = runnable {
            se.runnable = runnable as u32;
        }
        let runnable = runnable.unwrap_or(load.weight);
        if se.avg.last_update_time > 0 {
            let sum = scale_load_down(runnable).wrapping_mul(se.avg.runnable_sum);
            se.avg.runnable_avg = sum / se.avg.get_pelt_divider();
        }
        if on_rq {
            self.rqs[rq].pelt.enqueue_runnable_load_avg(&se.avg, runnable);
        }
    }

    /// The part of `reweight_load_avg` that concerns `load_avg` and `load_sum`.
    fn reweight_load(&mut self, signals: &Signals, id: EntityId, load: LoadWeight) {
        let se = &mut self.entities[id];
        let (q, old, new) = (&mut self.rqs[se.rq()].pelt, se.load.scaled(), load.scaled());
        if se.avg.last_update_time == 0 {
            if se.my_q.is_none() && se.avg.load_sum == 0 {
                // A task that never ran looks heavy with its new weight too.
                se.avg.load_avg = new;
            }
            return;
        }
        q.dequeue_load_avg(&se.avg, old, signals);
        // The load of a task whose weight changes again and again while no queue has it grows without bound, modulo
        // 2^64 as in the kernel.
        se.avg.load_avg = new.wrapping_mul(se.avg.load_sum) / se.avg.get_pelt_divider();
        q.enqueue_load_avg(&se.avg, new);
    }

    /// `se_update_runnable` of a group's entity.
    pub fn se_update_runnable(&mut self, signals: &Signals, id: EntityId) {
        if let Some(below) = self.entities[id].my_q.filter(|_| !signals.runnable_load) {
            self.entities[id].runnable = self.rqs[below as usize].runnable(signals) as u32;
        }
    }
}

/// Estimated utilisation (UTIL_EST).
impl Arena {
    /// `util_est_enqueue` on the CPU's own queue.
    #[inline]
    pub fn util_est_enqueue(&mut self, config: &KernelConfig, cpu: CpuId, id: EntityId) {
        if config.has(Feature::UtilEst) {
            let (cfs_rq, task) = (&mut self.rqs[cpu.index()].pelt.avg, &self.entities[id].avg);
            config.rules.pelt.util_est.util_est_enqueue(cfs_rq, task);
        }
    }

    /// `util_est_dequeue` on the CPU's own queue.
    #[inline]
    pub fn util_est_dequeue(&mut self, config: &KernelConfig, cpu: CpuId, id: EntityId) {
        if config.has(Feature::UtilEst) {
            let (cfs_rq, task) = (&mut self.rqs[cpu.index()].pelt.avg, &self.entities[id].avg);
            config.rules.pelt.util_est.util_est_dequeue(cfs_rq, task);
        }
    }

    /// `util_est_update` of a task that goes to sleep.
    #[inline]
    pub fn util_est_update(&mut self, config: &KernelConfig, cpu: CpuId, id: EntityId) {
        if config.has(Feature::UtilEst) {
            let (fastup, capacity) = (config.has(Feature::UtilEstFastup), self.clocks[cpu.index()].capacity());
            config.rules.pelt.util_est.util_est_update(&mut self.entities[id].avg, capacity, fastup);
        }
    }
}

/// The loads that tasks are compared and moved by.
impl Arena {
    /// `task_h_load`: an entity's part of its CPU's load. The queue's part is that of the first call in this jiffy,
    /// while its load average is the present one. Without a tick count the queue's part is computed anew.
    pub fn task_h_load(&mut self, id: EntityId, jiffies: Option<u64>) -> u64 {
        let (load, q) = (self.entities[id].avg.load_avg, self.entities[id].rq());
        self.update_cfs_rq_h_load(q, jiffies);
        load.wrapping_mul(self.rqs[q].pelt.h_load) / self.rqs[q].pelt.avg.load_avg.wrapping_add(1).max(1)
    }

    /// `update_cfs_rq_h_load`: once in a jiffy.
    pub fn update_cfs_rq_h_load(&mut self, rq: usize, jiffies: Option<u64>) {
        if jiffies == Some(self.rqs[rq].pelt.last_h_load_update) {
            return;
        }
        let id = self.entity_of_queue(rq);
        let h_load = match id.is_nil() {
            true => self.rqs[rq].pelt.avg.load_avg,
            false => {
                let parent = self.entities[id].rq();
                self.update_cfs_rq_h_load(parent, jiffies);
                let above = &self.rqs[parent].pelt;
                above.h_load.wrapping_mul(self.entities[id].avg.load_avg) / above.avg.load_avg.wrapping_add(1).max(1)
            }
        };
        let pelt = &mut self.rqs[rq].pelt;
        (pelt.h_load, pelt.last_h_load_update) = (h_load, jiffies.unwrap_or(0));
    }

    /// `calc_group_shares`: the weight of a group's entity on one CPU.
    pub fn calc_group_shares(&self, signals: &Signals, rq: usize) -> u64 {
        let q = &self.rqs[rq];
        let group = &self.groups[q.group.index()];
        let tg_cpus = group.cpus.unwrap_or_else(|| self.active.count());
        let shares = group.load.shares_to_divide(group.shares, tg_cpus as u64, signals);
        calc_group_shares(shares, q.load.weight, &q.pelt, &group.load)
    }
}
