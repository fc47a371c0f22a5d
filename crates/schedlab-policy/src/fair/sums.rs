//! The sums of a queue, both as maintained and recomputed from scratch, for checkers.

use super::entity::Entity;
use super::view::View;
use crate::group_id::GroupId;
use schedlab_model::CpuId;

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

impl View<'_> {
    /// The sums of a group's queue as they are kept.
    #[must_use]
    pub fn sums(&self, group: GroupId, cpu: CpuId) -> Sums {
        let q = &self.arena.rqs[self.arena.group_queue(group, cpu)];
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

    /// The same from scratch: the weights and tasks of the entities that count on the queue, and the places in virtual
    /// time of those that compete on it; counts of tasks below come from the queues of the level below.
    #[must_use]
    pub fn recomputed_sums(&self, group: GroupId, cpu: CpuId) -> Sums {
        let (arena, rq) = (self.arena, self.arena.group_queue(group, cpu));
        let (q, entities) = (&arena.rqs[rq], &arena.entities);
        let mut sums = Sums::default();
        match self.config.rules.flat_hierarchy {
            true => {
                entities.all().filter(|se| se.on_rq && se.rq() == rq).for_each(|se| self.count_member(se, &mut sums))
            }
            false => {
                let members = q.tree.iter(&entities.nodes).chain(q.running(entities));
                members.for_each(|id| self.count_member(&entities[id], &mut sums));
            }
        }
        for se in q.tree.iter(&entities.nodes).map(|id| &entities[id]).filter(|_| self.config.is_eevdf()) {
            let weight = q.avg_vruntime_weight(se.h_load);
            sums.avg_vruntime = sums.avg_vruntime.wrapping_add(q.key(se.vruntime).wrapping_mul(weight));
            sums.avg_load += weight;
        }
        sums
    }

    fn count_member(&self, se: &Entity, sums: &mut Sums) {
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
                let below = &self.arena.rqs[below as usize];
                sums.h_nr_running += below.h_nr_running;
                sums.idle_h_nr_running += if below.idle { below.h_nr_running } else { below.idle_h_nr_running };
                sums.h_nr_delayed += below.h_nr_delayed;
            }
        }
    }
}
