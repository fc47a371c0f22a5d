//! The kernel's count of ticks, and its value at the start of a run.

use schedlab_model::{Nanos, SEC};

/// Jiffies since the boot: ticks of length 1/HZ.
pub(crate) type Jiffies = u64;

/// The time for which the machine has been up and idle at time 0, since a benchmark is not started the instant that a
/// machine boots.
///
/// The value is an assumption. Any value above the longest interval between two balances of a domain (HZ * CPUs / 10
/// jiffies, 102 s on 1,024 CPUs) has the same effect: every domain is due, and every average of idle time is at its
/// ceiling.
pub(crate) const UPTIME: Nanos = 300 * SEC;
