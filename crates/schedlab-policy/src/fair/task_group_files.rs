//! The effects of writes to a group's control files (`cpu.weight`, `cpu.shares`, `cpu.idle`, `cgroup.procs`:
//! `__sched_group_set_shares`, `sched_group_set_idle`, `sched_group_set_latency`, `sched_move_task`).
//!
//! An idle group has shares of 3, whatever was written before.

use super::arena::{Arena, Counted};
use super::entity::EntityId;
use super::fair_sched_class::Fair;
use super::group_shares::GroupShares;
use super::queues::Queues;
use super::sched_fork::latency_slice;
use crate::group_id::GroupId;
use crate::weight::{LoadWeight, NICE_0_LOAD};
use crate::{FairPolicy, Resched, SliceSource};
use schedlab_model::{CpuId, Nanos, TaskId};

impl Fair {
    /// `sched_group_set_shares`. The root's and an idle group's cannot be changed: nothing happens.
    pub fn sched_group_set_shares(&mut self, group: GroupId, shares: GroupShares, now: Nanos) {
        if !self.group(group).idle {
            self.queues.__sched_group_set_shares(group, shares.full(), now);
        }
    }

    /// `sched_group_set_idle`.
    pub fn sched_group_set_idle(&mut self, group: GroupId, idle: bool, now: Nanos) {
        if group == GroupId::ROOT || self.group(group).idle == idle {
            return;
        }
        let arena = &mut self.queues.arena;
        arena.groups[group.index()].idle = idle;
        for cpu in 0..arena.nr_cpus() {
            arena.set_queue_idle(arena.group_queue(group, CpuId(cpu as u32)), idle);
        }
        let shares = if idle { LoadWeight::of_task(0, FairPolicy::Idle).weight } else { NICE_0_LOAD };
        self.queues.__sched_group_set_shares(group, shares, now);
    }

    /// `sched_group_set_latency` (2023 series); nothing happens elsewhere.
    pub fn sched_group_set_latency(&mut self, group: GroupId, latency_nice: i8) {
        if group == GroupId::ROOT || self.config.rules.slice != SliceSource::LatencyNice {
            return;
        }
        let arena = &mut self.queues.arena;
        arena.groups[group.index()].latency_nice = latency_nice;
        let slice = latency_slice(self.config.knobs.base_slice, latency_nice);
        for cpu in 0..arena.nr_cpus() {
            let id = arena.entity_on(group, cpu);
            let se = &mut arena.entities[id];
            (se.latency_nice, se.slice, se.custom_slice) = (latency_nice, slice, true);
        }
    }

    /// `sched_move_task`: the task, wherever it is, belongs to the group from now on. A running one reschedules.
    pub fn sched_move_task(&mut self, task: TaskId, group: GroupId, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        self.queues.requeue_around(id, false, now, |queues| queues.task_change_group_fair(id, group, now));
        self.moved_group(id)
    }
}

impl Queues {
    /// `__sched_group_set_shares`.
    fn __sched_group_set_shares(&mut self, group: GroupId, shares: u64, now: Nanos) {
        if group == GroupId::ROOT || self.arena.groups[group.index()].shares == shares {
            return;
        }
        self.arena.groups[group.index()].shares = shares;
        for cpu in 0..self.arena.nr_cpus() {
            let mut id = self.arena.entity_on(group, cpu);
            while id.is_some() {
                let rq = self.arena.entities[id].rq();
                self.arena.update_load_avg(&self.config.rules.pelt, rq, id, true, now);
                self.update_cfs_group(id, now);
                id = self.arena.entities[id].parent;
            }
        }
    }

    /// `task_change_group_fair` of a task that is not queued. A CFS sleeper is placed on the old queue as if it woke,
    /// and keeps that distance to the new one's minimum.
    fn task_change_group_fair(&mut self, id: EntityId, group: GroupId, now: Nanos) {
        let signals = &self.config.rules.pelt;
        // A task never queued has no load yet.
        let attached = self.arena.entities[id].avg.last_update_time != 0;
        self.arena.detach_entity_cfs_rq(signals, id, now);
        let relative = self.place_sleeper_relative(id, now);
        self.arena.set_task_rq(id, group);
        if attached {
            self.arena.attach_entity_cfs_rq(&self.config.rules.pelt, id, now);
        }
        if relative {
            let se = &mut self.arena.entities[id];
            self.arena.rqs[se.rq()].make_absolute(se);
        }
    }
}

impl Arena {
    /// Tasks below count as idle above, or no longer do.
    fn set_queue_idle(&mut self, rq: usize, idle: bool) {
        self.rqs[rq].idle = idle;
        let mut id = self.entity_of_queue(rq);
        self.entities[id].policy = if idle { FairPolicy::Idle } else { FairPolicy::Normal };
        let busy = (self.rqs[rq].h_nr_running - self.rqs[rq].idle_h_nr_running) as i32;
        let (one, tasks) = if idle { (1, busy) } else { (-1, -busy) };
        let se = &self.entities[id];
        if se.on_rq {
            let above = &mut self.rqs[se.rq()];
            above.idle_nr_running = above.idle_nr_running.wrapping_add_signed(one);
        }
        while id.is_some() && self.entities[id].on_rq {
            let above = &mut self.rqs[self.entities[id].rq()];
            above.count(Counted { idle: tasks, ..Counted::default() });
            if above.idle {
                // Everything below it counts already, one level up.
                return;
            }
            id = self.entities[id].parent;
        }
    }
}
