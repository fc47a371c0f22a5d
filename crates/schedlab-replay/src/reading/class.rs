//! Scheduling class and weight of a task: probes tell of their change; without them no record does, and later ones show it.
//!
//! Where vruntime is printed (up to 6.7), runtimes outside the fair class print 0.

use schedlab_model::Pid;
use schedlab_policy::FairPolicy;
use schedlab_trace::Kind;

use super::ahead::{first_weight, group_ahead};
use super::{is_fair, nice, Reading};
use crate::operation::{Operation, Weight};
use crate::step::{Set, Step};
use crate::window::Window;

/// SCHED_OTHER, SCHED_BATCH, SCHED_IDLE.
fn fair_policy(number: u32) -> Option<FairPolicy> {
    match number {
        0 => Some(FairPolicy::Normal),
        3 => Some(FairPolicy::Batch),
        5 => Some(FairPolicy::Idle),
        _ => None,
    }
}

impl Reading {
    /// A record names a task with a priority: its class and nice value, if they are news.
    pub(super) fn follow_prio(&mut self, pid: Pid, prio: i32, ahead: &Window<'_>) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let before = std::mem::replace(&mut task.prio, prio);
        match (is_fair(before), is_fair(prio)) {
            (true, false) if !task.away => self.leave_class(pid),
            (_, true) if task.away => self.return_to_class(pid, ahead),
            (false, true) => {
                task.taken = false;
                task.weight = Weight::Nice(nice(prio));
                let (at, weight) = (task.at(), task.weight);
                let group = group_ahead(pid, ahead);
                self.push(Operation::Introduce { pid, weight, at, group, first: None });
            }
            _ => {}
        }
        let idle = self.tasks.get(&pid).is_some_and(|task| task.weight == Weight::Idle);
        if before != prio && is_fair(prio) && !idle {
            self.reweight(pid, Weight::Nice(nice(prio)));
        }
    }

    /// Whether a charge by a task's own code belongs to the change that this code has announced. A system call may change
    /// nothing; if it does it charges before anything else but `schedule()`, which may be called for.
    pub(super) fn is_pending(&mut self, step: &Step, ahead: &Window<'_>) -> bool {
        let Some(task) = self.tasks.get_mut(&step.pid) else { return false };
        if !task.sets.is_some_and(Set::may_change_nothing) {
            return task.sets.is_some();
        }
        match ahead.next_event_on(step.cpu) {
            Some(Kind::Switch { .. }) => false,
            _ if step.flag() => false,
            Some(Kind::Wakeup { .. } | Kind::WakeupNew { .. }) => {
                task.sets = None;
                false
            }
            _ => true,
        }
    }

    /// A task that left the fair class is charged where it announced its return.
    pub(super) fn come_back(&mut self, pid: Pid, ahead: &Window<'_>) {
        let Some(task) = self.tasks.get_mut(&pid).filter(|task| task.away) else { return };
        if matches!(task.sets, Some(Set::Policy { policy, .. }) if fair_policy(policy).is_some()) {
            task.sets = None;
            self.return_to_class(pid, ahead);
        }
    }

    /// Such a change comes with its charge, or else before the next record of the code that makes it.
    pub(super) fn set_pending(&mut self, pid: Pid, charged: bool) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        match task.sets {
            Some(set) if charged || !set.may_change_nothing() => {
                task.sets = None;
                self.set(set);
            }
            _ => {}
        }
    }

    fn set(&mut self, set: Set) {
        let pid = set.whose();
        let Some(task) = self.tasks.get_mut(&pid).filter(|task| task.is_fair()) else { return };
        match set {
            Set::Nice { nice, .. } | Set::Priority { nice, .. } => {
                if task.weight != Weight::Idle {
                    task.weight = Weight::Nice(nice);
                }
                task.prio = 120 + i32::from(nice);
                self.push(Operation::SetNice { pid, nice });
            }
            Set::Affinity { .. } => self.push(Operation::SetAffinity { pid }),
            Set::Policy { policy, .. } => match fair_policy(policy) {
                Some(policy) => {
                    let nice = Weight::Nice(nice(task.prio));
                    task.weight = if policy == FairPolicy::Idle { Weight::Idle } else { nice };
                    self.push(Operation::SetPolicy { pid, policy });
                }
                None => self.leave_class(pid),
            },
            Set::Scheduler { policy, nice, slice, .. } => match fair_policy(policy) {
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

    pub(super) fn reweight(&mut self, pid: Pid, weight: Weight) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.weight = weight;
        if let Weight::Nice(nice) = weight {
            task.prio = 120 + i32::from(nice);
        }
        self.push(Operation::Reweight { pid, weight });
    }

    pub(super) fn leave_class(&mut self, pid: Pid) {
        if let Some(task) = self.tasks.get_mut(&pid) {
            task.away = true;
            self.push(Operation::Leave { pid });
        }
    }

    /// It may come back with another weight: its records from now on tell.
    pub(super) fn return_to_class(&mut self, pid: Pid, ahead: &Window<'_>) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.away = false;
        let (at, known) = (task.at(), task.weight);
        let weight = first_weight(pid, Weight::Nice(nice(task.prio)), None, ahead);
        if weight != known {
            self.reweight(pid, weight);
        }
        self.push(Operation::Return { pid, at });
    }
}
