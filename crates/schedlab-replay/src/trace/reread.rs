//! States that `sched_switch` read too late.
//!
//! Up to 5.17 the record reads the state of the task that leaves when it is made (`__trace_sched_switch_state`), and
//! not when `__schedule` decided that the task sleeps. Once a waker on another CPU has set TASK_WAKING
//! (`try_to_wake_up`, behind `sched_waking`), it says R. The record's time is taken before the state is read, so that
//! the `sched_waking` may have a later time.

use std::collections::BTreeMap;

use schedlab_model::Pid;
use schedlab_policy::Release;
use schedlab_trace::{Header, Kind, TaskState};

use super::entry::{Entry, What};
use super::release::release;

/// From this release on `sched_switch` is given the state by which `__schedule` decided (fa2c3254d7cf).
const FIXED: Option<Release> = Release::parse("5.18");

/// Finds the switches of tasks that slept, in the order of the trace.
pub struct RereadStates {
    /// The recorded kernel reads them too late.
    late: bool,
    /// Tasks that are said to have left runnable and have not run since, with the number of the entry that says so.
    runnable: BTreeMap<Pid, u64>,
}

impl RereadStates {
    pub fn new(header: &Header) -> Self {
        let late = release(header).zip(FIXED).is_some_and(|(release, fixed)| release < fixed);
        RereadStates { late, runnable: BTreeMap::new() }
    }

    /// Reads the entry of that number. Returns the number of an earlier one whose task had gone to sleep: it is woken
    /// before it runs again, and a task that waits on a queue cannot be woken. One that was preempted in the kernel
    /// (R+) may be.
    pub fn read(&mut self, number: u64, entry: &Entry) -> Option<u64> {
        match entry.what {
            _ if !self.late => None,
            What::Event(Kind::Switch { prev, prev_state, next, .. }) => {
                self.runnable.remove(&next);
                if prev != 0 && prev_state == TaskState::Running && !entry.preempts {
                    self.runnable.insert(prev, number);
                }
                None
            }
            What::Event(Kind::Waking { pid, .. } | Kind::Wakeup { pid, .. }) => self.runnable.remove(&pid),
            What::Lost => {
                self.runnable.clear();
                None
            }
            _ => None,
        }
    }
}

impl Entry {
    /// A switch whose task had gone to sleep.
    pub(super) fn correct_state(&mut self) {
        if let What::Event(Kind::Switch { prev_state, .. }) = &mut self.what {
            *prev_state = TaskState::Sleeping;
        }
    }
}
