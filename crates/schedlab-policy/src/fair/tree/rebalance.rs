//! Rotations and colours: what keeps the tree balanced after an insertion or a removal (lib/rbtree.c's `__rb_insert`
//! and `____rb_erase_color`, rbtree_augmented.h's `__rb_erase_augmented`).

use super::super::entity::EntityId;
use super::node::{propagate, recompute, Node, Slices};

/// A tree that is being rebalanced.
pub(super) struct Rebalance<'a> {
    pub root: &'a mut EntityId,
    pub nodes: &'a mut [Node],
    pub slices: Slices,
}

impl Rebalance<'_> {
    /// `__rb_insert`: restores the colours after a red node got the red parent `parent`.
    #[inline(never)]
    pub(super) fn __rb_insert(&mut self, mut id: EntityId, mut parent: EntityId) {
        loop {
            // `parent` is red, so it is not the root and has a parent.
            let grandparent = self.nodes[parent.index()].parent;
            let left = self.nodes[grandparent.index()].left == parent;
            let uncle = if left { self.nodes[grandparent.index()].right } else { self.nodes[grandparent.index()].left };
            if uncle.is_some() && self.nodes[uncle.index()].red {
                self.nodes[uncle.index()].red = false;
                self.nodes[parent.index()].red = false;
                id = grandparent;
                parent = self.nodes[id.index()].parent;
                if parent.is_nil() {
                    self.nodes[id.index()].red = false;
                    return;
                }
                self.nodes[id.index()].red = true;
                if !self.nodes[parent.index()].red {
                    return;
                }
                continue;
            }
            if left {
                if self.nodes[parent.index()].right == id {
                    parent = self.rotate_left(parent);
                }
                self.rotate_right(grandparent);
            } else {
                if self.nodes[parent.index()].left == id {
                    parent = self.rotate_right(parent);
                }
                self.rotate_left(grandparent);
            }
            self.nodes[parent.index()].red = false;
            self.nodes[grandparent.index()].red = true;
            return;
        }
    }

    /// `__rb_erase_augmented`: unlinks a node and restores minima and colours.
    #[inline(never)]
    pub(super) fn __rb_erase_augmented(&mut self, id: EntityId) {
        let Node { left, right, .. } = self.nodes[id.index()];
        let (refresh, rebalance) = if left.is_nil() || right.is_nil() {
            self.erase_with_one_child(id)
        } else {
            self.erase_with_two_children(id)
        };
        propagate(self.nodes, refresh, self.slices);
        if rebalance.is_some() {
            self.____rb_erase_color(rebalance);
        }
    }

    fn replace_child(&mut self, parent: EntityId, old: EntityId, new: EntityId) {
        if parent.is_nil() {
            *self.root = new;
        } else if self.nodes[parent.index()].left == old {
            self.nodes[parent.index()].left = new;
        } else {
            self.nodes[parent.index()].right = new;
        }
    }

    /// Rotates `top` down to the left (its right child rises); the caller colours both.
    fn rotate_left(&mut self, top: EntityId) -> EntityId {
        let rises = self.nodes[top.index()].right;
        let inner = self.nodes[rises.index()].left;
        self.nodes[top.index()].right = inner;
        if inner.is_some() {
            self.nodes[inner.index()].parent = top;
        }
        self.nodes[rises.index()].left = top;
        self.rotated(top, rises);
        rises
    }

    /// Rotates `top` down to the right (its left child rises); the caller colours both.
    fn rotate_right(&mut self, top: EntityId) -> EntityId {
        let rises = self.nodes[top.index()].left;
        let inner = self.nodes[rises.index()].right;
        self.nodes[top.index()].left = inner;
        if inner.is_some() {
            self.nodes[inner.index()].parent = top;
        }
        self.nodes[rises.index()].right = top;
        self.rotated(top, rises);
        rises
    }

    fn rotated(&mut self, top: EntityId, rises: EntityId) {
        let parent = self.nodes[top.index()].parent;
        self.nodes[rises.index()].parent = parent;
        self.nodes[top.index()].parent = rises;
        self.replace_child(parent, top, rises);
        // The subtree as a whole is unchanged, so the risen node takes over its minima.
        self.nodes[rises.index()].min_value = self.nodes[top.index()].min_value;
        if self.slices == Slices::Exact {
            self.nodes[rises.index()].min_slice = self.nodes[top.index()].min_slice;
            self.nodes[rises.index()].max_slice = self.nodes[top.index()].max_slice;
        }
        recompute(self.nodes, top, self.slices);
    }

    /// Returns where minima change first, and the parent of the missing black node if there is one.
    fn erase_with_one_child(&mut self, id: EntityId) -> (EntityId, EntityId) {
        let Node { parent, left, right, red, .. } = self.nodes[id.index()];
        let child = if left.is_some() { left } else { right };
        self.replace_child(parent, id, child);
        if child.is_some() {
            // An only child is red and its parent black: recolouring it keeps the black height.
            let child = &mut self.nodes[child.index()];
            (child.parent, child.red) = (parent, red);
            return (parent, EntityId::NIL);
        }
        (parent, if red { EntityId::NIL } else { parent })
    }

    /// The successor takes the node's place. Returns as [`Rebalance::erase_with_one_child`].
    fn erase_with_two_children(&mut self, id: EntityId) -> (EntityId, EntityId) {
        let Node { parent, left, right, red, min_value, .. } = self.nodes[id.index()];
        let mut successor = right;
        while self.nodes[successor.index()].left.is_some() {
            successor = self.nodes[successor.index()].left;
        }
        let Node { right: orphan, parent: above, red: successor_was_red, .. } = self.nodes[successor.index()];
        let from = if successor == right {
            successor
        } else {
            self.nodes[above.index()].left = orphan;
            self.nodes[successor.index()].right = right;
            self.nodes[right.index()].parent = successor;
            above
        };
        self.nodes[left.index()].parent = successor;
        self.replace_child(parent, id, successor);
        let risen = &mut self.nodes[successor.index()];
        (risen.parent, risen.left, risen.red) = (parent, left, red);
        if orphan.is_some() {
            let orphan = &mut self.nodes[orphan.index()];
            (orphan.parent, orphan.red) = (from, false);
        }
        let rebalance = if orphan.is_nil() && !successor_was_red { from } else { EntityId::NIL };
        if self.slices.stale() {
            self.nodes[successor.index()].min_value = min_value;
            let mut at = from;
            while at != successor && recompute(self.nodes, at, self.slices) {
                at = self.nodes[at.index()].parent;
            }
            return (successor, rebalance);
        }
        // The successor still carries the minima of its old, smaller subtree: it must be refreshed even if a stop below
        // it would end the walk up.
        let mut at = from;
        while at != successor {
            recompute(self.nodes, at, self.slices);
            at = self.nodes[at.index()].parent;
        }
        recompute(self.nodes, successor, self.slices);
        (parent, rebalance)
    }

    /// `____rb_erase_color`: restores the black height below `parent`, one of whose children lacks a black node.
    fn ____rb_erase_color(&mut self, mut parent: EntityId) {
        let mut node = EntityId::NIL;
        loop {
            // The missing child has a sibling: its side of the tree has a black node more.
            let left = self.nodes[parent.index()].right != node;
            let mut sibling = if left { self.nodes[parent.index()].right } else { self.nodes[parent.index()].left };
            if self.nodes[sibling.index()].red {
                self.nodes[sibling.index()].red = false;
                self.nodes[parent.index()].red = true;
                if left {
                    self.rotate_left(parent);
                    sibling = self.nodes[parent.index()].right;
                } else {
                    self.rotate_right(parent);
                    sibling = self.nodes[parent.index()].left;
                }
            }
            let (near, far) = if left {
                (self.nodes[sibling.index()].left, self.nodes[sibling.index()].right)
            } else {
                (self.nodes[sibling.index()].right, self.nodes[sibling.index()].left)
            };
            let is_red = |id: EntityId| id.is_some() && self.nodes[id.index()].red;
            let far_is_red = is_red(far);
            if !far_is_red && !is_red(near) {
                self.nodes[sibling.index()].red = true;
                if self.nodes[parent.index()].red {
                    self.nodes[parent.index()].red = false;
                    return;
                }
                node = parent;
                parent = self.nodes[node.index()].parent;
                if parent.is_nil() {
                    return;
                }
                continue;
            }
            if !far_is_red {
                self.nodes[sibling.index()].red = true;
                self.nodes[near.index()].red = false;
                sibling = if left { self.rotate_right(sibling) } else { self.rotate_left(sibling) };
            }
            let outer = if left { self.nodes[sibling.index()].right } else { self.nodes[sibling.index()].left };
            self.nodes[outer.index()].red = false;
            self.nodes[sibling.index()].red = self.nodes[parent.index()].red;
            self.nodes[parent.index()].red = false;
            if left {
                self.rotate_left(parent);
            } else {
                self.rotate_right(parent);
            }
            return;
        }
    }
}
