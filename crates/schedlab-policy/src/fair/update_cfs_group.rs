//! How a group's weight is divided among CPUs (`update_cfs_group`, `calc_group_shares`).
//!
//! With the load of a queue, `load = max(weight queued now, load_avg)`, and of its group elsewhere:
//! `weight = shares * load / (tg.load_avg - own contribution + load)`, at least 2 and at most shares.

use super::entity::EntityId;
use super::queues::Queues;
use crate::weight::LoadWeight;
use schedlab_model::{rarely, Nanos};

impl Queues {
    /// `update_cfs_group`: a group's entity takes the weight that its queue's part of the group's load deserves.
    #[inline(never)]
    pub fn update_cfs_group(&mut self, id: EntityId, now: Nanos) {
        let Some(below) = self.arena.entities[id].my_q else { return };
        let below = below as usize;
        if self.config.rules.keeps_empty_weight && self.arena.rqs[below].load.weight == 0 {
            return;
        }
        if self.throttled_hierarchy(below) {
            return;
        }
        let shares = self.arena.calc_group_shares(&self.config.rules.pelt, below);
        self.arena.group_loads.push(self.arena.rqs[below].group, false);
        if self.arena.entities[id].load.weight != shares || self.config.rules.reweights_unchanged {
            self.reweight_entity(self.arena.entities[id].rq(), id, shares, now);
        }
    }

    /// `reweight_entity`: charges first where the version does, then changes the weight on the queue or off it. From
    /// 7.3 on nothing competes by it.
    fn reweight_entity(&mut self, rq: usize, id: EntityId, weight: u64, now: Nanos) {
        let load = LoadWeight::of_sum(weight).dividing(self.config.rules.delta_divides);
        self.arena.reweight_load_avg(&self.config.rules.pelt, id, load);
        let (q, se) = (&mut self.arena.rqs[rq], &mut self.arena.entities[id]);
        if rarely(self.config.rules.flat_hierarchy) {
            let old = std::mem::replace(&mut se.load, load).weight;
            if se.on_rq {
                q.load = LoadWeight::of_sum(q.load.weight - old + weight);
            }
            return;
        }
        if !se.on_rq {
            se.load = load;
            return se.rescale(&self.config, load);
        }
        if self.arena.rqs[rq].curr == id || self.config.rules.reweight_charges {
            self.update_curr(rq, now);
        }
        self.arena.rqs[rq].reweight_entity(&mut self.arena.entities, &self.config, id, load);
    }
}
