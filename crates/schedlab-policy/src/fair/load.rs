//! Where the class feeds load tracking (`update_load_avg` and its callers), and what it reads from it.
//!
//! An entity and its queue are brought up to now whenever one of them changes: enqueue, dequeue, start and end of
//! running, tick. Averages of a sleeper stay with the queue it slept on until it moves. Kernel/sched/fair.c. A task that
//! migrates while queued is detached when it changes CPU; from 6.1 on within its dequeue, so that the weight of its group's
//! entity no longer counts it.

use super::entity::EntityId;
use super::Fair;
use crate::features::Feature;
use crate::pelt::{propagate_entity_load_avg, PeltClock, CAPACITY_SCALE};
use crate::weight::LoadWeight;
use schedlab_model::{CpuId, Nanos, TaskId};

/// The clock's start: 0 means "not attached".
pub(super) const BOOT: Nanos = 1 << 20;

impl Fair {
    /// `update_load_avg`: an entity and its queue up to now; a group's entity follows what moved below it. `tell`:
    /// UPDATE_TG, the group is told.
    #[inline(never)]
    pub(super) fn update_load_avg(&mut self, rq: usize, id: EntityId, tell: bool, now: Nanos) {
        let at = self.cfs_rq_clock_pelt(rq, now);
        let signals = &self.rules.pelt;
        let (q, se) = (&mut self.rqs[rq], &mut self.entities[id.index()]);
        // Nothing is shorter than a unit: often the queue was just updated for another task.
        if se.avg.is_due(at) && se.avg.last_update_time != 0 {
            let runnable = if se.sched_delayed { 0 } else { u64::from(se.runnable) };
            se.avg.update_se(at, se.load, (se.on_rq, runnable, q.curr == id), signals);
        }
        let changed = q.pelt.is_due(at) && q.update_load(at, signals);
        if self.grouped {
            self.follow(rq, id, changed, tell, now);
        }
    }

    /// What the update of a queue and one of its entities means for groups.
    #[inline(never)]
    fn follow(&mut self, rq: usize, id: EntityId, mut changed: bool, tell: bool, now: Nanos) {
        if let Some(below) = self.se(id).my_q {
            changed |= self.propagate(rq, id, below as usize);
        }
        if changed && tell {
            self.update_tg_load_avg(rq, now);
        }
    }

    /// `propagate_entity_load_avg` of a group's entity on queue `rq`.
    fn propagate(&mut self, rq: usize, id: EntityId, below: usize) -> bool {
        // A group is younger than the one above it.
        let (upper, lower) = self.rqs.split_at_mut(below);
        let (queue, group) = (&mut upper[rq].pelt, &mut lower[0]);
        let weight = group.load.weight;
        let se = &mut self.entities[id.index()];
        propagate_entity_load_avg(queue, &mut se.avg, se.load.scaled(), (&mut group.pelt, weight), &self.rules.pelt)
    }

    /// `update_tg_load_avg`; the root's load is nobody's share.
    #[inline]
    fn update_tg_load_avg(&mut self, rq: usize, now: Nanos) {
        if rq >= self.config.nr_cpus {
            let q = &mut self.rqs[rq];
            self.groups[q.group.index()].load.update(&mut q.pelt, now, &self.rules.pelt);
        }
    }

    /// `propagate_entity_cfs_rq`: the levels above follow at once what came or left below `id`.
    fn propagate_up(&mut self, mut id: EntityId, now: Nanos) {
        while id.is_some() {
            self.update_load_avg(self.se(id).cfs_rq as usize, id, true, now);
            id = self.se(id).parent;
        }
    }

    /// `update_load_avg` with DO_ATTACH: an entity that comes from elsewhere brings its averages.
    #[inline]
    pub(super) fn attach_load_avg(&mut self, rq: usize, id: EntityId, now: Nanos) {
        let se = &mut self.entities[id.index()];
        if se.avg.last_update_time == 0 {
            self.rqs[rq].pelt.attach(&mut se.avg, se.load.scaled(), &self.rules.pelt);
            self.update_tg_load_avg(rq, now);
        }
    }

