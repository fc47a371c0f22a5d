//! What checkers and reports read: a queue's sums, kept and recomputed, V, lags.

use super::entity::EntityId;
use super::Fair;
use schedlab_model::{CpuId, TaskId, Vruntime};

/// The sums of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sums {
    /// Entities, the running one included.
    pub nr_running: u32,
    /// Idle entities, the running one included.
    pub idle_nr_running: u32,
    /// Sum of weights at full resolution, the running one included.
    pub load: u64,
    /// Sum of (v - v0) * w without the running one; 0 under CFS.
    pub avg_vruntime: i64,
    /// Sum of w, as the version takes weights, without the running one; 0 under CFS.
    pub avg_load: i64,
}

impl Fair {
    /// The sums as they are kept.
    #[must_use]
    pub fn sums(&self, cpu: CpuId) -> Sums {
        let q = self.rq(cpu);
        Sums {
            nr_running: q.nr_running,
            idle_nr_running: q.idle_nr_running,
            load: q.load.weight,
            avg_vruntime: q.avg_vruntime,
            avg_load: q.avg_load,
        }
    }

    /// The same sums from scratch, over whoever is in the tree and running.
    #[must_use]
    pub fn recompute(&self, cpu: CpuId) -> Sums {
        let q = self.rq(cpu);
        let mut sums = Sums::default();
        for id in self.queued(cpu).map(EntityId::of).chain(self.running(cpu.index())) {
            let se = self.se(id);
            sums.nr_running += 1;
            sums.idle_nr_running += u32::from(se.is_idle());
            sums.load += se.load.weight;
            if self.eevdf && q.curr != id {
                let weight = q.avg_weight(se.load);
                sums.avg_vruntime = sums.avg_vruntime.wrapping_add(q.key(se.vruntime).wrapping_mul(weight));
                sums.avg_load += weight;
            }
        }
        sums
    }

    /// V, the weighted mean vruntime of a queue; meaningful under EEVDF.
    #[must_use]
    pub fn avg_vruntime(&self, cpu: CpuId) -> Vruntime {
        self.average(cpu.index()).vruntime()
    }

    /// Virtual lag: V - v, unclamped, of a queued task; the saved one of another. 0 under CFS.
    #[must_use]
    pub fn lag(&self, task: TaskId) -> i64 {
        let se = self.entity(task);
        match (self.eevdf, se.on_rq) {
            (false, _) => 0,
            (true, true) => self.avg_vruntime(se.cpu).since(se.vruntime),
            (true, false) => se.vlag,
        }
    }

    /// The lag the task would keep if it left now.
    #[must_use]
    pub fn clamped_lag(&self, task: TaskId) -> i64 {
        let se = self.entity(task);
        if self.eevdf && se.on_rq {
            self.entity_lag(se.cpu.index(), EntityId::of(task), self.avg_vruntime(se.cpu))
        } else {
            self.lag(task)
        }
    }

    /// The bound of [`Fair::clamped_lag`].
    #[must_use]
    pub fn lag_limit(&self, task: TaskId) -> i64 {
        self.entity_lag_limit(self.entity(task).cpu.index(), EntityId::of(task))
    }

    /// Whether a queued task is owed service.
    #[must_use]
    pub fn eligible(&self, task: TaskId) -> bool {
        let se = self.entity(task);
        !self.eevdf || self.average(se.cpu.index()).eligible(se.vruntime)
    }
}
