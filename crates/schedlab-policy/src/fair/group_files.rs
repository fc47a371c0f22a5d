//! What is written to a group's control files (`cpu.weight`, `cpu.shares`, `cpu.idle`, `cgroup.procs`), and what it does
//! (`__sched_group_set_shares`, `sched_group_set_idle`, `sched_group_set_latency`, `sched_move_task`).
//!
//! Shares at full resolution are 1024 times `cpu.shares`; `cpu.weight` w means `round(1024 w / 100)` of those,
//! `cpu.weight.nice` the weight of a task so nice. An idle group has 3, whatever was written before.

use super::entity::EntityId;
use super::task::latency_slice;
use super::Fair;
use crate::group_id::GroupId;
use crate::weight::{LoadWeight, FIXEDPOINT_SHIFT, NICE_0_LOAD};
use crate::{FairPolicy, Resched, SliceSource};
use schedlab_model::{CpuId, Nanos, TaskId};

/// Range of `cpu.shares`.
const SHARES: (u64, u64) = (2, 1 << 18);

/// A group's weight as one of its files takes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupShares {
    /// `cpu.weight`, 1..=10000.
    Weight(u64),
    /// `cpu.weight.nice`, -20..=19.
    Nice(i8),
    /// `cpu.shares`, 2..=262144.
    Shares(u64),
}

impl GroupShares {
    /// Shares at full resolution.
    #[must_use]
    pub fn full(self) -> u64 {
        let shares = match self {
            GroupShares::Weight(weight) => (weight.saturating_mul(1024) + 50) / 100,
            GroupShares::Nice(nice) => LoadWeight::of_task(nice, FairPolicy::Normal).scaled(),
            GroupShares::Shares(shares) => shares,
        };
        shares.clamp(SHARES.0, SHARES.1) << FIXEDPOINT_SHIFT
    }
}

impl Fair {
    /// `sched_group_set_shares`. The root's and an idle group's cannot be changed: nothing happens.
    pub fn sched_group_set_shares(&mut self, group: GroupId, shares: GroupShares, now: Nanos) {
        if !self.group(group).idle {
            self.put_shares(group, shares.full(), now);
        }
    }

    /// `__sched_group_set_shares`.
    fn put_shares(&mut self, group: GroupId, shares: u64, now: Nanos) {
        if group == GroupId::ROOT || self.group(group).shares == shares {
            return;
        }
        self.groups[group.index()].shares = shares;
        for cpu in 0..self.config.nr_cpus {
            let mut id = self.entity_on(group, cpu);
            while id.is_some() {
                self.update_load_avg(self.se(id).cfs_rq as usize, id, true, now);
                self.update_cfs_group(id, now);
                id = self.se(id).parent;
            }
        }
    }

    /// `sched_group_set_idle`.
    pub fn sched_group_set_idle(&mut self, group: GroupId, idle: bool, now: Nanos) {
        if group == GroupId::ROOT || self.group(group).idle == idle {
            return;
        }
        self.groups[group.index()].idle = idle;
        for cpu in 0..self.config.nr_cpus {
            self.set_queue_idle(self.group_queue(group, CpuId(cpu as u32)), idle);
        }
        let shares = if idle { LoadWeight::of_task(0, FairPolicy::Idle).weight } else { NICE_0_LOAD };
        self.put_shares(group, shares, now);
    }

    /// Tasks below count as idle above, or no longer do.
    fn set_queue_idle(&mut self, rq: usize, idle: bool) {
        self.rqs[rq].idle = idle;
        let mut id = self.entity_of_queue(rq);
        self.se_mut(id).policy = if idle { FairPolicy::Idle } else { FairPolicy::Normal };
        let busy = (self.rqs[rq].h_nr_running - self.rqs[rq].idle_h_nr_running) as i32;
        let (one, tasks) = if idle { (1, busy) } else { (-1, -busy) };
        if self.se(id).on_rq {
            let above = &mut self.rqs[self.entities[id.index()].cfs_rq as usize];
            above.idle_nr_running = above.idle_nr_running.wrapping_add_signed(one);
        }
        while id.is_some() && self.se(id).on_rq {
            let above = &mut self.rqs[self.entities[id.index()].cfs_rq as usize];
            above.idle_h_nr_running = above.idle_h_nr_running.wrapping_add_signed(tasks);
            if above.idle {
                // Whatever is below it counts already, one level up.
                return;
            }
            id = self.se(id).parent;
        }
    }

    /// `sched_group_set_latency` (2023 series); nothing happens elsewhere.
    pub fn sched_group_set_latency(&mut self, group: GroupId, latency_nice: i8) {
        if group == GroupId::ROOT || self.rules.slice != SliceSource::LatencyNice {
            return;
        }
        self.groups[group.index()].latency_nice = latency_nice;
        let slice = latency_slice(self.config.knobs.base_slice, latency_nice);
        for cpu in 0..self.config.nr_cpus {
            let id = self.entity_on(group, cpu);
            let se = self.se_mut(id);
            (se.latency_nice, se.slice, se.custom_slice) = (latency_nice, slice, true);
        }
    }

    /// `sched_move_task`: the task, wherever it is, belongs to the group from now on. A running one reschedules.
    pub fn sched_move_task(&mut self, task: TaskId, group: GroupId, now: Nanos) -> Resched {
        let id = EntityId::of(task);
        let cpu = self.se(id).cpu;
        self.requeue_around(id, false, now, |fair| fair.change_group(id, group, now));
        if self.leaf(cpu.index()) == id && self.rules.move_reschedules {
            self.resched_curr(cpu.index());
        }
        self.need_resched(cpu)
    }

    /// `task_change_group_fair` of a task that is not queued. A CFS sleeper is placed on the old queue as if it woke, and
    /// keeps that distance to the new one's minimum.
    fn change_group(&mut self, id: EntityId, group: GroupId, now: Nanos) {
        // A task never queued has no load yet.
        let attached = self.se(id).avg.last_update_time != 0;
        self.leave_load_avg(id, now);
        let absolute = !self.eevdf && self.se(id).asleep;
        if absolute {
            let rq = self.se(id).cfs_rq as usize;
            self.place_entity_cfs(rq, id, false, now);
            self.make_relative(rq, id);
        }
        self.set_task_group(id, group);
        if attached {
            self.join_load_avg(id, now);
        }
        if absolute {
            self.renormalise(self.se(id).cfs_rq as usize, id);
        }
    }

    pub(super) fn entity_on(&self, group: GroupId, cpu: usize) -> EntityId {
        self.entity_of_queue(self.group_queue(group, CpuId(cpu as u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::GroupShares;

    #[test]
    fn every_file_means_shares() {
        let table = [
            (GroupShares::Weight(100), 1024),
            (GroupShares::Weight(1), 10),
            (GroupShares::Weight(10_000), 102_400),
            (GroupShares::Weight(33), 338),
            (GroupShares::Nice(0), 1024),
            (GroupShares::Nice(19), 15),
            (GroupShares::Nice(-20), 88_761),
            (GroupShares::Shares(0), 2),
            (GroupShares::Shares(1 << 40), 1 << 18),
        ];
        for (written, shares) in table {
            assert_eq!(written.full(), shares << 10, "{written:?}");
        }
    }
}