    /// `update_load_avg` with DO_DETACH, after it brought both up to now: the balancer takes the task away.
    pub(super) fn detach_in_dequeue(&mut self, rq: usize, id: EntityId, now: Nanos) {
        let se = &mut self.entities[id.index()];
        self.rqs[rq].pelt.detach(&se.avg, se.load.scaled(), &self.rules.pelt);
        se.avg.last_update_time = 0;
        self.update_tg_load_avg(rq, now);
    }

    /// `attach_entity_cfs_rq`: a task that came from another group brings its averages at once.
    pub(super) fn join_load_avg(&mut self, id: EntityId, now: Nanos) {
        let rq = self.se(id).cfs_rq as usize;
        self.update_load_avg(rq, id, false, now);
        self.attach_load_avg(rq, id, now);
        self.propagate_up(self.se(id).parent, now);
    }

    /// A task changes group (`detach_entity_cfs_rq`): its averages leave its queue before.
    pub(super) fn leave_load_avg(&mut self, id: EntityId, now: Nanos) {
        let rq = self.se(id).cfs_rq as usize;
        if self.se(id).avg.last_update_time != 0 {
            self.update_load_avg(rq, id, false, now);
            let se = &mut self.entities[id.index()];
            self.rqs[rq].pelt.detach(&se.avg, se.load.scaled(), &self.rules.pelt);
            se.avg.last_update_time = 0;
            self.update_tg_load_avg(rq, now);
            self.propagate_up(self.se(id).parent, now);
        }
    }

    /// `migrate_task_rq_fair` as far as load goes, before [`Fair::migrate_task_rq`], which does it without aging: the task
    /// takes its averages along, a sleeper by a note to the old queue.
    pub fn migrate_load_avg(&mut self, task: TaskId, now: Nanos) {
        self.detach_load_avg(EntityId::of(task), Some(now));
    }

    /// The same; a sleeper is aged by the time its idle queue has not been updated (`migrate_se_pelt_lag`) if `now` is
    /// known.
    pub(super) fn detach_load_avg(&mut self, id: EntityId, now: Option<Nanos>) {
        let (rq, signals) = (self.se(id).cfs_rq as usize, self.rules.pelt);
        if self.se(id).avg.last_update_time == 0 {
            return;
        }
        let (q, se) = (&mut self.rqs[rq], &mut self.entities[id.index()]);
        if se.asleep {
            q.pelt.remove(&mut se.avg, se.load.scaled(), &signals);
            let lag = signals.migrate_lag && self.clocks[q.cpu.index()].is_idle() && !se.avg.is_decayed();
            if let Some(now) = now.filter(|_| lag) {
                let now = self.cfs_rq_clock_pelt(rq, now);
                let se = &mut self.entities[id.index()];
                se.avg.update_blocked(now, se.load.scaled(), &signals);
            }
        } else {
            q.pelt.detach(&se.avg, se.load.scaled(), &signals);
            if let Some(now) = now {
                self.update_tg_load_avg(rq, now);
                self.propagate_up(self.se(id).parent, now);
            }
        }
        self.entities[id.index()].avg.last_update_time = 0;
    }

    /// `task_dead_fair`: the exiting task's load leaves with it.
    pub fn task_dead(&mut self, task: TaskId) {
        let id = EntityId::of(task);
        let rq = self.se(id).cfs_rq as usize;
        let se = &mut self.entities[id.index()];
        if se.avg.last_update_time != 0 {
            self.rqs[rq].pelt.remove(&mut se.avg, se.load.scaled(), &self.rules.pelt);
            se.avg.last_update_time = 0;
        }
    }

    /// `post_init_entity_util_avg`: the first guess for a task about to be queued for the first time.
    pub(super) fn init_util_avg(&mut self, id: EntityId) {
        let se = &mut self.entities[id.index()];
        se.avg.guess_util(se.load, &self.rqs[se.cfs_rq as usize].pelt.avg, &self.rules.pelt);
    }

