//! What checkers and reports read: a queue's sums, kept and recomputed, V, lags.

use super::entity::EntityId;
use super::Fair;
use crate::group_id::GroupId;
use schedlab_model::{CpuId, TaskId, Vruntime};

/// The sums of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sums {
    /// Entities, the running one included.
    pub nr_running: u32,
    /// Idle entities, the running one included.
    pub idle_nr_running: u32,
    /// Tasks below.
    pub h_nr_running: u32,
    /// Idle tasks below.
    pub idle_h_nr_running: u32,
    /// Tasks below whose dequeue is delayed.
    pub h_nr_delayed: u32,
    /// Sum of weights at full resolution, the running one included.
    pub load: u64,
    /// Sum of (v - v0) * w without the running one; 0 under CFS.
    pub avg_vruntime: i64,
    /// Sum of w, as the version takes weights, without the running one; 0 under CFS.
    pub avg_load: i64,
}

impl Fair {
    /// The sums of a CPU's own queue as they are kept.
    #[must_use]
    pub fn sums(&self, cpu: CpuId) -> Sums {
        self.group_sums(GroupId::ROOT, cpu)
    }

    /// The same sums from scratch, over whoever is in the tree and running.
    #[must_use]
    pub fn recompute(&self, cpu: CpuId) -> Sums {
        self.recompute_group(GroupId::ROOT, cpu)
    }

    /// The sums of a group's queue as they are kept.
    #[must_use]
    pub fn group_sums(&self, group: GroupId, cpu: CpuId) -> Sums {
        let q = self.group_rq(group, cpu);
        Sums {
            nr_running: q.nr_running,
            idle_nr_running: q.idle_nr_running,
            h_nr_running: q.h_nr_running,
            idle_h_nr_running: q.idle_h_nr_running,
            h_nr_delayed: q.h_nr_delayed,
            load: q.load.weight,
            avg_vruntime: q.avg_vruntime,
            avg_load: q.avg_load,
        }
    }

    /// The same from scratch; counts of tasks below come from the queues of the level below.
    #[must_use]
    pub fn recompute_group(&self, group: GroupId, cpu: CpuId) -> Sums {
        let rq = self.group_queue(group, cpu);
        let q = &self.rqs[rq];
        let mut sums = Sums::default();
        for id in self.queued_entities(rq).chain(self.running(rq)) {
            let se = self.se(id);
            sums.nr_running += 1;
            sums.idle_nr_running += u32::from(se.is_idle());
            sums.load += se.load.weight;
            match se.my_q {
                None => {
                    sums.h_nr_running += 1;
                    sums.idle_h_nr_running += u32::from(se.is_idle());
                    sums.h_nr_delayed += u32::from(se.sched_delayed);
                }
                Some(below) => {
                    let below = &self.rqs[below as usize];
                    sums.h_nr_running += below.h_nr_running;
                    sums.idle_h_nr_running += if below.idle { below.h_nr_running } else { below.idle_h_nr_running };
                    sums.h_nr_delayed += below.h_nr_delayed;
                }
            }
            if self.eevdf && q.curr != id {
                let weight = q.avg_weight(se.load);
                sums.avg_vruntime = sums.avg_vruntime.wrapping_add(q.key(se.vruntime).wrapping_mul(weight));
                sums.avg_load += weight;
            }
        }
        sums
    }

    /// V, the weighted mean vruntime of a CPU's own queue; meaningful under EEVDF.
    #[must_use]
    pub fn avg_vruntime(&self, cpu: CpuId) -> Vruntime {
        self.average(cpu.index()).vruntime()
    }

    /// V of a group's queue on a CPU.
    #[must_use]
    pub fn group_average(&self, group: GroupId, cpu: CpuId) -> Vruntime {
        self.average(self.group_queue(group, cpu)).vruntime()
    }

    /// Virtual lag: V - v, unclamped, of a queued task; the saved one of another. 0 under CFS.
    #[must_use]
    pub fn lag(&self, task: TaskId) -> i64 {
        let se = self.entity(task);
        match (self.eevdf, se.on_rq) {
            (false, _) => 0,
            (true, true) => self.average(se.cfs_rq as usize).vruntime().since(se.vruntime),
            (true, false) => se.vlag,
        }
    }

    /// The lag the task would keep if it left now.
    #[must_use]
    pub fn clamped_lag(&self, task: TaskId) -> i64 {
        let (rq, queued) = (self.entity(task).cfs_rq as usize, self.entity(task).on_rq);
        if self.eevdf && queued {
            self.entity_lag(rq, EntityId::of(task), self.average(rq).vruntime())
        } else {
            self.lag(task)
        }
    }

    /// The bound of [`Fair::clamped_lag`].
    #[must_use]
    pub fn lag_limit(&self, task: TaskId) -> i64 {
        self.entity_lag_limit(self.entity(task).cfs_rq as usize, EntityId::of(task))
    }

    /// Whether a queued task is owed service.
    #[must_use]
    pub fn eligible(&self, task: TaskId) -> bool {
        let se = self.entity(task);
        !self.eevdf || self.average(se.cfs_rq as usize).eligible(se.vruntime)
    }
}
