//! The kernel's state of a task (`task_struct`). What the task executes is in its program.

use schedlab_model::{CpuId, Nanos, Pid, TaskId};
use schedlab_policy::NumaMemory;
use schedlab_workload::Timers;

use super::lines::TaskLines;
use crate::machine::{Code, Dice, Segment};

/// Life of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Created, never woken.
    New,
    /// Asleep, and claimed by a waker that has other wakeups to finish first (TASK_WAKING).
    Waking,
    /// On a runqueue, or on a wakelist on its way to one.
    Runnable,
    /// On a CPU.
    Running,
    /// Sleeping.
    Sleeping,
    /// Exited.
    Dead,
}

/// What a sleeping task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Nothing: it does not sleep.
    Nothing,
    /// A timer.
    Timer,
    /// A shared object, by its index among all.
    Object(u32),
    /// The mutex inside the kernel of a pipe, by the index of the pipe.
    Mutex(u32),
    /// The `mmap_lock` of its process.
    MmapLock,
    /// Its own futex word.
    Own,
    /// A child's exit.
    Child,
    /// A child of vfork: its exec or exit.
    Vfork,
    /// An interrupt for the vCPU that it is.
    Halt,
}

/// A task's unique name, for references that may outlive the task, and for the registers of programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    /// Its place.
    pub task: TaskId,
    /// Its pid, which no other task of the run has.
    pub pid: Pid,
}

impl Handle {
    /// As a register holds it.
    pub fn to_register(self) -> i64 {
        i64::from(self.pid) << 32 | i64::from(self.task.0)
    }

    /// From a register, whatever it holds.
    pub fn from_register(value: i64) -> Self {
        Handle { task: TaskId(value as u32), pid: (value >> 32) as Pid }
    }
}

/// A task. Its id is a place in the tables of kernel, policy and programs, which a later task reuses after it is dead;
/// its pid is unique.
#[derive(Clone, Debug)]
pub struct Task {
    pub id: TaskId,
    /// As traces print it: tasks are counted from 1 (0 is idle).
    pub pid: Pid,
    /// The kernel's 0..139.
    pub prio: i32,
    pub life: Life,
    pub wait: Wait,
    /// When it last went to sleep.
    pub blocked_at: Nanos,
    /// What is left of its segment, while it is not on a CPU.
    pub segment: Segment,
    /// Work of the call in which it sleeps that remains to be done after the sleep.
    pub after: Nanos,
    pub parent: Option<Handle>,
    /// Shares its creator's address space.
    pub thread: bool,
    /// Its parent sleeps until it executes a program or exits (`task_struct.vfork_done`).
    pub vfork_done: bool,
    pub children: u32,
    pub zombies: u32,
    /// Switches away from it while it was runnable.
    pub nivcsw: u32,
    /// CPU time of the child processes that have exited.
    pub children_time: Nanos,
    /// Its time in user mode until it last left a CPU.
    pub utime: Nanos,
    /// The same of its child processes that have exited.
    pub children_utime: Nanos,
    /// Address space.
    pub process: u32,
    pub timer_slack: Nanos,
    pub timers: Timers,
    /// The CPU on which it first waited for memory: its pages are on the node of that CPU.
    pub memory_home: Option<CpuId>,
    /// It waits for a disk (`in_iowait`), until the governor has seen it run again.
    pub in_iowait: bool,
    /// Its working set in KiB; 0: none is stated.
    pub working_set: u32,
    /// Its code.
    pub code: Code,
    /// Whether it has run before, if it states a working set or code.
    pub has_run: bool,
    /// Its memory, where its node matters.
    pub memory: Option<NumaMemory>,
    /// Its time in user mode when it last used its memory.
    pub memory_used: Nanos,
    /// Draws of costs.
    pub dice: Dice,
    pub lines: TaskLines,
}

impl Task {
    /// Its unique name.
    pub fn handle(&self) -> Handle {
        Handle { task: self.id, pid: self.pid }
    }
}
