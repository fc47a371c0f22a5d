//! An arena red-black tree with the shape the kernel's would have, each node remembering minima of its subtree.
//!
//! Follows lib/rbtree.c and include/linux/rbtree_augmented.h (equal in every modelled version) step for step, because
//! the picks of some versions depend on the shape: a new node goes right of its equals, an erased node with two
//! children is replaced by its successor. Links live in one array indexed by entity, so queueing allocates nothing.

use super::entity::EntityId;
use schedlab_model::{Nanos, Vruntime};

/// A tree's handle; the nodes are in an array that all trees of a kernel share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub(super) root: EntityId,
    first: EntityId,
    len: u32,
    /// Shortest and longest slices are kept (6.18 and later read them, groups from 6.12 on).
    slices: bool,
}

/// One entity's place in a tree: 64 bytes, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Node {
    pub(super) key: Vruntime,
    pub(super) value: Vruntime,
    pub(super) min_value: Vruntime,
    slice: Nanos,
    min_slice: Nanos,
    max_slice: Nanos,
    parent: EntityId,
    pub(super) left: EntityId,
    pub(super) right: EntityId,
    red: bool,
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
    /// Where it names entities.
    pub fn links(&mut self) -> [&mut EntityId; 3] {
        [&mut self.parent, &mut self.left, &mut self.right]
    }

    /// A slice changed in place.
    pub fn set_slice(&mut self, slice: Nanos) {
        self.slice = slice;
    }
}

impl Tree {
    /// An empty tree.
    pub fn new(slices: bool) -> Self {
        Tree { root: EntityId::NIL, first: EntityId::NIL, len: 0, slices }
    }

    /// From now on nodes remember the shortest and longest slice below them.
    pub fn keep_slices(&mut self, nodes: &mut [Node]) {
        self.slices = true;
        // In order, each up to the root: whoever is passed last has both subtrees complete.
        let mut at = self.first;
        while at.is_some() {
            let mut up = at;
            while up.is_some() {
                recompute(nodes, up, true);
                up = nodes[up.index()].parent;
            }
            at = next(nodes, at);
        }
    }

    /// A queued node's value or slice changed in place: what the nodes above remember follows (`*_cb_propagate`).
    pub fn refresh(&self, nodes: &mut [Node], id: EntityId) {
        propagate(nodes, id, self.slices);
    }

    /// Where it names entities.
    pub fn links(&mut self) -> [&mut EntityId; 2] {
        [&mut self.root, &mut self.first]
    }

    /// The leftmost node, or NIL (`rb_first_cached`).
    #[inline]
    pub fn first(&self) -> EntityId {
        self.first
    }

    /// Adds an entity that is in no tree (`rb_add_augmented_cached`).
    #[inline]
    pub fn insert(&mut self, nodes: &mut [Node], id: EntityId, key: Vruntime, value: Vruntime, slice: Nanos) {
        let (mut parent, mut link, mut leftmost, mut left) = (EntityId::NIL, self.root, true, false);
        while link.is_some() {
            let node = &mut nodes[link.index()];
            // Minima only shrink and maxima only grow on the way of an insertion, so they are updated on the way down.
            node.min_value = node.min_value.min(value);
            if self.slices {
                node.min_slice = node.min_slice.min(slice);
                node.max_slice = node.max_slice.max(slice);
            }
            parent = link;
            left = key.before(node.key);
            leftmost &= left;
            link = if left { node.left } else { node.right };
        }
        let nil = EntityId::NIL;
        let (min_value, min_slice, max_slice) = (value, slice, slice);
        nodes[id.index()] =
            Node { key, value, min_value, slice, min_slice, max_slice, parent, left: nil, right: nil, red: true };
        self.len += 1;
        if leftmost {
            self.first = id;
        }
        if parent.is_nil() {
            self.root = id;
            nodes[id.index()].red = false;
            return;
        }
        let above = &mut nodes[parent.index()];
        if left {
            above.left = id;
        } else {
            above.right = id;
        }
        if above.red {
            self.insert_fixup(nodes, id, parent);
        }
    }

    /// Removes an entity that is in this tree (`rb_erase_augmented_cached`).
    #[inline]
    pub fn erase(&mut self, nodes: &mut [Node], id: EntityId) {
        self.len -= 1;
        if self.len == 0 {
            self.root = EntityId::NIL;
            self.first = EntityId::NIL;
            return;
        }
        if self.first == id {
            self.first = next(nodes, id);
        }
        self.erase_linked(nodes, id);
    }

