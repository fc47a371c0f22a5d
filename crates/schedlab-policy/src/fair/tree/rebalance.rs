//! Rotations and colours: what keeps the tree balanced after an insertion or a removal (lib/rbtree.c's `__rb_insert` and
//! `____rb_erase_color`, rbtree_augmented.h's `__rb_erase_augmented`).

use super::super::entity::EntityId;
use super::{next, propagate, recompute, Node, Slices, Tree};

impl Tree {
    /// Restores the colours after a red node got the red parent `parent` (`__rb_insert`).
    #[inline(never)]
    pub(super) fn insert_fixup(&mut self, nodes: &mut [Node], mut id: EntityId, mut parent: EntityId) {
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
    #[inline(never)]
    pub(super) fn erase_linked(&mut self, nodes: &mut [Node], id: EntityId) {
        if self.first == id {
            self.first = next(nodes, id);
        }
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
        if self.slices == Slices::Exact {
            nodes[rises.index()].min_slice = nodes[top.index()].min_slice;
            nodes[rises.index()].max_slice = nodes[top.index()].max_slice;
        }
        recompute(nodes, top, self.slices);
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
        let rebalance = if orphan.is_nil() && !heir_was_red { from } else { EntityId::NIL };
        if self.slices.stale() {
            nodes[heir.index()].min_value = gone.min_value;
            let mut at = from;
            while at != heir && recompute(nodes, at, self.slices) {
                at = nodes[at.index()].parent;
            }
            return (heir, rebalance);
        }
        // The heir still carries the minima of its old, smaller subtree: it must be refreshed even if a stop below it
        // would end the walk up.
        let mut at = from;
        while at != heir {
            recompute(nodes, at, self.slices);
            at = nodes[at.index()].parent;
        }
        recompute(nodes, heir, self.slices);
        (gone.parent, rebalance)
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
