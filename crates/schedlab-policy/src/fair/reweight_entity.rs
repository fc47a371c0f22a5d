//! The effect of a new weight on an entity of one queue (`reweight_entity`).
//!
//! A queued entity whose weight changes from w to w' keeps v under CFS and in the 2023 series (EEVDF then loses or
//! invents lag). 6.6 stretches the request: `d = v + (d - v) w/w'`. From 6.7 on the lag in service, `w * vl`, is kept,
//! so virtual spans scale by `w/w'`: 6.12 moves the entity about V, `v = V - vl w/w'` and `d = V + (d - V) w/w'`; 6.7
//! and 6.8 move a queued entity about the V of the others, and its lag has no limit; 6.14 and 6.18 place it anew with
//! the rescaled lag, as if it joined; 6.18 stable rescales the rest of its protection too; 7.x is 6.12 with vprot.

use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::{Entity, EntityId};
use super::place_entity::{relative, rescaled};
use super::protect_slice::vprot_in_vlag;
use crate::flags::Enqueue;
use crate::weight::LoadWeight;
use crate::{KernelConfig, Protection, Reweight, ZeroPoint};
use schedlab_model::Vruntime;

impl CfsRq {
    /// `reweight_entity` of an entity that is queued or running, after the charge.
    pub(super) fn reweight_entity(
        &mut self,
        entities: &mut Entities,
        config: &KernelConfig,
        id: EntityId,
        load: LoadWeight,
    ) {
        let old = entities[id].load.weight;
        match config.rules.reweight {
            Reweight::Nothing | Reweight::Deadline => self.reweight_in_place(entities, config, id, load),
            Reweight::AroundOthers { .. } | Reweight::AroundAverage => self.reweight_eevdf(entities, config, id, load),
            Reweight::Replaced { keeps_protection } => {
                self.reweight_replaced(entities, config, id, load, keeps_protection);
            }
        }
        entities[id].load = load;
        self.load = LoadWeight::of_sum(self.load.weight - old + load.weight);
        let moved = match config.rules.reweight {
            Reweight::Nothing | Reweight::Deadline => false,
            Reweight::AroundOthers { updates_min } => self.curr != id || updates_min,
            Reweight::AroundAverage | Reweight::Replaced { .. } => true,
        };
        if moved && config.rules.zero == ZeroPoint::Minimum {
            self.update_min_vruntime(entities, config);
        }
    }

    /// CFS, the 2023 series and 6.6: the entity stays where it is; 6.6 stretches its request.
    fn reweight_in_place(&mut self, entities: &mut Entities, config: &KernelConfig, id: EntityId, load: LoadWeight) {
        let queued = config.is_eevdf() && self.curr != id;
        if queued {
            self.avg_vruntime_sub(&entities[id]);
        }
        let se = &mut entities[id];
        let old = std::mem::replace(&mut se.h_load, load);
        if config.rules.reweight == Reweight::Deadline {
            se.deadline = se.vruntime.plus(rescaled(se.deadline.since(se.vruntime), old, load));
            if queued {
                let deadline = se.deadline;
                entities.nodes[id.index()].value = deadline;
                self.tree.refresh(&mut entities.nodes, id);
            }
        }
        if queued {
            self.avg_vruntime_add(&entities[id]);
        }
    }

    /// `reweight_eevdf` (6.7 to 6.12), and 7.x, which also rescales the protection that is left. It changes the weight
    /// by which the entity competes.
    pub(super) fn reweight_eevdf(
        &mut self,
        entities: &mut Entities,
        config: &KernelConfig,
        id: EntityId,
        load: LoadWeight,
    ) {
        let curr = self.curr == id;
        let among_others = matches!(config.rules.reweight, Reweight::AroundOthers { .. });
        if !curr && among_others {
            self.__dequeue_entity(entities, config, id);
        }
        let (v, _) = self.avg_vruntime(entities, config);
        let vlag = match among_others {
            true => v.since(entities[id].vruntime),
            false => self.entity_lag(entities, config, id, v),
        };
        if !curr && !among_others {
            self.__dequeue_entity(entities, config, id);
        }
        let vprot = matches!(config.rules.protection, Protection::Vprot { .. });
        let se = &mut entities[id];
        let protected = vprot && curr && se.before_vprot(false);
        let old = std::mem::replace(&mut se.h_load, load);
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
            self.__enqueue_entity(entities, config, id);
        }
    }

    /// 6.14 and 6.18: out and in again. The running entity still counts in V and W while it is placed, with its new
    /// weight.
    fn reweight_replaced(
        &mut self,
        entities: &mut Entities,
        config: &KernelConfig,
        id: EntityId,
        load: LoadWeight,
        keeps_protection: bool,
    ) {
        self.update_entity_lag(entities, config, id);
        let (curr, in_vlag) = (self.curr == id, vprot_in_vlag(config));
        let se = &mut entities[id];
        // Where the lag was just saved over it, none is found to be left.
        let left =
            (keeps_protection && curr && se.before_vprot(in_vlag)).then(|| se.vprot_in(in_vlag).since(se.vruntime));
        let old = se.h_load;
        se.deadline = relative(se.deadline, se.vruntime);
        se.rel_deadline = true;
        if !curr {
            self.__dequeue_entity(entities, config, id);
        }
        entities[id].rescale(config, load);
        self.place_entity(entities, config, id, Enqueue::default(), self.nr_running - 1);
        if let Some(left) = left {
            let se = &mut entities[id];
            se.set_vprot(se.vruntime.plus(rescaled(left, old, load)), in_vlag);
        }
        if !curr {
            self.__enqueue_entity(entities, config, id);
        }
    }
}

impl Entity {
    /// Sets the weight of an entity that is not on the queue, or has been removed from it: EEVDF rescales the saved lag
    /// so that `w * vl` stays the same, and from 6.14 on a relative deadline likewise.
    pub(super) fn rescale(&mut self, config: &KernelConfig, load: LoadWeight) {
        let old = std::mem::replace(&mut self.h_load, load);
        if config.is_eevdf() {
            self.vlag = rescaled(self.vlag, old, load);
        }
        if config.rules.reweight_deadline && self.rel_deadline {
            self.deadline = Vruntime(rescaled(self.deadline.0 as i64, old, load) as u64);
        }
    }

    /// `reweight_task_fair` of a task off the queue: from 7.3 on it competes by the weight from its next enqueue on.
    #[inline]
    pub(super) fn reweight_task(&mut self, config: &KernelConfig, load: LoadWeight) {
        self.load = load;
        if !config.rules.flat_hierarchy {
            self.rescale(config, load);
        }
    }
}
