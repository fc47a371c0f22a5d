//! Which entity of one queue runs next (`pick_next_entity`, `pick_eevdf`).
//!
//! CFS: the smallest vruntime, unless a buddy is within wakeup granularity of it.
//! EEVDF: the earliest deadline among the eligible; the running entity stays while RUN_TO_PARITY protects it, and loses
//! ties otherwise. 6.6 and the 2023 series search a tree sorted by vruntime ([`super::pick_eevdf_by_vruntime`]), with
//! ties of their own.

use super::average::Average;
use super::cfs_rq::CfsRq;
use super::entities::Entities;
use super::entity::EntityId;
use super::pick_eevdf_by_vruntime::{pick_6_6, pick_rfc, Running};
use crate::features::Feature;
use crate::weight::calc_delta_fair;
use crate::{KernelConfig, SearchRule, TreeKey};

/// Why an entity was picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PickRule {
    // CFS.
    SmallestVruntime,
    LeftmostYielded,
    NextBuddyIsNear,
    LastBuddyIsNear,
    // EEVDF.
    NextBuddyIsEligible,
    OnlyOne,
    Protected,
    EarliestDeadline,
    OnlyEligible,
    NoneEligible,
}

impl PickRule {
    /// The rule as records show it.
    pub fn text(self) -> &'static str {
        match self {
            PickRule::SmallestVruntime => "smallest vruntime",
            PickRule::LeftmostYielded => "leftmost yielded, second is near",
            PickRule::NextBuddyIsNear => "next buddy is near the leftmost",
            PickRule::LastBuddyIsNear => "last buddy is near the leftmost",
            PickRule::NextBuddyIsEligible => "next buddy is eligible",
            PickRule::OnlyOne => "only one",
            PickRule::Protected => "protected until parity or slice end",
            PickRule::EarliestDeadline => "earliest eligible deadline",
            PickRule::OnlyEligible => "only eligible one",
            PickRule::NoneEligible => "no eligible entity: the leftmost",
        }
    }

    /// What a record calls the deadline of the entity that EEVDF picked.
    pub fn compares(self) -> &'static str {
        if self == PickRule::NextBuddyIsEligible {
            "next deadline"
        } else {
            "picked deadline"
        }
    }

    /// The feature that made the difference, if one did.
    pub fn feature(self, config: &KernelConfig) -> Option<Feature> {
        match self {
            PickRule::LastBuddyIsNear => Some(Feature::LastBuddy),
            PickRule::NextBuddyIsEligible => Some(config.rules.buddy_feature),
            PickRule::Protected => Some(Feature::RunToParity),
            _ => None,
        }
    }
}

/// What CFS picked, and the leftmost entity it was compared with.
pub(super) struct CfsPick {
    pub picked: EntityId,
    pub left: EntityId,
    pub rule: PickRule,
}

impl CfsRq {
    /// `pick_next_entity` of CFS, on a queue that is not empty.
    #[inline]
    pub(super) fn pick_next_entity_cfs(&self, entities: &Entities, config: &KernelConfig) -> CfsPick {
        let curr = self.running(entities).unwrap_or(EntityId::NIL);
        let first = self.tree.first();
        let left = leftmost_of(entities, first, curr);
        // Whether an entity is at most one wakeup granularity right of the leftmost.
        let near = |id: EntityId| entities.wakeup_preempt_entity(config, id, left) < 1;
        let (mut picked, mut rule) = (left, PickRule::SmallestVruntime);
        if self.skip == left {
            let second = match left == curr {
                true => first,
                false => leftmost_of(entities, self.tree.rb_next(&entities.nodes, left), curr),
            };
            if second.is_some() && near(second) {
                (picked, rule) = (second, PickRule::LeftmostYielded);
            }
        }
        if self.next.is_some() && near(self.next) {
            (picked, rule) = (self.next, PickRule::NextBuddyIsNear);
        } else if self.last.is_some() && near(self.last) {
            (picked, rule) = (self.last, PickRule::LastBuddyIsNear);
        }
        CfsPick { picked, left, rule }
    }

