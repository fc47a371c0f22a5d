//! A node of a tree and the summary of the subtree below it.

use super::super::entity::EntityId;
use crate::{GroupSlice, LagLimit, Protection, Rules};
use schedlab_model::{Nanos, Vruntime};

/// What nodes record of the slices below them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::fair) enum Slices {
    /// Nothing.
    None,
    /// The shortest, maintained by callbacks that copy one field only, the smallest value (RB_DECLARE_CALLBACKS, 6.12
    /// to 6.18): a node that rises or replaces another keeps the minimum of its old subtree until an entity below it is
    /// inserted or erased.
    Stale,
    /// The longest, maintained in the same way (6.18.44). `__enqueue_entity` does not set it for the new node, which
    /// therefore keeps the value from its last place in a tree while it is a leaf.
    StaleLongest,
    /// The shortest and the longest (7.x).
    Exact,
}

impl Slices {
    /// What a kernel needs: protection or lag bounded by other entities' slices, and from 6.12 on the slices of groups.
    pub fn read_by(rules: &Rules, groups: bool) -> Self {
        let bounds = matches!(rules.protection, Protection::Vprot { .. }) || rules.lag_limit == LagLimit::LongestSlice;
        match bounds || groups && rules.group_slice != GroupSlice::Base {
            false => Slices::None,
            true if !rules.stale_slices => Slices::Exact,
            true if rules.lag_limit == LagLimit::LongestSlice => Slices::StaleLongest,
            true => Slices::Stale,
        }
    }

    /// Whether nodes may hold values that are no longer true.
    #[inline]
    pub(super) fn stale(self) -> bool {
        matches!(self, Slices::Stale | Slices::StaleLongest)
    }
}

/// One entity's place in a tree: 64 bytes, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(in crate::fair) struct Node {
    pub key: Vruntime,
    pub value: Vruntime,
    pub min_value: Vruntime,
    pub slice: Nanos,
    pub(super) min_slice: Nanos,
    pub(super) max_slice: Nanos,
    pub(super) parent: EntityId,
    pub left: EntityId,
    pub right: EntityId,
    pub(super) red: bool,
}

impl Default for Node {
    fn default() -> Self {
        let (zero, nil) = (Vruntime(0), EntityId::NIL);
        let (key, value, min_value) = (zero, zero, zero);
        let (parent, left, right) = (nil, nil, nil);
        Node { key, value, min_value, slice: 0, min_slice: 0, max_slice: 0, parent, left, right, red: false }
    }
}

impl Node {
    /// Its links to other entities.
    pub fn links(&mut self) -> [&mut EntityId; 3] {
        [&mut self.parent, &mut self.left, &mut self.right]
    }
}

/// `rb_next`: the in-order successor, or NIL.
pub(super) fn rb_next(nodes: &[Node], id: EntityId) -> EntityId {
    let mut at = nodes[id.index()].right;
    if at.is_some() {
        while nodes[at.index()].left.is_some() {
            at = nodes[at.index()].left;
        }
        return at;
    }
    let mut below = id;
    at = nodes[id.index()].parent;
    while at.is_some() && nodes[at.index()].right == below {
        below = at;
        at = nodes[at.index()].parent;
    }
    at
}

/// Computes a node's minima and maxima from its own values and its children's; whether anything changed.
#[inline(always)]
pub(super) fn recompute(nodes: &mut [Node], id: EntityId, slices: Slices) -> bool {
    let node = &nodes[id.index()];
    let mut value = node.value;
    for child in [node.left, node.right] {
        if child.is_some() {
            value = value.min(nodes[child.index()].min_value);
        }
    }
    let node = &mut nodes[id.index()];
    let changed = node.min_value != value;
    node.min_value = value;
    slices != Slices::None && recompute_slices(nodes, id, slices) || changed
}

#[inline(never)]
fn recompute_slices(nodes: &mut [Node], id: EntityId, slices: Slices) -> bool {
    let node = &nodes[id.index()];
    let (mut shortest, mut longest) = (node.slice, node.slice);
    for child in [node.left, node.right] {
        if child.is_some() {
            shortest = shortest.min(nodes[child.index()].min_slice);
            longest = longest.max(nodes[child.index()].max_slice);
        }
    }
    let node = &mut nodes[id.index()];
    let changed = node.min_slice != shortest || slices != Slices::Stale && node.max_slice != longest;
    node.min_slice = shortest;
    node.max_slice = longest;
    changed
}

/// Recomputes from a node upwards until nothing changes any more.
#[inline]
pub(super) fn propagate(nodes: &mut [Node], mut id: EntityId, slices: Slices) {
    while id.is_some() && recompute(nodes, id, slices) {
        id = nodes[id.index()].parent;
    }
}
