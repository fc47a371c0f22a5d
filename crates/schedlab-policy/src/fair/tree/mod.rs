//! An arena red-black tree with the shape the kernel's would have, each node recording minima of its subtree.
//!
//! Follows lib/rbtree.c and include/linux/rbtree_augmented.h (equal in every modelled version) step for step, because
//! the picks of some versions depend on the shape: a new node goes right of its equals, an erased node with two
//! children is replaced by its successor. Links live in one array indexed by entity, so queueing allocates nothing.
//!
//! A node's *key* orders the tree and its *value* is the other of vruntime and deadline; the minimum of the values
//! below each node lets a search skip whole subtrees.

mod node;
mod rebalance;

pub(super) use node::{Node, Slices};

use super::entity::EntityId;
use node::{propagate, rb_next, recompute};
use rebalance::Rebalance;
use schedlab_model::{Nanos, Vruntime};

/// A tree's handle; the nodes are in an array that all trees of a kernel share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub root: EntityId,
    first: EntityId,
    len: u32,
    slices: Slices,
}

impl Tree {
    /// An empty tree.
    pub fn new(slices: Slices) -> Self {
        Tree { root: EntityId::NIL, first: EntityId::NIL, len: 0, slices }
    }

    /// From now on nodes record slices.
    pub fn keep_slices(&mut self, nodes: &mut [Node], slices: Slices) {
        self.slices = slices;
        // In order, each up to the root: the last node passed on a way up has both its subtrees complete.
        let mut at = self.first;
        while at.is_some() {
            let mut up = at;
            while up.is_some() {
                recompute(nodes, up, Slices::Exact);
                up = nodes[up.index()].parent;
            }
            at = rb_next(nodes, at);
        }
    }

    /// A queued node's value or slice changed in place: updates what the nodes above record (`*_cb_propagate`).
    pub fn refresh(&self, nodes: &mut [Node], id: EntityId) {
        propagate(nodes, id, self.slices);
    }

    /// Its links to entities.
    pub fn links(&mut self) -> [&mut EntityId; 2] {
        [&mut self.root, &mut self.first]
    }

    /// The leftmost node, or NIL (`rb_first_cached`).
    #[inline]
    pub fn first(&self) -> EntityId {
        self.first
    }

    /// `rb_add_augmented_cached`: adds an entity that is in no tree.
    #[inline]
    pub fn rb_add_augmented_cached(
        &mut self,
        nodes: &mut [Node],
        id: EntityId,
        key: Vruntime,
        value: Vruntime,
        slice: Nanos,
    ) {
        let (mut parent, mut link, mut left) = (EntityId::NIL, self.root, false);
        while link.is_some() {
            let node = &mut nodes[link.index()];
            // Minima only shrink and maxima only grow on the way of an insertion, so they are updated on the way down.
            if !self.slices.stale() {
                node.min_value = node.min_value.min(value);
            }
            if self.slices == Slices::Exact {
                node.min_slice = node.min_slice.min(slice);
                node.max_slice = node.max_slice.max(slice);
            }
            parent = link;
            left = key.before(node.key);
            link = if left { node.left } else { node.right };
        }
        let nil = EntityId::NIL;
        let max_slice = if self.slices == Slices::StaleLongest { nodes[id.index()].max_slice } else { slice };
        let (min_value, min_slice) = (value, slice);
        nodes[id.index()] =
            Node { key, value, min_value, slice, min_slice, max_slice, parent, left: nil, right: nil, red: true };
        self.len += 1;
        if parent.is_nil() {
            (self.root, self.first) = (id, id);
            nodes[id.index()].red = false;
            return;
        }
        let above = &mut nodes[parent.index()];
        if left {
            above.left = id;
            if parent == self.first {
                self.first = id;
            }
        } else {
            above.right = id;
        }
        let fixes = above.red;
        if self.slices.stale() {
            // How far up the kernel looks depends on what was stale.
            propagate(nodes, parent, self.slices);
        }
        if fixes {
            self.rebalance(nodes).__rb_insert(id, parent);
        }
    }

    /// `rb_erase_augmented_cached`: removes an entity that is in this tree.
    #[inline]
    pub fn rb_erase_augmented_cached(&mut self, nodes: &mut [Node], id: EntityId) {
        self.len -= 1;
        if self.len == 0 {
            self.root = EntityId::NIL;
            self.first = EntityId::NIL;
            return;
        }
        if self.len == 1 {
            return self.erase_one_of_two(nodes, id);
        }
        if self.first == id {
            self.first = rb_next(nodes, id);
        }
        self.rebalance(nodes).__rb_erase_augmented(id);
    }