    /// The averages' part of `reweight_entity`, before the weight changes: load follows it, in the queue too.
    pub(super) fn reweight_load_avg(&mut self, id: EntityId, load: LoadWeight) {
        let signals = &self.rules.pelt;
        let se = &mut self.entities[id.index()];
        let (q, old, new) = (&mut self.rqs[se.cfs_rq as usize].pelt, se.load.scaled(), load.scaled());
        if se.avg.last_update_time == 0 {
            if se.my_q.is_none() && se.avg.load_sum == 0 {
                // A task that never ran looks heavy with its new weight too.
                se.avg.load_avg = new;
            }
            return;
        }
        let queued = signals.runnable_load && se.on_rq;
        if queued {
            q.dequeue_runnable(&se.avg, old);
        }
        q.dequeue_load_avg(&se.avg, old, signals);
        se.avg.load_avg = new * se.avg.load_sum / se.avg.divider();
        if signals.runnable_load {
            se.avg.runnable_avg = new * se.avg.runnable_sum / se.avg.divider();
        }
        q.enqueue_load_avg(&se.avg, new);
        if queued {
            q.enqueue_runnable(&se.avg, new);
        }
    }

    /// `enqueue_runnable_load_avg` (5.2).
    #[cold]
    pub(super) fn enqueue_runnable_load_avg(&mut self, rq: usize, id: EntityId) {
        let se = &self.entities[id.index()];
        self.rqs[rq].pelt.enqueue_runnable(&se.avg, se.load.scaled());
    }

    /// `dequeue_runnable_load_avg` (5.2).
    #[cold]
    pub(super) fn dequeue_runnable_load_avg(&mut self, rq: usize, id: EntityId) {
        let se = &self.entities[id.index()];
        self.rqs[rq].pelt.dequeue_runnable(&se.avg, se.load.scaled());
    }

    /// `util_est_enqueue` on the CPU's own queue.
    #[inline]
    pub(super) fn util_est_enqueue(&mut self, cpu: usize, id: EntityId) {
        if self.config.has(Feature::UtilEst) {
            self.rules.pelt.util_est.enqueue(&mut self.rqs[cpu].pelt.avg, &self.entities[id.index()].avg);
        }
    }

    /// `util_est_dequeue`.
    #[inline]
    pub(super) fn util_est_dequeue(&mut self, cpu: usize, id: EntityId) {
        if self.config.has(Feature::UtilEst) {
            self.rules.pelt.util_est.dequeue(&mut self.rqs[cpu].pelt.avg, &self.entities[id.index()].avg);
        }
    }

    /// `util_est_update` of a task that goes to sleep.
    #[inline]
    pub(super) fn util_est_update(&mut self, id: EntityId) {
        if self.config.has(Feature::UtilEst) {
            let fastup = self.config.has(Feature::UtilEstFastup);
            self.rules.pelt.util_est.update(&mut self.entities[id.index()].avg, fastup);
        }
    }

    /// `update_blocked_averages`: what sleeps on the CPU decays, from the leaves of the group tree up.
    pub fn update_blocked_averages(&mut self, cpu: CpuId, now: Nanos) {
        let n = self.config.nr_cpus;
        for rq in (1..self.groups.len()).rev().map(|group| group * n + cpu.index()) {
            if !self.rqs[rq].pelt.is_decayed() {
                self.update_blocked_queue(rq, now);
            }
        }
        self.update_blocked_queue(cpu.index(), now);
    }

    /// The same of one group's queue, as its turn comes.
    pub fn update_blocked_group(&mut self, group: super::GroupId, cpu: CpuId, now: Nanos) {
        self.update_blocked_queue(self.group_queue(group, cpu), now);
    }

    fn update_blocked_queue(&mut self, rq: usize, now: Nanos) {
        let at = self.cfs_rq_clock_pelt(rq, now);
        if self.rqs[rq].update_load(at, &self.rules.pelt) {
            self.update_tg_load_avg(rq, now);
        }
        let id = self.entity_of_queue(rq);
        // skip_blocked_update
        if id.is_some() {
            let avg = &self.se(id).avg;
            if avg.load_avg > 0 || avg.util_avg > 0 || self.rqs[rq].pelt.propagate {
                self.update_load_avg(self.se(id).cfs_rq as usize, id, true, now);
            }
        }
    }

    /// `cfs_rq_clock_pelt`.
    #[inline(always)]
    fn cfs_rq_clock_pelt(&mut self, rq: usize, now: Nanos) -> Nanos {
        if !self.scaled {
            return now + BOOT;
        }
        self.scaled_clock_pelt(rq, now)
    }

    #[inline(never)]
    fn scaled_clock_pelt(&mut self, rq: usize, now: Nanos) -> Nanos {
        self.clocks[self.rqs[rq].cpu.index()].now(now) + BOOT
    }

