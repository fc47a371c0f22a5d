//! `sched_switch`.

use schedlab_trace::{Kind, TaskState};

use super::{Cpu, Place, Reading, Task};
use crate::operation::{Left, Operation, Whereabouts};
use crate::step::Step;
use crate::window::Window;

impl Reading {
    pub(super) fn switch(&mut self, step: &Step, kind: Kind, ahead: &Window<'_>) {
        let Kind::Switch { prev, prev_prio, prev_state, next, next_prio } = kind else { return };
        let cpu = step.cpu;
        if prev != 0 && !self.tasks.contains_key(&prev) {
            self.introduce(prev, Some(prev_prio), Whereabouts::Running(cpu), None, ahead);
        }
        if next != 0 && !self.tasks.contains_key(&next) {
            self.introduce(next, Some(next_prio), Whereabouts::Queued(cpu), None, ahead);
        }
        for (pid, prio) in [(prev, prev_prio), (next, next_prio)] {
            self.follow_prio(pid, prio, ahead);
        }
        let left = left(prev_state);
        let fair = self.tasks.get(&next).is_some_and(Task::is_fair);
        self.push(Operation::Switch { cpu, prev, left, next, fair });
        if let Some(task) = self.tasks.get_mut(&prev) {
            task.woken = false;
            task.sets = task.sets.filter(|_| left == Left::Runnable);
        }
        self.put(prev, if left == Left::Runnable { Place::Queued(cpu) } else { Place::Off(cpu) });
        self.put(next, Place::Running(cpu));
        let view = self.cpu(cpu);
        *view = Cpu { current: Some(next), primed: view.primed, ticked: view.ticked, ..Cpu::default() };
        if prev_state == TaskState::Dead {
            self.tasks.remove(&prev);
            self.push(Operation::Forget { pid: prev });
        }
    }
}

pub(super) fn left(state: TaskState) -> Left {
    match state {
        TaskState::Running => Left::Runnable,
        TaskState::Sleeping | TaskState::Blocked => Left::Asleep,
        TaskState::Dead | TaskState::Stopped | TaskState::Parked => Left::Special,
    }
}
