//! Putting a task or a queue into a recorded state, for a replay that starts in the middle of a kernel's life.

use super::entity::EntityId;
use super::load::BOOT;
use super::{Fair, GroupId, GroupShares};
use crate::pelt::SchedAvg;
use crate::weight::LoadWeight;
use schedlab_model::{CpuId, Nanos, TaskId, Vruntime};

/// What a trace can tell of an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskState {
    /// `se.vruntime`.
    pub vruntime: Vruntime,
    /// `se.deadline`.
    pub deadline: Vruntime,
    /// `se.vlag`.
    pub vlag: i64,
    /// `se.slice`.
    pub slice: Nanos,
}

/// What a trace can tell of a load average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadState {
    /// `avg.load_avg`.
    pub load_avg: u64,
    /// `avg.load_sum`.
    pub load_sum: u64,
    /// `avg.last_update_time`.
    pub last_update_time: Nanos,
    /// `avg.period_contrib`.
    pub period_contrib: u32,
}

impl LoadState {
    fn give(self, avg: &mut SchedAvg) {
        (avg.load_avg, avg.load_sum) = (self.load_avg, self.load_sum);
        // 0: on no queue.
        let attached = self.last_update_time != 0;
        avg.last_update_time = if attached { self.last_update_time + BOOT } else { 0 };
        avg.period_contrib = self.period_contrib;
    }
}

impl Fair {
    /// The task's state as a trace would show it.
    #[must_use]
    pub fn task_state(&self, task: TaskId) -> TaskState {
        let se = self.entity(task);
        TaskState { vruntime: se.vruntime, deadline: se.deadline, vlag: se.vlag, slice: se.slice }
    }

    /// Overwrites it, wherever the task is; sums and queue order follow.
    pub fn restore_task(&mut self, task: TaskId, state: TaskState) {
        let id = EntityId::of(task);
        let rq = self.se(id).cfs_rq as usize;
        let queued = self.se(id).on_rq && self.rqs[rq].curr != id;
        if queued {
            self.tree_erase(rq, id);
        }
        let se = self.se_mut(id);
        (se.vruntime, se.deadline, se.vlag, se.slice) = (state.vruntime, state.deadline, state.vlag, state.slice);
        if queued {
            self.tree_insert(rq, id);
        }
    }

    /// The same of the entity that stands for a group on a CPU, with its weight there and up to when it was charged.
    pub fn restore_group(
        &mut self,
        group: GroupId,
        cpu: CpuId,
        state: TaskState,
        (weight, exec_start): (u64, Option<Nanos>),
    ) {
        let id = self.entity_of_queue(self.group_queue(group, cpu));
        if id.is_nil() {
            return;
        }
        let rq = self.se(id).cfs_rq as usize;
        let (on_rq, queued) = (self.se(id).on_rq, self.se(id).on_rq && self.rqs[rq].curr != id);
        if queued {
            self.tree_erase(rq, id);
        }
        let load = LoadWeight::of_sum(weight).dividing(self.rules.delta_divides);
        let se = self.se_mut(id);
        let old = std::mem::replace(&mut se.load, load).weight;
        se.exec_start = exec_start.unwrap_or(se.exec_start);
        (se.vruntime, se.deadline, se.vlag, se.slice) = (state.vruntime, state.deadline, state.vlag, state.slice);
        if on_rq {
            let q = &mut self.rqs[rq];
            q.load = LoadWeight::of_sum(q.load.weight - old + weight);
        }
        if queued {
            self.tree_insert(rq, id);
        }
    }

    /// What a group has weighed all along: its entities stay as they are.
    pub fn restore_shares(&mut self, group: GroupId, shares: GroupShares) {
        self.groups[group.index()].shares = shares.full();
    }

    /// Overwrites a task's load average; its queue's stays.
    pub fn restore_load(&mut self, task: TaskId, load: LoadState) {
        load.give(&mut self.se_mut(EntityId::of(task)).avg);
    }

    /// Overwrites the load average of a group's queue, what of it the group was told and when, and what the group knows.
    pub fn restore_group_load(&mut self, group: GroupId, cpu: CpuId, load: LoadState, told: (u64, Nanos), all: i64) {
        let rq = self.group_queue(group, cpu);
        load.give(&mut self.rqs[rq].pelt.avg);
        self.restore_told(group, cpu, told, all);
    }

    /// Without the load average.
    pub fn restore_told(&mut self, group: GroupId, cpu: CpuId, told: (u64, Nanos), all: i64) {
        let rq = self.group_queue(group, cpu);
        let pelt = &mut self.rqs[rq].pelt;
        (pelt.tg_load_avg_contrib, pelt.last_update_tg_load_avg) = told;
        self.groups[group.index()].load.load_avg = all;
    }

    /// Overwrites a queue's zero point, in either direction; the sum of keys follows.
    pub fn restore_min_vruntime(&mut self, cpu: CpuId, min_vruntime: Vruntime) {
        self.restore_group_zero(GroupId::ROOT, cpu, min_vruntime);
    }

    /// The same of a group's queue.
    pub fn restore_group_zero(&mut self, group: GroupId, cpu: CpuId, min_vruntime: Vruntime) {
        let rq = self.group_queue(group, cpu);
        let q = &mut self.rqs[rq];
        let moved = min_vruntime.since(q.min_vruntime);
        q.avg_vruntime = q.avg_vruntime.wrapping_sub(q.avg_load.wrapping_mul(moved));
        q.min_vruntime = min_vruntime;
    }
}
