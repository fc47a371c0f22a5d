//! `sched_yield` from the system call to the `schedule()` in it, with which other records may come between.

use schedlab_model::Pid;
use schedlab_trace::Kind;

use super::Reader;
use crate::operation::Operation;
use crate::trace::Entry;

impl Reader {
    /// The task has entered `sched_yield`.
    pub(super) fn enter_yield(&mut self, pid: Pid) {
        self.cancel_change(pid);
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.yields = true;
        }
    }

    /// A `sched_yield` whose charge was nothing, because the clock stood still: the task has given up its request all
    /// the same. Or its `schedule()`, if the task was preempted before that.
    pub(super) fn yield_uncharged(&mut self, entry: &Entry, kind: Kind) {
        if entry.in_task() && !entry.preempts && !matches!(kind, Kind::Runtime { .. }) {
            self.end_yield(entry, matches!(kind, Kind::Switch { .. }));
        }
    }

    /// The running task's `sched_yield` is over: `switches`, or it was picked again. Another class yields in its own
    /// way.
    pub(super) fn end_yield(&mut self, entry: &Entry, switches: bool) {
        let Entry { cpu, pid, .. } = *entry;
        if self.current(cpu) != Some(pid) {
            return;
        }
        let (yields, schedules) = (self.take_yield(pid), self.take_in_yield(pid));
        if !(yields || schedules) || !self.current_is_fair(cpu) {
            return;
        }
        if yields {
            self.push(Operation::Yield { cpu });
        }
        match switches {
            true => self.cpu(cpu).yielded = true,
            false => self.push(Operation::Repick { cpu, certain: true }),
        }
    }

    /// Whether a task has entered `sched_yield` and not yielded yet; from now on it counts as having yielded.
    pub(super) fn take_yield(&mut self, pid: Pid) -> bool {
        self.tasks.get_mut(&pid).is_some_and(|task| std::mem::take(&mut task.yields))
    }

    /// Whether a task was preempted between its yield and the `schedule()` of that, which comes now.
    pub(super) fn take_in_yield(&mut self, pid: Pid) -> bool {
        self.tasks.get_mut(&pid).is_some_and(|task| std::mem::take(&mut task.in_yield))
    }
}