    /// `pick_next_entity` of EEVDF, on a queue that is not empty; without `protect` neither the running entity's
    /// protection nor the next buddy counts.
    #[inline(always)]
    pub(super) fn pick_next_entity(
        &self,
        entities: &Entities,
        config: &KernelConfig,
        protect: bool,
    ) -> (EntityId, PickRule) {
        let honours = self.next.is_some() && protect && config.has(config.rules.buddy_feature);
        if honours && self.entity_eligible(entities, self.next) {
            return (self.next, PickRule::NextBuddyIsEligible);
        }
        self.pick_eevdf(entities, config, protect)
    }

    /// `pick_eevdf` and the rule that decided.
    #[inline(always)]
    pub(super) fn pick_eevdf(&self, entities: &Entities, config: &KernelConfig, protect: bool) -> (EntityId, PickRule) {
        let (first, running) = (self.tree.first(), self.running_entity(entities));
        if self.nr_competing(config) == 1 {
            return (if running.is_some() { self.curr } else { first }, PickRule::OnlyOne);
        }
        let average = self.average_with(running);
        let curr = running.filter(|curr| average.vruntime_eligible(curr.vruntime));
        if protect && curr.is_some_and(|curr| curr.protect_slice(config)) {
            return (self.curr, PickRule::Protected);
        }
        if config.rules.tree_key == TreeKey::Vruntime {
            let running = curr.map(|curr| (self.curr, curr.deadline));
            let found = self.search_by_vruntime(entities, config.rules.search, running, average);
            return match found.is_some() {
                true => (found, PickRule::EarliestDeadline),
                false => (first, PickRule::NoneEligible),
            };
        }
        let best = self.tree.first_eligible(&entities.nodes, move |v| average.vruntime_eligible(v));
        if best.is_nil() {
            // An entity is always at or left of V; an overflow of the sums could still hide every one.
            return (if running.is_some() { self.curr } else { first }, PickRule::OnlyEligible);
        }
        match curr {
            Some(curr) if curr.deadline.before(entities[best].deadline) => (self.curr, PickRule::EarliestDeadline),
            _ => (best, PickRule::EarliestDeadline),
        }
    }

    #[inline(never)]
    fn search_by_vruntime(
        &self,
        entities: &Entities,
        search: SearchRule,
        running: Running,
        average: Average,
    ) -> EntityId {
        let (tree, nodes) = (&self.tree, &entities.nodes);
        match search {
            SearchRule::OnePass => pick_rfc(tree, nodes, running, |v| average.vruntime_eligible(v)),
            SearchRule::Remembers => pick_6_6(tree, nodes, running, |v| average.vruntime_eligible(v)),
        }
    }
}

impl Entities {
    /// `wakeup_preempt_entity`: 1 if `se` is more than its granularity behind `curr`, 0 if behind, -1 if not.
    #[inline]
    pub fn wakeup_preempt_entity(&self, config: &KernelConfig, curr: EntityId, se: EntityId) -> i32 {
        let lead = self[curr].vruntime.since(self[se].vruntime);
        if lead <= 0 {
            -1
        } else {
            i32::from(lead > self.wakeup_gran(config, se) as i64)
        }
    }

    /// `wakeup_gran`.
    #[inline]
    pub fn wakeup_gran(&self, config: &KernelConfig, se: EntityId) -> u64 {
        calc_delta_fair(config.knobs.wakeup_granularity, &self[se].h_load)
    }
}

/// The entity further left; the first, if there is one, on a tie.
#[inline]
fn leftmost_of(entities: &Entities, first: EntityId, curr: EntityId) -> EntityId {
    let curr_before = || curr.is_some() && entities[curr].vruntime.before(entities[first].vruntime);
    if first.is_nil() || curr_before() {
        curr
    } else {
        first
    }
}
