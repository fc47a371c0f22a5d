//! `pick_eevdf` of the kernels whose tree is sorted by vruntime, where each node records the earliest deadline below it
//! (2023 series, 6.6).
//!
//! Both searches follow one path down and so depend on the tree's shape where deadlines tie. The first can turn right
//! towards an earlier deadline that is not eligible and miss an eligible one to its left; the second keeps the best
//! subtree it passed. The running entity is outside the tree: in the first search it wins only against a later
//! deadline, in the second it wins every tie except one with the stored subtree.

use super::entity::EntityId;
use super::tree::{Node, Tree};
use schedlab_model::Vruntime;

/// The running entity, if it is eligible, and its deadline.
pub(super) type Running = Option<(EntityId, Vruntime)>;

/// The 2023 series; NIL if no eligible entity was found.
pub(super) fn pick_rfc(tree: &Tree, nodes: &[Node], running: Running, eligible: impl Fn(Vruntime) -> bool) -> EntityId {
    let mut best: Running = None;
    let mut at = tree.root;
    while at.is_some() {
        let node = &nodes[at.index()];
        if !eligible(node.key) {
            at = node.left;
            continue;
        }
        if best.is_none_or(|(_, deadline)| node.value.before(deadline)) {
            best = Some((at, node.value));
            if node.value == node.min_value {
                break;
            }
        }
        let left = node.left.is_some() && nodes[node.left.index()].min_value == node.min_value;
        at = if left { node.left } else { node.right };
    }
    match (best, running) {
        (Some((_, queued)), Some((curr, deadline))) if deadline.before(queued) => curr,
        (Some((queued, _)), _) => queued,
        (None, running) => running.map_or(EntityId::NIL, |(curr, _)| curr),
    }
}

/// 6.6 (`__pick_eevdf`); NIL if no eligible entity was found.
pub(super) fn pick_6_6(tree: &Tree, nodes: &[Node], running: Running, eligible: impl Fn(Vruntime) -> bool) -> EntityId {
    let mut best = running;
    let mut behind = EntityId::NIL;
    let mut at = tree.root;
    while at.is_some() {
        let node = &nodes[at.index()];
        if !eligible(node.key) {
            at = node.left;
            continue;
        }
        if best.is_none_or(|(_, deadline)| node.value.before(deadline)) {
            best = Some((at, node.value));
        }
        if node.left.is_some() {
            let earliest = nodes[node.left.index()].min_value;
            if behind.is_nil() || earliest.before(nodes[behind.index()].min_value) {
                behind = node.left;
            }
            if earliest == node.min_value {
                break;
            }
        }
        if node.value == node.min_value {
            break;
        }
        at = node.right;
    }
    match best {
        None => EntityId::NIL,
        Some((id, deadline)) if behind.is_nil() || deadline.before(nodes[behind.index()].min_value) => id,
        Some(_) => earliest_below(nodes, behind),
    }
}

/// The node whose deadline is the earliest of the subtree.
fn earliest_below(nodes: &[Node], mut at: EntityId) -> EntityId {
    while at.is_some() {
        let node = &nodes[at.index()];
        if node.value == node.min_value {
            return at;
        }
        let left = node.left.is_some() && nodes[node.left.index()].min_value == node.min_value;
        at = if left { node.left } else { node.right };
    }
    EntityId::NIL
}
