//! One task per CPU, legal state transitions, every wakeup ends in a run.

use schedlab_model::{CpuId, Nanos, Table, TaskId};

use super::Finding;

/// How a task left its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnCpu {
    /// Preempted: it stays runnable.
    Preempted,
    /// It sleeps (a waker may already have found it).
    Blocked,
    /// It is dead.
    Exited,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    New,
    /// Woken or preempted at this time, not yet running.
    Runnable(Nanos),
    Running(CpuId),
    Sleeping,
    Dead,
}

/// The checker's record of every task.
#[derive(Clone, Default, Debug)]
pub struct Lives {
    tasks: Table<State>,
    /// Woken while still leaving their CPU.
    early: Vec<TaskId>,
    pub switches: u64,
    pub wakeups: u64,
}

impl Lives {
    /// A task was created, in a new place or in that of a dead task.
    pub fn created(&mut self, task: TaskId) -> Option<Finding> {
        let length = self.tasks.len().max(task.index() + 1);
        self.tasks.resize(length, State::New);
        let state = std::mem::replace(&mut self.tasks[task.index()], State::New);
        if matches!(state, State::New | State::Dead) {
            return None;
        }
        illegal(task, state, "created")
    }

    #[inline]
    pub fn woken(&mut self, task: TaskId, now: Nanos) -> Option<Finding> {
        self.wakeups += 1;
        let state = &mut self.tasks[task.index()];
        match *state {
            State::New | State::Sleeping => *state = State::Runnable(now),
            // Its CPU is inside schedule().
            State::Running(_) => self.early.push(task),
            State::Runnable(_) | State::Dead => return illegal(task, *state, "woken"),
        }
        None
    }

    /// It was woken while its CPU was inside `__schedule`, which picked it again.
    pub fn kept(&mut self, task: TaskId) {
        self.early.retain(|early| *early != task);
    }

    #[inline]
    pub fn leave(&mut self, cpu: CpuId, task: TaskId, how: OnCpu) -> Option<Finding> {
        let state = &mut self.tasks[task.index()];
        if *state != State::Running(cpu) {
            return illegal(task, *state, "switched out");
        }
        *state = match how {
            OnCpu::Preempted => State::Runnable(0),
            OnCpu::Blocked => State::Sleeping,
            OnCpu::Exited => State::Dead,
        };
        if let Some(at) = self.early.iter().position(|early| *early == task) {
            self.early.swap_remove(at);
            *state = State::Runnable(0);
        }
        None
    }

    #[inline]
    pub fn enter(&mut self, cpu: CpuId, task: TaskId) -> Option<Finding> {
        self.switches += 1;
        let state = &mut self.tasks[task.index()];
        if !matches!(*state, State::Runnable(_)) {
            return illegal(task, *state, "switched in");
        }
        *state = State::Running(cpu);
        None
    }

    /// Tasks that wait for a CPU, according to this record.
    pub fn runnable(&self) -> impl Iterator<Item = TaskId> + '_ {
        let waiting = |state: &State| matches!(state, State::Runnable(_));
        self.tasks.iter().enumerate().filter(move |(_, s)| waiting(s)).map(|(i, _)| TaskId(i as u32))
    }
}

#[cold]
fn illegal(task: TaskId, state: State, what: &str) -> Option<Finding> {
    Some(("legal_transitions", format!("{task:?} was {what} while {state:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const CPU: CpuId = CpuId(0);

    fn fresh() -> Lives {
        let mut lives = Lives::default();
        lives.created(A);
        lives
    }

    #[test]
    fn a_complete_life_is_legal() {
        let mut lives = fresh();
        assert_eq!(lives.woken(A, 1), None);
        assert_eq!(lives.enter(CPU, A), None);
        assert_eq!(lives.leave(CPU, A, OnCpu::Preempted), None);
        assert_eq!(lives.enter(CPU, A), None);
        assert_eq!(lives.woken(A, 2), None);
        assert_eq!(lives.leave(CPU, A, OnCpu::Blocked), None);
        assert_eq!(lives.enter(CPU, A), None);
        assert_eq!(lives.leave(CPU, A, OnCpu::Exited), None);
    }

    #[test]
    fn illegal_transitions_are_found() {
        assert!(fresh().enter(CPU, A).is_some(), "ran without a wakeup");
        let mut lives = fresh();
        lives.woken(A, 1);
        assert!(lives.woken(A, 2).is_some(), "woken twice");
        lives.enter(CPU, A);
        assert!(lives.enter(CpuId(1), A).is_some(), "on two CPUs");
        assert!(lives.leave(CpuId(1), A, OnCpu::Blocked).is_some(), "switched out on a CPU it was not on");
    }
}