    /// In-order successor of a node, or NIL (`rb_next`).
    pub fn next(&self, nodes: &[Node], id: EntityId) -> EntityId {
        next(nodes, id)
    }

    /// The smallest value in the tree, if it has any node.
    #[inline]
    pub fn min_value(&self, nodes: &[Node]) -> Option<Vruntime> {
        self.root.is_some().then(|| nodes[self.root.index()].min_value)
    }

    /// The shortest slice in the tree; the largest number if it is empty.
    #[inline]
    pub fn min_slice(&self, nodes: &[Node]) -> Nanos {
        if self.root.is_some() {
            nodes[self.root.index()].min_slice
        } else {
            Nanos::MAX
        }
    }

    /// The longest slice in the tree, or 0.
    #[inline]
    pub fn max_slice(&self, nodes: &[Node]) -> Nanos {
        if self.root.is_some() {
            nodes[self.root.index()].max_slice
        } else {
            0
        }
    }

    /// The first node in order whose value passes `eligible`, found by pruning on subtree minima: `eligible` must hold
    /// for every value before one it holds for.
    #[inline]
    pub fn first_eligible(&self, nodes: &[Node], eligible: impl Fn(Vruntime) -> bool) -> EntityId {
        if self.first.is_some() && eligible(nodes[self.first.index()].value) {
            return self.first;
        }
        let mut at = self.root;
        while at.is_some() {
            let node = &nodes[at.index()];
            if node.left.is_some() && eligible(nodes[node.left.index()].min_value) {
                at = node.left;
                continue;
            }
            if eligible(node.value) {
                return at;
            }
            at = node.right;
        }
        EntityId::NIL
    }

    fn replace_child(&mut self, nodes: &mut [Node], parent: EntityId, old: EntityId, new: EntityId) {
        if parent.is_nil() {
            self.root = new;
        } else if nodes[parent.index()].left == old {
            nodes[parent.index()].left = new;
        } else {
            nodes[parent.index()].right = new;
        }
    }

    /// Rotates `top` down to the left (its right child rises); the caller colours both.
    fn rotate_left(&mut self, nodes: &mut [Node], top: EntityId) -> EntityId {
        let rises = nodes[top.index()].right;
        let inner = nodes[rises.index()].left;
        nodes[top.index()].right = inner;
        if inner.is_some() {
            nodes[inner.index()].parent = top;
        }
        nodes[rises.index()].left = top;
        self.rotated(nodes, top, rises);
        rises
    }

    /// Rotates `top` down to the right (its left child rises); the caller colours both.
    fn rotate_right(&mut self, nodes: &mut [Node], top: EntityId) -> EntityId {
        let rises = nodes[top.index()].left;
        let inner = nodes[rises.index()].right;
        nodes[top.index()].left = inner;
        if inner.is_some() {
            nodes[inner.index()].parent = top;
        }
        nodes[rises.index()].right = top;
        self.rotated(nodes, top, rises);
        rises
    }

    fn rotated(&mut self, nodes: &mut [Node], top: EntityId, rises: EntityId) {
        let parent = nodes[top.index()].parent;
        nodes[rises.index()].parent = parent;
        nodes[top.index()].parent = rises;
        self.replace_child(nodes, parent, top, rises);
        // The subtree as a whole is unchanged, so the risen node takes over its minima.
        nodes[rises.index()].min_value = nodes[top.index()].min_value;
        if self.slices {
            nodes[rises.index()].min_slice = nodes[top.index()].min_slice;
            nodes[rises.index()].max_slice = nodes[top.index()].max_slice;
        }
        recompute(nodes, top, self.slices);
    }

    /// Restores the colours after a red node got the red parent `parent` (`__rb_insert`).
    fn insert_fixup(&mut self, nodes: &mut [Node], mut id: EntityId, mut parent: EntityId) {
        loop {
            // `parent` is red, so it is not the root and has a parent.
            let grandparent = nodes[parent.index()].parent;
            let left = nodes[grandparent.index()].left == parent;
            let uncle = if left { nodes[grandparent.index()].right } else { nodes[grandparent.index()].left };
            if uncle.is_some() && nodes[uncle.index()].red {
                nodes[uncle.index()].red = false;
                nodes[parent.index()].red = false;
                id = grandparent;
                parent = nodes[id.index()].parent;
                if parent.is_nil() {
                    nodes[id.index()].red = false;
                    return;
                }
                nodes[id.index()].red = true;
                if !nodes[parent.index()].red {
                    return;
                }
                continue;
            }
            if left {
                if nodes[parent.index()].right == id {
                    parent = self.rotate_left(nodes, parent);
                }
                self.rotate_right(nodes, grandparent);
            } else {
                if nodes[parent.index()].left == id {
                    parent = self.rotate_right(nodes, parent);
                }
                self.rotate_left(nodes, grandparent);
            }
            nodes[parent.index()].red = false;
            nodes[grandparent.index()].red = true;
            return;
        }
    }

