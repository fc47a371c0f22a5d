//! Scheduling class and attributes of a task: probes and system calls announce a change; without them later records
//! show it.
//!
//! Where vruntime is printed (up to 6.7), run times outside the fair class print 0.

use schedlab_model::{CpuId, Pid};
use schedlab_policy::FairPolicy;
use schedlab_trace::Kind;

use super::code::{next_on, picks_again};
use super::first::group_ahead;
use super::task::{is_fair, nice, prio, Place};
use super::weight::first_weight;
use super::Reader;
use crate::operation::{Location, NewTask, Operation, Weight};
use crate::trace::{fair_policy, Entry, LookAhead, Point, SchedChange, What, Window};

impl Reader {
    /// A record gives a task's priority: its class and nice value, if they have changed.
    pub(super) fn follow_prio(&mut self, pid: Pid, prio: i32, ahead: &Window<'_>) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let before = std::mem::replace(&mut task.prio, prio);
        match (is_fair(before), is_fair(prio)) {
            (true, false) if !task.left_class => self.leave_class_unannounced(pid),
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

    /// Whether a charge in task context belongs to the change that the task has announced: the task is enqueued again
    /// right behind it, as probes show. Without probes a system call that changes something is charged next, unless
    /// `schedule()` comes first because need-resched is set.
    pub(super) fn is_change_pending(&mut self, entry: &Entry, ahead: &Window<'_>) -> bool {
        let Some(task) = self.tasks.get_mut(&entry.pid) else { return false };
        let Some(change) = task.change else { return false };
        if ahead.shows_moves() && !change.leaves_fair_class() {
            return requeued_behind(entry, change.pid(), ahead);
        }
        if picks_again(entry, ahead) || charges_to_preempt(entry, ahead) {
            return false;
        }
        if !change.may_change_nothing() {
            return true;
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

    /// A task is enqueued without a wakeup: the change that the running task has announced for it is made here, if no
    /// charge preceded it. A change that was not announced is a new affinity (`do_set_cpus_allowed`), set by any code:
    /// a kernel thread its own, as the rescuer of a workqueue does, a write to a cpuset those of the tasks in it, or a
    /// `sched_setaffinity` whose record is missing. Nice values and policies are announced by probes of their own.
    /// `sched_setnuma` enqueues a task in the same way. It changes the node that the task prefers and not its mask, so
    /// that on a machine with several nodes the mask counts as unchanged.
    pub(super) fn requeued(&mut self, entry: &Entry, on: CpuId, (pid, restored): (Pid, bool), ahead: &Window<'_>) {
        let announced =
            self.tasks.get(&entry.pid).and_then(|task| task.change).is_some_and(|change| change.pid() == pid);
        if announced && entry.in_task() {
            self.make_pending_change(entry.pid, true, ahead);
        } else if restored {
            let waits = self.place(pid) == Some(Place::Queued(on));
            let view = self.cpu(entry.cpu);
            if view.unexplained.take() == Some(pid) || waits && view.changed_task.take() != Some(pid) {
                // The code that set it may move the task itself, as after an announced one.
                if let Some(setter) = self.tasks.get_mut(&entry.pid) {
                    setter.affinity_of = Some(pid);
                }
                if let Some(task) = self.tasks.get_mut(&pid) {
                    task.affinity_set |= !self.kernel.several_nodes;
                }
                self.push(Operation::SetAffinity { pid });
            }
        }
    }

    /// A task outside the fair class is charged where its return was announced. Whether it has returned.
    pub(super) fn announced_return(&mut self, pid: Pid, ahead: &Window<'_>) -> bool {
        let Some(task) = self.tasks.get_mut(&pid).filter(|task| task.left_class) else { return false };
        let Some(change) = task.change.filter(|change| change.pid() == pid && change.enters_fair_class()) else {
            return false;
        };
        task.change = None;
        self.make_sched_change(change, ahead);
        true
    }

    /// An announced change is made at its charge, or else before the next record of the code that makes it.
    pub(super) fn make_pending_change(&mut self, pid: Pid, charged: bool, ahead: &Window<'_>) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        match task.change {
            Some(change) if charged || !change.may_change_nothing() => {
                task.change = None;
                self.make_sched_change(change, ahead);
            }
            _ => {}
        }
    }

    fn make_sched_change(&mut self, change: SchedChange, ahead: &Window<'_>) {
        let pid = change.pid();
        let Some(task) = self.tasks.get(&pid) else { return };
        let (fair, returns) = (task.is_fair(), task.left_class && change.enters_fair_class());
        if fair && change.leaves_fair_class() {
            self.leave_class(pid);
        } else if fair {
            self.set_attributes(change);
        } else if returns {
            self.set_attributes(change);
            self.switch_to_class(pid, ahead);
        }
    }

    /// A change within the fair class, or to it.
    fn set_attributes(&mut self, change: SchedChange) {
        let pid = change.pid();
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        match change {
            SchedChange::Nice { nice, .. } | SchedChange::Priority { nice, .. } => {
                if task.weight != Weight::Idle {
                    task.weight = Weight::Nice(nice);
                }
                task.prio = prio(nice);
                self.push(Operation::SetNice { pid, nice });
            }
            SchedChange::Affinity { .. } => {
                task.affinity_set = true;
                self.push(Operation::SetAffinity { pid });
            }
            SchedChange::Policy { policy, .. } => {
                let Some(policy) = fair_policy(policy) else { return };
                let nice = Weight::Nice(nice(task.prio));
                task.weight = if policy == FairPolicy::Idle { Weight::Idle } else { nice };
                self.push(Operation::SetPolicy { pid, policy });
            }
            SchedChange::Scheduler { policy, nice, slice, .. } => {
                let Some(policy) = fair_policy(policy) else { return };
                let idle = policy == FairPolicy::Idle;
                task.weight = if idle { Weight::Idle } else { Weight::Nice(nice) };
                task.prio = prio(nice);
                let slice = Some(slice).filter(|slice| *slice > 0);
                self.push(Operation::SetScheduler { pid, policy, nice, slice });
            }
        }
    }

    /// A task is found outside the class, or about to be, though nothing announced it.
    pub(super) fn leave_class_unannounced(&mut self, pid: Pid) {
        self.unannounced += 1;
        self.leave_class(pid);
    }

    fn leave_class(&mut self, pid: Pid) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.left_class = true;
            self.push(Operation::SwitchedFrom { pid });
        }
    }

    /// A return that nothing announced.
    pub(super) fn return_to_class(&mut self, pid: Pid, ahead: &Window<'_>) {
        if !self.announced_return(pid, ahead) {
            self.switch_to_class(pid, ahead);
        }
    }

    /// `switched_to_fair`. Where vruntime is printed, the task's records from now on show its weight.
    fn switch_to_class(&mut self, pid: Pid, ahead: &Window<'_>) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.left_class = false;
        let (at, known) = (task.location(), task.weight);
        let weight = first_weight(pid, known, None, ahead);
        if weight != known {
            self.reweight(pid, weight);
        }
        self.push(Operation::SwitchedTo { pid, at });
        // `switched_to_fair` of the running task ends in `resched_curr`.
        if let Location::Running(cpu) = at {
            let view = self.cpu(cpu);
            (view.flag, view.full, view.resched) = (true, true, true);
        }
    }
}

/// Whether a charge is that of a `schedule()` that preempts the task in the kernel.
pub fn charges_to_preempt(entry: &Entry, ahead: &Window<'_>) -> bool {
    entry.flag() && next_on(entry, LookAhead::TaskCode, ahead).is_some_and(|next| next.preempts)
}

/// Whether probes show that a task is enqueued again before the CPU's next event.
fn requeued_behind(entry: &Entry, pid: Pid, ahead: &Window<'_>) -> bool {
    let own = ahead.look(LookAhead::TaskCode).filter(|next| next.cpu == entry.cpu);
    let mut inside = own.take_while(|next| next.kind().is_none());
    inside.any(|next| matches!(next.what, What::Clock { pid: of, move_task: Some(_), .. } if of == pid))
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

/// Whether a run time is outside the fair class: it prints vruntime 0, or the probe behind it finds the task on no
/// queue.
pub fn is_outside(pid: Pid, printed: Option<u64>, behind: Option<&Entry>) -> bool {
    match (printed, behind.map(|entry| entry.what)) {
        (Some(printed), _) => printed == 0,
        (None, Some(What::Probe(probe))) => probe.point == Point::Runtime && probe.pid == pid && !probe.queued,
        _ => false,
    }
}
