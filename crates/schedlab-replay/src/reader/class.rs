//! Scheduling class and attributes of a task: probes and system calls announce a change; without them later records show it.
//!
//! Where vruntime is printed (up to 6.7), run times outside the fair class print 0.

use schedlab_model::Pid;
use schedlab_policy::FairPolicy;
use schedlab_trace::Kind;

use super::first::group_ahead;
use super::task::{is_fair, nice};
use super::weight::first_weight;
use super::Reader;
use crate::operation::{NewTask, Operation, Weight};
use crate::trace::{Entry, LookAhead, Point, SchedChange, What, Window};

/// SCHED_NORMAL, SCHED_BATCH, SCHED_IDLE.
fn fair_policy(number: u32) -> Option<FairPolicy> {
    match number {
        0 => Some(FairPolicy::Normal),
        3 => Some(FairPolicy::Batch),
        5 => Some(FairPolicy::Idle),
        _ => None,
    }
}

impl Reader {
    /// A record gives a task's priority: its class and nice value, if they have changed.
    pub(super) fn follow_prio(&mut self, pid: Pid, prio: i32, ahead: &Window<'_>) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let before = std::mem::replace(&mut task.prio, prio);
        match (is_fair(before), is_fair(prio)) {
            (true, false) if !task.left_class => self.leave_class(pid),
            (_, true) if task.left_class => self.return_to_class(pid, ahead),
            (false, true) => {
                task.taken = false;
                task.weight = Weight::Nice(nice(prio));
                let (at, weight) = (task.location(), task.weight);
                let group = group_ahead(pid, ahead);
                self.push(Operation::AddTask(NewTask { pid, weight, at, group, first: None }));
            }
            _ => {}
        }
        let idle = self.tasks.get(&pid).is_some_and(|task| task.weight == Weight::Idle);
        if before != prio && is_fair(prio) && !idle {
            self.reweight(pid, Weight::Nice(nice(prio)));
        }
    }

    /// Whether a charge in task context belongs to the change that the task has announced. A system call may change nothing; if
    /// it does change something, its charge is the next one, unless `schedule()` comes first because need-resched is set.
    pub(super) fn is_change_pending(&mut self, entry: &Entry, ahead: &Window<'_>) -> bool {
        let Some(task) = self.tasks.get_mut(&entry.pid) else { return false };
        if !task.change.is_some_and(SchedChange::may_change_nothing) {
            return task.change.is_some();
        }
        match ahead.next_event_on(entry.cpu, LookAhead::TaskCode) {
            Some(Kind::Switch { .. }) => false,
            _ if entry.flag() => false,
            Some(Kind::Wakeup { .. } | Kind::WakeupNew { .. }) => {
                task.change = None;
                false
            }
            _ => true,
        }
    }

    /// A task outside the fair class is charged where it has announced its return.
    pub(super) fn announced_return(&mut self, pid: Pid, ahead: &Window<'_>) {
        let Some(task) = self.tasks.get_mut(&pid).filter(|task| task.left_class) else { return };
        if matches!(task.change, Some(SchedChange::Policy { policy, .. }) if fair_policy(policy).is_some()) {
            task.change = None;
            self.return_to_class(pid, ahead);
        }
    }

    /// An announced change is made at its charge, or else before the next record of the code that makes it.
    pub(super) fn make_pending_change(&mut self, pid: Pid, charged: bool) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        match task.change {
            Some(change) if charged || !change.may_change_nothing() => {
                task.change = None;
                self.make_sched_change(change);
            }
            _ => {}
        }
    }

    fn make_sched_change(&mut self, change: SchedChange) {
        let pid = change.pid();
        let Some(task) = self.tasks.get_mut(&pid).filter(|task| task.is_fair()) else { return };
        match change {
            SchedChange::Nice { nice, .. } | SchedChange::Priority { nice, .. } => {
                if task.weight != Weight::Idle {
                    task.weight = Weight::Nice(nice);
                }
                task.prio = 120 + i32::from(nice);
                self.push(Operation::SetNice { pid, nice });
            }
            SchedChange::Affinity { .. } => self.push(Operation::SetAffinity { pid }),
            SchedChange::Policy { policy, .. } => match fair_policy(policy) {
                Some(policy) => {
                    let nice = Weight::Nice(nice(task.prio));
                    task.weight = if policy == FairPolicy::Idle { Weight::Idle } else { nice };
                    self.push(Operation::SetPolicy { pid, policy });
                }
                None => self.leave_class(pid),
            },
            SchedChange::Scheduler { policy, nice, slice, .. } => match fair_policy(policy) {
                Some(policy) => {
                    let idle = policy == FairPolicy::Idle;
                    task.weight = if idle { Weight::Idle } else { Weight::Nice(nice) };
                    task.prio = 120 + i32::from(nice);
                    let slice = Some(slice).filter(|slice| *slice > 0);
                    self.push(Operation::SetScheduler { pid, policy, nice, slice });
                }
                None => self.leave_class(pid),
            },
        }
    }

    pub(super) fn leave_class(&mut self, pid: Pid) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.left_class = true;
            self.push(Operation::SwitchedFrom { pid });
        }
    }

    /// It may return with another weight, which its records from now on show.
    pub(super) fn return_to_class(&mut self, pid: Pid, ahead: &Window<'_>) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.left_class = false;
        let (at, known) = (task.location(), task.weight);
        let weight = first_weight(pid, Weight::Nice(nice(task.prio)), None, ahead);
        if weight != known {
            self.reweight(pid, weight);
        }
        self.push(Operation::SwitchedTo { pid, at });
    }
}

/// Whether the task's next run time is outside the fair class, if the task runs on until then.
pub fn outside_next(pid: Pid, ahead: &Window<'_>) -> Option<bool> {
    let mut entries = ahead.look(LookAhead::Class).peekable();
    while let Some(entry) = entries.next() {
        match entry.kind() {
            Some(Kind::Runtime { pid: of, vruntime, .. }) if of == pid => {
                return Some(is_outside(pid, vruntime, entries.peek().copied()));
            }
            Some(Kind::Switch { prev, .. }) if prev == pid => return None,
            _ => {}
        }
    }
    None
}

/// Whether a run time is outside the fair class: it prints vruntime 0, or the probe behind it finds the task on no queue.
pub fn is_outside(pid: Pid, printed: Option<u64>, behind: Option<&Entry>) -> bool {
    match (printed, behind.map(|entry| entry.what)) {
        (Some(printed), _) => printed == 0,
        (None, Some(What::Probe(probe))) => probe.point == Point::Runtime && probe.pid == pid && !probe.queued,
        _ => false,
    }
}