    /// Unlinks a node and restores minima and colours (`__rb_erase_augmented`).
    fn erase_linked(&mut self, nodes: &mut [Node], id: EntityId) {
        let gone = nodes[id.index()];
        let (refresh, rebalance) = if gone.left.is_nil() || gone.right.is_nil() {
            self.erase_with_one_child(nodes, id, &gone)
        } else {
            self.erase_with_two_children(nodes, id, &gone)
        };
        propagate(nodes, refresh, self.slices);
        if rebalance.is_some() {
            self.erase_fixup(nodes, rebalance);
        }
    }

    /// Returns where minima change first, and the parent of the missing black node if there is one.
    fn erase_with_one_child(&mut self, nodes: &mut [Node], id: EntityId, gone: &Node) -> (EntityId, EntityId) {
        let child = if gone.left.is_some() { gone.left } else { gone.right };
        self.replace_child(nodes, gone.parent, id, child);
        if child.is_some() {
            // An only child is red and its parent black: recolouring it keeps the black height.
            nodes[child.index()].parent = gone.parent;
            nodes[child.index()].red = gone.red;
            return (gone.parent, EntityId::NIL);
        }
        (gone.parent, if gone.red { EntityId::NIL } else { gone.parent })
    }

    /// The successor takes the node's place. Returns as [`Tree::erase_with_one_child`].
    fn erase_with_two_children(&mut self, nodes: &mut [Node], id: EntityId, gone: &Node) -> (EntityId, EntityId) {
        let mut heir = gone.right;
        while nodes[heir.index()].left.is_some() {
            heir = nodes[heir.index()].left;
        }
        let orphan = nodes[heir.index()].right;
        let heir_was_red = nodes[heir.index()].red;
        let from = if heir == gone.right {
            heir
        } else {
            let above = nodes[heir.index()].parent;
            nodes[above.index()].left = orphan;
            nodes[heir.index()].right = gone.right;
            nodes[gone.right.index()].parent = heir;
            above
        };
        nodes[heir.index()].left = gone.left;
        nodes[gone.left.index()].parent = heir;
        self.replace_child(nodes, gone.parent, id, heir);
        nodes[heir.index()].parent = gone.parent;
        nodes[heir.index()].red = gone.red;
        if orphan.is_some() {
            nodes[orphan.index()].parent = from;
            nodes[orphan.index()].red = false;
        }
        // The heir still carries the minima of its old, smaller subtree: it must be refreshed even if a stop below it
        // would end the walk up.
        let mut at = from;
        while at != heir {
            recompute(nodes, at, self.slices);
            at = nodes[at.index()].parent;
        }
        recompute(nodes, heir, self.slices);
        (gone.parent, if orphan.is_nil() && !heir_was_red { from } else { EntityId::NIL })
    }

    /// Restores the black height below `parent`, one of whose children lacks a black node (`____rb_erase_color`).
    fn erase_fixup(&mut self, nodes: &mut [Node], mut parent: EntityId) {
        let mut node = EntityId::NIL;
        loop {
            // The missing child has a sibling: its side of the tree has a black node more.
            let left = nodes[parent.index()].right != node;
            let mut sibling = if left { nodes[parent.index()].right } else { nodes[parent.index()].left };
            if nodes[sibling.index()].red {
                nodes[sibling.index()].red = false;
                nodes[parent.index()].red = true;
                if left {
                    self.rotate_left(nodes, parent);
                    sibling = nodes[parent.index()].right;
                } else {
                    self.rotate_right(nodes, parent);
                    sibling = nodes[parent.index()].left;
                }
            }
            let (near, far) = if left {
                (nodes[sibling.index()].left, nodes[sibling.index()].right)
            } else {
                (nodes[sibling.index()].right, nodes[sibling.index()].left)
            };
            let is_red = |id: EntityId, nodes: &[Node]| id.is_some() && nodes[id.index()].red;
            if !is_red(far, nodes) && !is_red(near, nodes) {
                nodes[sibling.index()].red = true;
                if nodes[parent.index()].red {
                    nodes[parent.index()].red = false;
                    return;
                }
                node = parent;
                parent = nodes[node.index()].parent;
                if parent.is_nil() {
                    return;
                }
                continue;
            }
            if !is_red(far, nodes) {
                nodes[sibling.index()].red = true;
                nodes[near.index()].red = false;
                sibling = if left { self.rotate_right(nodes, sibling) } else { self.rotate_left(nodes, sibling) };
            }
            let outer = if left { nodes[sibling.index()].right } else { nodes[sibling.index()].left };
            nodes[outer.index()].red = false;
            nodes[sibling.index()].red = nodes[parent.index()].red;
            nodes[parent.index()].red = false;
            if left {
                self.rotate_left(nodes, parent);
            } else {
                self.rotate_right(nodes, parent);
            }
            return;
        }
    }
}

