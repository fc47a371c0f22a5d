//! Scheduling class and weight of a task: no record tells of their change, later ones show it.
//!
//! Where vruntime is printed (up to 6.7), runtimes outside the fair class print 0.

use schedlab_model::Pid;

use super::ahead::first_weight;
use super::{is_fair, nice, Reading};
use crate::operation::{Operation, Weight};
use crate::window::Window;

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
                self.push(Operation::Introduce { pid, weight, at, first: None });
            }
            _ => {}
        }
        let idle = self.tasks.get(&pid).is_some_and(|task| task.weight == Weight::Idle);
        if before != prio && is_fair(prio) && !idle {
            self.reweight(pid, Weight::Nice(nice(prio)));
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
