//! Sets a task or a queue to a recorded state, for a replay that starts while the kernel is already running. Nothing
//! here is a rule of the scheduler.

use super::arena::Arena;
use super::entity::EntityId;
use super::group_shares::GroupShares;
use super::load_avg::BOOT;
use super::recorded::{Contribution, CpuAverages, GroupState, LoadState, TaskState};
use crate::group_id::GroupId;
use crate::weight::{scale_load_down, LoadWeight};
use crate::KernelConfig;
use schedlab_model::{CpuId, Nanos, TaskId, Vruntime};

/// A writer of the class's state.
pub struct Restore<'a> {
    pub(super) arena: &'a mut Arena,
    pub(super) config: &'a KernelConfig,
}

impl Restore<'_> {
    /// Overwrites a task's state, wherever the task is; sums and queue order follow.
    pub fn task(&mut self, task: TaskId, state: TaskState) {
        self.entity(EntityId::of(task), state);
    }

    /// The same of the entity that stands for a group on a CPU, with its weight there. The root has none: nothing
    /// happens.
    pub fn group(&mut self, group: GroupId, cpu: CpuId, state: GroupState) {
        let Some(id) = self.arena.entity_on(group, cpu.index()).some() else { return };
        let load = LoadWeight::of_sum(state.weight).dividing(self.config.rules.delta_divides);
        let (q, se) = (&mut self.arena.rqs[self.arena.entities[id].rq()], &mut self.arena.entities[id]);
        let queued = se.on_rq && q.curr != id && !self.config.rules.flat_hierarchy;
        if queued {
            q.__dequeue_entity(&mut self.arena.entities, self.config, id);
        }
        let se = &mut self.arena.entities[id];
        let old = se.load.weight;
        se.set_load(load);
        se.exec_start = state.exec_start.unwrap_or(se.exec_start);
        let on_rq = se.on_rq;
        if let Some(state) = state.state {
            state.write_to(se);
        }
        if on_rq {
            q.load = LoadWeight::of_sum(q.load.weight - old + state.weight);
        }
        if queued {
            q.__enqueue_entity(&mut self.arena.entities, self.config, id);
        }
    }

    fn entity(&mut self, id: EntityId, state: TaskState) {
        let rq = self.arena.competes_on(self.arena.entities[id].rq());
        let (q, se) = (&mut self.arena.rqs[rq], &self.arena.entities[id]);
        let queued = se.on_rq && q.curr != id;
        if queued {
            q.__dequeue_entity(&mut self.arena.entities, self.config, id);
        }
        state.write_to(&mut self.arena.entities[id]);
        if queued {
            q.__enqueue_entity(&mut self.arena.entities, self.config, id);
        }
    }

    /// The weight that a group has had all along: its entities stay as they are.
    pub fn shares(&mut self, group: GroupId, shares: GroupShares) {
        self.arena.groups[group.index()].shares = shares.full();
    }

    /// Overwrites a task's load average, and not that of its queue.
    pub fn load(&mut self, task: TaskId, load: LoadState) {
        load.write_to(&mut self.arena.entities[EntityId::of(task)].avg);
    }

    /// Overwrites `load_avg` of a task alone; its sum follows, and the time up to which it is accounted stays.
    pub fn task_load_avg(&mut self, task: TaskId, load_avg: u64) {
        let se = &mut self.arena.entities[EntityId::of(task)];
        let sum = (load_avg * se.avg.get_pelt_divider()).div_ceil(scale_load_down(se.load.weight).max(1));
        (se.avg.load_avg, se.avg.load_sum) = (load_avg, sum);
    }

    /// Overwrites `util_avg` of a task alone, likewise.
    pub fn task_util_avg(&mut self, task: TaskId, util_avg: u32) {
        let avg = &mut self.arena.entities[EntityId::of(task)].avg;
        (avg.util_avg, avg.util_sum) = (util_avg, util_avg * avg.get_pelt_divider() as u32);
    }

    /// The part of a CPU's load that its own queue has (`h_load`), and the tick at which it was computed.
    pub fn h_load(&mut self, cpu: CpuId, h_load: u64, jiffies: u64) {
        let pelt = &mut self.arena.rqs[cpu.index()].pelt;
        (pelt.h_load, pelt.last_h_load_update) = (h_load, jiffies);
    }

    /// The same of a CPU's queue.
    pub fn cpu_load_avg(&mut self, cpu: CpuId, load_avg: u64) {
        let avg = &mut self.arena.rqs[cpu.index()].pelt.avg;
        (avg.load_avg, avg.load_sum) = (load_avg, load_avg * avg.get_pelt_divider());
    }

    /// Overwrites the averages of a CPU's queue, which are accounted up to this time; the sums follow.
    pub fn cpu_averages(&mut self, cpu: CpuId, averages: CpuAverages, until: Nanos) {
        let avg = &mut self.arena.rqs[cpu.index()].pelt.avg;
        (avg.last_update_time, avg.period_contrib) = (until + BOOT, averages.period_contrib);
        let divider = avg.get_pelt_divider();
        (avg.load_avg, avg.load_sum) = (averages.load_avg, averages.load_avg * divider);
        (avg.runnable_avg, avg.runnable_sum) = (averages.runnable_avg, averages.runnable_avg * divider);
        (avg.util_avg, avg.util_sum) = (averages.util_avg, averages.util_avg * divider as u32);
        avg.util_est = averages.util_est;
    }

    /// Overwrites the load average of a group's queue.
    pub fn group_load(&mut self, group: GroupId, cpu: CpuId, load: LoadState) {
        let rq = self.arena.group_queue(group, cpu);
        load.write_to(&mut self.arena.rqs[rq].pelt.avg);
    }

    /// Overwrites what a group's queue has contributed to the group's load, and that load.
    pub fn contribution(&mut self, group: GroupId, cpu: CpuId, contribution: Contribution) {
        let rq = self.arena.group_queue(group, cpu);
        let pelt = &mut self.arena.rqs[rq].pelt;
        pelt.tg_load_avg_contrib = contribution.tg_load_avg_contrib;
        pelt.last_update_tg_load_avg = contribution.last_update_tg_load_avg;
        self.arena.groups[group.index()].load.load_avg = contribution.load_avg;
    }

    /// Overwrites a group's load over all CPUs (`tg->load_avg`), and what of it is runnable (`tg->runnable_avg`, 7.3).
    pub fn group_sums(&mut self, group: GroupId, load_avg: i64, runnable_avg: i64) {
        let load = &mut self.arena.groups[group.index()].load;
        (load.load_avg, load.runnable_avg) = (load_avg, runnable_avg);
    }

    /// Overwrites the zero point of a group's queue, in either direction; the sum of keys follows.
    pub fn min_vruntime(&mut self, group: GroupId, cpu: CpuId, min_vruntime: Vruntime) {
        let rq = self.arena.group_queue(group, cpu);
        let q = &mut self.arena.rqs[rq];
        q.update_zero_vruntime(min_vruntime.since(q.min_vruntime));
    }

    /// The running task's time that is not accounted yet began then.
    pub fn exec_start(&mut self, task: TaskId, since: Nanos) {
        self.arena.entities[EntityId::of(task)].exec_start = since;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use crate::fair::Fair;
    use crate::weight::scale_load_down;
    use crate::{KernelConfig, TaskAttr, Version};

    /// Averages are computed from sums, so a sum that does not match is lost at the next update.
    #[test]
    fn the_sums_of_a_task_match_its_averages() {
        let mut fair = Fair::new(KernelConfig::new(Version::find("6.12.107").unwrap(), 2, 250));
        for nice in [-20, 0, 19] {
            let task = fair.add_task(&TaskAttr { nice, ..TaskAttr::default() });
            let load_avg = scale_load_down(fair.entity(task).load.weight) / 2;
            fair.restore().task_load_avg(task, load_avg);
            fair.restore().task_util_avg(task, 300);
            let se = fair.entity(task);
            let divider = se.avg.get_pelt_divider();
            assert_eq!(scale_load_down(se.load.weight) * se.avg.load_sum / divider, load_avg, "nice {nice}");
            assert_eq!(u64::from(se.avg.util_sum) / divider, 300, "nice {nice}");
        }
    }
}