fn next(nodes: &[Node], id: EntityId) -> EntityId {
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

/// Sets what a node knows of its subtree from itself and its children; whether that changed.
#[inline]
fn recompute(nodes: &mut [Node], id: EntityId, slices: bool) -> bool {
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
    if slices {
        return recompute_slices(nodes, id) || changed;
    }
    changed
}

fn recompute_slices(nodes: &mut [Node], id: EntityId) -> bool {
    let node = &nodes[id.index()];
    let (mut shortest, mut longest) = (node.slice, node.slice);
    for child in [node.left, node.right] {
        if child.is_some() {
            shortest = shortest.min(nodes[child.index()].min_slice);
            longest = longest.max(nodes[child.index()].max_slice);
        }
    }
    let node = &mut nodes[id.index()];
    let changed = node.min_slice != shortest || node.max_slice != longest;
    node.min_slice = shortest;
    node.max_slice = longest;
    changed
}

/// Recomputes from a node upwards until nothing changes any more.
#[inline]
fn propagate(nodes: &mut [Node], mut id: EntityId, slices: bool) {
    while id.is_some() && recompute(nodes, id, slices) {
        id = nodes[id.index()].parent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks colours, links and minima below `id`; returns the black height and the entities in order.
    fn audit(nodes: &[Node], id: EntityId, parent: EntityId, order: &mut Vec<EntityId>) -> usize {
        if id.is_nil() {
            return 1;
        }
        let node = &nodes[id.index()];
        assert_eq!(node.parent, parent);
        assert!(!(node.red && parent.is_some() && nodes[parent.index()].red), "two reds in a row");
        let left = audit(nodes, node.left, id, order);
        order.push(id);
        let right = audit(nodes, node.right, id, order);
        assert_eq!(left, right, "black heights differ");
        let below = [node.left, node.right].into_iter().filter(|c| c.is_some()).map(|c| &nodes[c.index()]);
        let minima = below.fold((node.value, node.slice, node.slice), |(v, s, l), c| {
            (v.min(c.min_value), s.min(c.min_slice), l.max(c.max_slice))
        });
        assert_eq!((node.min_value, node.min_slice, node.max_slice), minima, "stale minima");
        left + usize::from(!node.red)
    }

    proptest! {
        #[test]
        fn behaves_as_a_stable_sorted_list(steps in proptest::collection::vec((0u32..40, 0u64..12, 0u64..9), 1..300)) {
            let mut nodes = vec![Node::default(); 40];
            let mut tree = Tree::new(true);
            let mut list: Vec<(u64, EntityId, u64)> = Vec::new();
            for (id, key, value) in steps {
                let id = EntityId(id);
                if let Some(at) = list.iter().position(|e| e.1 == id) {
                    list.remove(at);
                    tree.erase(&mut nodes, id);
                } else {
                    let at = list.partition_point(|e| e.0 <= key);
                    list.insert(at, (key, id, value));
                    tree.insert(&mut nodes, id, Vruntime(key), Vruntime(value), value * 7 % 5);
                }
                let mut order = Vec::new();
                audit(&nodes, tree.root, EntityId::NIL, &mut order);
                let expected: Vec<EntityId> = list.iter().map(|e| e.1).collect();
                prop_assert_eq!(&order, &expected);
                prop_assert_eq!(tree.first(), expected.first().copied().unwrap_or(EntityId::NIL));
                prop_assert_eq!(tree.len as usize, list.len());
                prop_assert_eq!(tree.min_value(&nodes), list.iter().map(|e| Vruntime(e.2)).min_by_key(|v| v.0));
                for bound in 0..9 {
                    let wanted = list.iter().find(|e| e.2 <= bound).map_or(EntityId::NIL, |e| e.1);
                    prop_assert_eq!(tree.first_eligible(&nodes, |v| v.0 <= bound), wanted);
                }
                for pair in expected.windows(2) {
                    prop_assert_eq!(tree.next(&nodes, pair[0]), pair[1]);
                }
            }
        }
    }
}
