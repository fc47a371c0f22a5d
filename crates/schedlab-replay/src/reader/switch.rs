//! `sched_switch`.

use schedlab_trace::{Kind, TaskState};

use super::task::{Place, Task};
use super::{Cpu, Reader};
use crate::operation::{Location, Operation, PrevState, Switch};
use crate::trace::{Entry, Window};

impl Reader {
    pub(super) fn switch(&mut self, entry: &Entry, kind: Kind, ahead: &Window<'_>) {
        let Kind::Switch { prev, prev_prio, prev_state, next, next_prio } = kind else { return };
        let cpu = entry.cpu;
        if prev != 0 && !self.tasks.contains_key(&prev) {
            self.add_task(prev, Some(prev_prio), Location::Running(cpu), None, ahead);
        }
        if next != 0 && !self.tasks.contains_key(&next) {
            self.add_task(next, Some(next_prio), Location::Queued(cpu), None, ahead);
        }
        for (pid, prio) in [(prev, prev_prio), (next, next_prio)] {
            self.follow_prio(pid, prio, ahead);
        }
        let state = prev_state_of(prev_state);
        let next_is_fair = self.tasks.get(&next).is_some_and(Task::is_fair);
        self.push(Operation::Switch(Switch { cpu, prev, prev_state: state, next, next_is_fair }));
        if let Some(task) = self.tasks.get_mut(&prev) {
            task.woken = false;
            task.affinity_of = None;
            task.change = task.change.filter(|_| state == PrevState::Runnable);
        }
        self.put(prev, if state == PrevState::Runnable { Place::Queued(cpu) } else { Place::Off(cpu) });
        self.put(next, Place::Running(cpu));
        let view = self.cpu(cpu);
        let idle_changed = if (prev == 0) == (next == 0) { view.idle_changed } else { entry.time };
        let Cpu { primed, ticked, balances, inactive, .. } = *view;
        *view = Cpu { current: Some(next), primed, ticked, balances, inactive, idle_changed, ..Cpu::default() };
        if prev_state == TaskState::Dead {
            self.tasks.remove(&prev);
            self.push(Operation::Release { pid: prev });
        }
    }
}

/// How a task left its CPU.
pub fn prev_state_of(state: TaskState) -> PrevState {
    match state {
        TaskState::Running => PrevState::Runnable,
        TaskState::Sleeping | TaskState::Blocked => PrevState::Asleep,
        TaskState::Dead | TaskState::Stopped | TaskState::Parked => PrevState::Special,
    }
}
