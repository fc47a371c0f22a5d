//! The run times of all classes, for callers that trace.

use std::ops::ControlFlow;

use super::Sched;
use crate::class::{ClassId, ClassList, EachClass, SchedClass};
use crate::run_times::{RunTime, RunTimes};

impl<L: ClassList> Sched<L> {
    /// Starts recording run times (`sched_stat_runtime`).
    pub fn record_run_times(&mut self) {
        self.classes.walk(&mut EachLog(RunTimes::switch_on));
    }

    /// A move of a task has been reported: run times accounted after it may be fetched. Returns whether there was such
    /// a move.
    pub fn pass_move(&mut self) -> bool {
        let mut passed = false;
        self.classes.walk(&mut EachLog(|log: &mut RunTimes| passed |= log.pass_detached()));
        passed
    }

    /// Moves the run times accounted since the last call, up to the next move of a queued task, behind `into`.
    pub fn take_run_times(&mut self, into: &mut Vec<RunTime>) {
        self.classes.walk(&mut EachLog(|log: &mut RunTimes| log.take(into)));
    }
}

/// Calls a function with the run times of each class.
struct EachLog<F>(F);

impl<F: FnMut(&mut RunTimes)> EachClass for EachLog<F> {
    #[inline(always)]
    fn each<C: SchedClass>(&mut self, class: &mut C, _: ClassId) -> ControlFlow<()> {
        if let Some(log) = class.run_time_log() {
            (self.0)(log);
        }
        ControlFlow::Continue(())
    }
}
