//! Scheduling policies.

use serde::{Deserialize, Serialize};

/// Scheduling policy of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Policy {
    /// SCHED_OTHER.
    #[default]
    Normal,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO at this priority, 1..=99.
    Fifo(u8),
    /// SCHED_RR at this priority, 1..=99.
    RoundRobin(u8),
}

impl std::fmt::Display for Policy {
    /// As scenario files write it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Policy::Normal => f.write_str("normal"),
            Policy::Batch => f.write_str("batch"),
            Policy::Idle => f.write_str("idle"),
            Policy::Fifo(priority) => write!(f, "fifo:{priority}"),
            Policy::RoundRobin(priority) => write!(f, "rr:{priority}"),
        }
    }
}
