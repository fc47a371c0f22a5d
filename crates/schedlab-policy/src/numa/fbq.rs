//! Which queues load balancing looks at, by the nodes that their tasks prefer.

/// Which tasks a CPU or group has (`enum fbq_type`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fbq {
    /// Some that prefer no node.
    Regular,
    /// Some that prefer another node.
    Remote,
    /// Only such that are on their preferred node.
    All,
}
