//! How a group's weight is divided among CPUs (`calc_group_shares`, `update_cfs_group`) and what a new weight does to an
//! entity (`reweight_entity`).
//!
//! With the load of a queue, `load = max(weight queued now, load_avg)`, and of its group elsewhere:
//! `weight = shares * load / (tg.load_avg - own contribution + load)`, at least 2 and at most shares.
//!
//! A queued entity whose weight changes from w to w' keeps v under CFS and in the 2023 series (EEVDF then loses or
//! invents lag). 6.6 stretches the request: `d = v + (d - v) w/w'`. 6.12 keeps lag: `v = V - vl w/w'`,
//! `d = V + (d - V) w/w'`. 6.14 and 6.18 place it anew with the rescaled lag, as if it joined; 6.18 stable rescales what is
//! left of its protection. 7.x is 6.12 with vprot.

use super::entity::EntityId;
use super::place::{relative, rescaled};
use super::{Enqueue, Fair};
use crate::pelt::calc_group_shares;
use crate::weight::LoadWeight;
use crate::{Protection, Reweight, ZeroPoint};
use schedlab_model::{Nanos, Vruntime};

impl Fair {
    /// `calc_group_shares`: the weight of a group's entity on one CPU.
    pub(super) fn calc_group_shares(&self, rq: usize) -> u64 {
        let q = &self.rqs[rq];
        let group = self.group(q.group);
        calc_group_shares(group.shares, q.load.weight, &q.pelt, &group.load)
    }

    /// `se_update_runnable` of a group's entity.
    pub(super) fn update_runnable(&mut self, id: EntityId) {
        if let Some(below) = self.se(id).my_q {
            self.se_mut(id).runnable = self.rqs[below as usize].runnable(&self.rules.pelt) as u32;
        }
    }

    /// `update_cfs_group`.
    #[inline(never)]
    pub(super) fn update_cfs_group(&mut self, id: EntityId, now: Nanos) {
        let Some(below) = self.se(id).my_q else { return };
        let below = below as usize;
        if self.rules.keeps_empty_weight && self.rqs[below].load.weight == 0 {
            return;
        }
        if self.throttled_hierarchy(below) {
            return;
        }
        let shares = self.calc_group_shares(below);
        if self.se(id).load.weight != shares || self.rules.reweights_unchanged {
            self.reweight_entity(self.se(id).cfs_rq as usize, id, shares, now);
        }
    }

    /// `reweight_entity`.
    fn reweight_entity(&mut self, rq: usize, id: EntityId, weight: u64, now: Nanos) {
        let load = LoadWeight::of_sum(weight).dividing(self.rules.delta_divides);
        self.reweight_load_avg(id, load);
        if !self.se(id).on_rq {
            return self.rescale_entity(id, load);
        }
        let old = self.se(id).load.weight;
        let curr = self.rqs[rq].curr == id;
        if curr || self.rules.reweight_charges {
            self.update_curr_rq(rq, now);
        }
        match self.rules.reweight {
            Reweight::Nothing | Reweight::Deadline => self.reweight_in_place(rq, id, load),
            Reweight::AroundAverage => self.reweight_around_average(rq, id, load),
            Reweight::Replaced { keeps_protection } => self.reweight_replaced(rq, id, load, keeps_protection),
        }
        let q = &mut self.rqs[rq];
        q.load = LoadWeight::of_sum(q.load.weight - old + weight);
        let moved = !matches!(self.rules.reweight, Reweight::Nothing | Reweight::Deadline);
        if moved && self.rules.zero == ZeroPoint::Minimum {
            self.update_min_vruntime(rq);
        }
    }

    /// CFS, the 2023 series and 6.6: the entity stays where it is; 6.6 stretches its request.
    fn reweight_in_place(&mut self, rq: usize, id: EntityId, load: LoadWeight) {
        let queued = self.eevdf && self.rqs[rq].curr != id;
        if queued {
            self.rqs[rq].avg_vruntime_sub(&self.entities[id.index()]);
        }
        let stretches = self.rules.reweight == Reweight::Deadline;
        let se = self.se_mut(id);
        let old = std::mem::replace(&mut se.load, load);
        if stretches {
            se.deadline = se.vruntime.plus(rescaled(se.deadline.since(se.vruntime), old, load));
            if queued {
                let deadline = se.deadline;
                self.nodes[id.index()].value = deadline;
                self.rqs[rq].tree.refresh(&mut self.nodes, id);
            }
        }
        if queued {
            self.rqs[rq].avg_vruntime_add(&self.entities[id.index()]);
        }
    }

    /// 6.12 (`reweight_eevdf`) and 7.x, which also rescales the protection that is left.
    fn reweight_around_average(&mut self, rq: usize, id: EntityId, load: LoadWeight) {
        let (v, _) = self.avg_vruntime_moving(rq);
        let curr = self.rqs[rq].curr == id;
        let vlag = self.entity_lag(rq, id, v);
        if !curr {
            self.tree_erase(rq, id);
        }
        let vprot = matches!(self.rules.protection, Protection::Vprot { .. });
        let protected = vprot && curr && self.se(id).before_vprot(false);
        let se = self.se_mut(id);
        let old = std::mem::replace(&mut se.load, load);
        let vlag = rescaled(vlag, old, load);
        if vprot {
            // 6.12 has its marker there.
            se.vlag = vlag;
        }
        se.vruntime = v.plus(vlag.wrapping_neg());
        se.deadline = v.plus(rescaled(se.deadline.since(v), old, load));
        if protected {
            se.vprot = v.plus(rescaled(se.vprot.since(v), old, load));
        }
        if !curr {
            self.tree_insert(rq, id);
        }
    }

    /// 6.14 and 6.18: out and in again. The running one still counts in V and W while it is placed, with its new weight.
    fn reweight_replaced(&mut self, rq: usize, id: EntityId, load: LoadWeight, keeps_protection: bool) {
        self.update_entity_lag(rq, id);
        let (curr, in_vlag) = (self.rqs[rq].curr == id, self.vprot_in_vlag());
        let se = self.se_mut(id);
        // Where the lag was just saved over it, this finds none left.
        let left = (keeps_protection && curr && se.before_vprot(in_vlag))
            .then(|| se.protected_until(in_vlag).since(se.vruntime));
        let old = se.load;
        se.deadline = relative(se.deadline, se.vruntime);
        se.rel_deadline = true;
        self.rqs[rq].nr_running -= 1;
        if !curr {
            self.tree_erase(rq, id);
        }
        self.rescale_entity(id, load);
        self.place_entity_eevdf(rq, id, Enqueue::default());
        if let Some(left) = left {
            let se = self.se_mut(id);
            se.protect_until(se.vruntime.plus(rescaled(left, old, load)), in_vlag);
        }
        if !curr {
            self.tree_insert(rq, id);
        }
        self.rqs[rq].nr_running += 1;
    }

    /// A new weight for an entity off the queue, or taken off it: EEVDF rescales the saved lag, so that `w * vl` stays;
    /// from 6.14 on a relative deadline likewise.
    pub(super) fn rescale_entity(&mut self, id: EntityId, load: LoadWeight) {
        let (eevdf, deadline_too) = (self.eevdf, self.rules.reweight_deadline);
        let se = self.se_mut(id);
        let old = std::mem::replace(&mut se.load, load);
        if eevdf {
            se.vlag = rescaled(se.vlag, old, load);
        }
        if deadline_too && se.rel_deadline {
            se.deadline = Vruntime(rescaled(se.deadline.0 as i64, old, load) as u64);
        }
    }
}
