//! Run times as `sched_stat_runtime` reports them, for callers that trace.

use std::collections::VecDeque;

use schedlab_model::{rarely, Nanos, TaskId};

/// What `update_curr` accounted to a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunTime {
    /// The task.
    pub task: TaskId,
    /// The time accounted.
    pub runtime: Nanos,
    /// Its vruntime afterwards; 0 outside the fair class.
    pub vruntime: u64,
}

/// The run times since they were last fetched, if they are recorded at all. `None`: a task
/// changed its CPU then, and the driver reports the move between the run times around it.
#[derive(Clone, Default, Debug)]
pub struct RunTimes(Option<VecDeque<Option<RunTime>>>);

impl RunTimes {
    /// Records run times from now on.
    pub fn switch_on(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Whether run times are recorded.
    #[inline]
    pub fn are_on(&self) -> bool {
        rarely(self.0.is_some())
    }

    /// Records one, if run times are recorded.
    #[inline]
    pub fn record(&mut self, run_time: impl FnOnce() -> Option<RunTime>) {
        if let Some(recorded) = &mut self.0 {
            recorded.extend(run_time().map(Some));
        }
    }

    /// Records that a task was detached from its CPU.
    #[inline]
    pub fn detached(&mut self) {
        if let Some(recorded) = &mut self.0 {
            recorded.push_back(None);
        }
    }

    /// Moves what was recorded up to the next detached task behind `into`.
    pub fn take(&mut self, into: &mut Vec<RunTime>) {
        let Some(recorded) = &mut self.0 else { return };
        while let Some(Some(run_time)) = recorded.front() {
            into.push(*run_time);
            recorded.pop_front();
        }
    }

    /// The detached task has been reported. Whether there was one.
    pub fn pass_detached(&mut self) -> bool {
        let Some(recorded) = &mut self.0 else { return false };
        let detached = matches!(recorded.front(), Some(None));
        if detached {
            recorded.pop_front();
        }
        detached
    }
}