    /// The same of two nodes, the usual case of a switch: the one that stays is the root, and black.
    #[inline]
    fn erase_one_of_two(&mut self, nodes: &mut [Node], id: EntityId) {
        let erased = &nodes[id.index()];
        let (above, below) = (erased.parent, if erased.left.is_some() { erased.left } else { erased.right });
        if above.is_nil() {
            let stays = &mut nodes[below.index()];
            (stays.parent, stays.red) = (EntityId::NIL, false);
            (self.root, self.first) = (below, below);
        } else {
            let stays = &mut nodes[above.index()];
            (stays.left, stays.right) = (EntityId::NIL, EntityId::NIL);
            stays.min_value = stays.value;
            if self.slices != Slices::None {
                (stays.min_slice, stays.max_slice) = (stays.slice, stays.slice);
            }
            self.first = above;
        }
    }

    #[inline]
    fn rebalance<'a>(&'a mut self, nodes: &'a mut [Node]) -> Rebalance<'a> {
        Rebalance { root: &mut self.root, nodes, slices: self.slices }
    }

    /// `rb_next`: the in-order successor of a node, or NIL.
    pub fn rb_next(&self, nodes: &[Node], id: EntityId) -> EntityId {
        rb_next(nodes, id)
    }

    /// The entities in order.
    pub fn iter<'a>(&self, nodes: &'a [Node]) -> impl Iterator<Item = EntityId> + use<'a> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let id = at.some()?;
            at = rb_next(nodes, id);
            Some(id)
        })
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
    #[inline(always)]
    pub fn first_eligible(&self, nodes: &[Node], eligible: impl Fn(Vruntime) -> bool + Copy) -> EntityId {
        if self.first.is_some() && eligible(nodes[self.first.index()].value) {
            return self.first;
        }
        self.search_eligible(nodes, eligible)
    }

    /// The same where the first node does not pass.
    fn search_eligible(&self, nodes: &[Node], eligible: impl Fn(Vruntime) -> bool) -> EntityId {
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

    /// The third of three in a row makes the second rise above the first: up to 6.18 the second keeps its own minimum.
    #[test]
    fn a_rotation_may_leave_a_stale_slice() {
        for (slices, shortest) in [(Slices::Exact, 1), (Slices::Stale, 9)] {
            let mut nodes = vec![Node::default(); 3];
            let mut tree = Tree::new(slices);
            for (id, slice) in [(0, 1), (1, 9), (2, 9)] {
                tree.rb_add_augmented_cached(&mut nodes, EntityId(id), Vruntime(u64::from(id)), Vruntime(0), slice);
            }
            assert_eq!(tree.min_slice(&nodes), shortest, "{slices:?}");
        }
    }

    /// 6.18.44: a leaf's own slice counts among the longest only once another node has been below it.
    #[test]
    fn a_new_leaf_may_hide_its_slice() {
        for (slices, alone, again) in [(Slices::Exact, 5, 5), (Slices::StaleLongest, 0, 5)] {
            let mut nodes = vec![Node::default(); 2];
            let mut tree = Tree::new(slices);
            let mut longest = Vec::new();
            let (first, second) = (EntityId(0), EntityId(1));
            tree.rb_add_augmented_cached(&mut nodes, first, Vruntime(0), Vruntime(0), 5);
            longest.push(tree.max_slice(&nodes));
            tree.rb_add_augmented_cached(&mut nodes, second, Vruntime(1), Vruntime(0), 3);
            tree.rb_erase_augmented_cached(&mut nodes, second);
            tree.rb_erase_augmented_cached(&mut nodes, first);
            tree.rb_add_augmented_cached(&mut nodes, first, Vruntime(0), Vruntime(0), 5);
            longest.push(tree.max_slice(&nodes));
            assert_eq!(longest, [alone, again], "{slices:?}");
        }
    }

    proptest! {
        #[test]
        fn behaves_as_a_stable_sorted_list(steps in proptest::collection::vec((0u32..40, 0u64..12, 0u64..9), 1..300)) {
            let mut nodes = vec![Node::default(); 40];
            let mut tree = Tree::new(Slices::Exact);
            let mut list: Vec<(u64, EntityId, u64)> = Vec::new();
            for (id, key, value) in steps {
                let id = EntityId(id);
                if let Some(at) = list.iter().position(|e| e.1 == id) {
                    list.remove(at);
                    tree.rb_erase_augmented_cached(&mut nodes, id);
                } else {
                    let at = list.partition_point(|e| e.0 <= key);
                    list.insert(at, (key, id, value));
                    tree.rb_add_augmented_cached(&mut nodes, id, Vruntime(key), Vruntime(value), value * 7 % 5);
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
                    prop_assert_eq!(tree.rb_next(&nodes, pair[0]), pair[1]);
                }
            }
        }
    }
}
