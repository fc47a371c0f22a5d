//! `sched_switch`.

use schedlab_trace::{Kind, TaskState};

use super::{is_fair, Place, Reading};
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
            self.follow_prio(pid, prio);
            self.follow_class(pid, prio);
        }
        let left = left(prev_state);
        let fair = next != 0 && is_fair(next_prio);
        self.push(Operation::Switch { cpu, prev, left, next, fair });
        self.put(prev, if left == Left::Runnable { Place::Queued(cpu) } else { Place::Off(cpu) });
        self.put(next, Place::Running(cpu));
        let view = self.cpu(cpu);
        (view.current, view.flag, view.blocked, view.yields) = (Some(next), false, false, false);
        if prev_state == TaskState::Dead {
            self.tasks.remove(&prev);
            self.push(Operation::Forget { pid: prev });
        }
    }

    /// A task that left the fair class (a real-time policy, a boost) is not the model's; one that came back is new.
    fn follow_class(&mut self, pid: i32, prio: i32) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        let (was, is) = (is_fair(task.prio), is_fair(prio));
        task.prio = prio;
        if was && !is {
            self.push(Operation::Forget { pid });
        } else if is && !was {
            task.taken = false;
            let at = match task.place {
                Place::Running(cpu) => Whereabouts::Running(cpu),
                Place::Queued(cpu) => Whereabouts::Queued(cpu),
                Place::Off(cpu) => Whereabouts::Asleep(cpu),
            };
            self.push(Operation::Introduce { pid, prio, at, first: None });
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
