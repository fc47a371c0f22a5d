//! Runqueues by the nodes that their tasks prefer: load balancing takes tasks from those with misplaced tasks first.

/// Which tasks a runqueue or a group of CPUs has (`enum fbq_type`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fbq {
    /// Tasks without a preferred node are among them.
    Regular,
    /// All have a preferred node, and some are not on theirs.
    Remote,
    /// All are on their preferred node.
    All,
}