    /// Up to when the CPU's queue was charged or aged.
    pub(crate) fn seen(&self, cpu: CpuId) -> Nanos {
        let root = cpu.index();
        let aged = if self.scaled { 0 } else { self.rqs[root].pelt.avg.last_update_time.saturating_sub(BOOT) };
        let leaf = self.leaf(root);
        let charged = if leaf.is_some() { self.se(leaf).exec_start } else { 0 };
        aged.max(charged).max(self.last_charge(root))
    }

    /// From `now` on the CPU has this part of the largest capacity and of its own largest frequency, of 1024.
    pub fn set_cpu_scale(&mut self, cpu: CpuId, capacity: u32, frequency: u32, now: Nanos) {
        self.scaled = true;
        self.clocks[cpu.index()].set_scale(now, capacity, frequency);
    }

    /// The CPU's clock of load tracking.
    #[must_use]
    pub fn clock_pelt(&self, cpu: CpuId) -> &PeltClock {
        &self.clocks[cpu.index()]
    }

    /// `update_idle_rq_clock_pelt`: the idle task is switched in.
    pub fn enter_idle(&mut self, cpu: CpuId, now: Nanos) {
        let util_sum = u64::from(self.rqs[cpu.index()].pelt.avg.util_sum);
        self.clocks[cpu.index()].enter_idle(now, util_sum);
    }

    /// The idle task is switched out.
    #[inline]
    pub fn exit_idle(&mut self, cpu: CpuId, now: Nanos) {
        self.clocks[cpu.index()].exit_idle(now);
    }

    /// `cpu_load`: the load average of the CPU, sleepers included (5.2: without them).
    #[inline]
    #[must_use]
    pub fn cpu_load(&self, cpu: CpuId) -> u64 {
        let avg = &self.rq(cpu).pelt.avg;
        if self.rules.pelt.runnable_load {
            avg.runnable_avg
        } else {
            avg.load_avg
        }
    }

    /// `cpu_runnable`: 1024 per task that always waits or runs; before it existed (5.2), per task queued now.
    #[inline]
    #[must_use]
    pub fn cpu_runnable(&self, cpu: CpuId) -> u64 {
        let q = self.rq(cpu);
        if self.rules.pelt.runnable_load {
            u64::from(q.h_nr_running) * CAPACITY_SCALE
        } else {
            q.pelt.avg.runnable_avg
        }
    }

    /// `cpu_util_cfs`: utilisation of the CPU by the class, or what its tasks are expected to use, up to 1024.
    #[inline]
    #[must_use]
    pub fn cpu_util_cfs(&self, cpu: CpuId) -> u64 {
        let avg = &self.rq(cpu).pelt.avg;
        let estimate = if self.config.has(Feature::UtilEst) { avg.util_est } else { 0 };
        u64::from(avg.util_avg.max(estimate)).min(CAPACITY_SCALE)
    }

    /// `cpu_util_cfs_boost`: the same, but at least the time for which tasks ran or waited.
    #[inline]
    #[must_use]
    pub fn cpu_util_cfs_boost(&self, cpu: CpuId) -> u64 {
        let runnable = self.rq(cpu).pelt.avg.runnable_avg;
        self.cpu_util_cfs(cpu).max(runnable.min(CAPACITY_SCALE))
    }

    /// `task_h_load`: the task's part of its CPU's load, through its groups.
    #[must_use]
    pub fn task_h_load(&self, task: TaskId) -> u64 {
        let se = self.entity(task);
        let q = se.cfs_rq as usize;
        se.avg.load_avg * self.h_load(q) / (self.rqs[q].pelt.avg.load_avg + 1)
    }

    /// `update_cfs_rq_h_load`, without its cache of a jiffy.
    fn h_load(&self, rq: usize) -> u64 {
        let id = self.entity_of_queue(rq);
        if id.is_nil() {
            return self.rqs[rq].pelt.avg.load_avg;
        }
        let parent = self.se(id).cfs_rq as usize;
        self.h_load(parent) * self.se(id).avg.load_avg / (self.rqs[parent].pelt.avg.load_avg + 1)
    }

    /// `task_util_est`.
    #[must_use]
    pub fn task_util_est(&self, task: TaskId) -> u64 {
        let avg = &self.entity(task).avg;
        u64::from(avg.util_avg.max(self.rules.pelt.util_est.of_task(avg)))
    }
}
