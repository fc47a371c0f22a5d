//! What a timeline shows besides slices: wakeups and long samples.

use schedlab_model::{Nanos, Pid};
use serde_json::json;

/// One wakeup: when it began, by which task on which lane, and where and when the wakee ran.
pub struct Wake {
    pub at: Nanos,
    pub lane: usize,
    pub by: Option<usize>,
    pub task: usize,
    pub ran_lane: usize,
    pub ran_at: Nanos,
}

impl Wake {
    pub fn numbers(&self) -> [i64; 6] {
        let by = self.by.map_or(-1, |task| task as i64);
        [self.at as i64, self.lane as i64, by, self.task as i64, self.ran_lane as i64, self.ran_at as i64]
    }
}

/// One long sample: it ended at `at` on a lane, and took `ns`. For the first `queued` of them no task worked on it: a
/// sample of time in a queue (`MetricDecl::queueing`) began with this one, and ended when the task took the entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waited {
    pub ns: Nanos,
    pub at: Nanos,
    pub pid: Pid,
    pub lane: usize,
    pub queued: Nanos,
}

impl Waited {
    pub fn numbers(&self) -> serde_json::Value {
        json!([self.ns, self.at, self.pid, self.lane, self.queued])
    }
}
