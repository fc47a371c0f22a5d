//! Why the fair class decided what it decided: the rule, the feature, the numbers compared.

use crate::features::Feature;
use schedlab_model::{CpuId, Nanos, TaskId};

/// What kind of decision was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// This task runs next.
    Pick(TaskId),
    /// The woken task preempts.
    Preempt(TaskId),
    /// The woken task does not preempt.
    Keep(TaskId),
    /// The running task's turn ended at an accounting point.
    Expire(TaskId),
    /// The task stays queued although it sleeps.
    Delay(TaskId),
}

/// One decision with its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// When.
    pub now: Nanos,
    /// On which CPU's queue.
    pub cpu: CpuId,
    /// What.
    pub verdict: Verdict,
    /// Which rule of fair.c decided, in words.
    pub rule: &'static str,
    /// The feature that made the difference, if one did.
    pub feature: Option<Feature>,
    /// The two numbers compared, with their names; signed differences from the queue's zero point.
    pub compared: [(&'static str, i64); 2],
}
