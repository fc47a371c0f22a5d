//! A simulated task: where it is in its program, what is left of its current segment, what it waits for.

use std::collections::VecDeque;

use schedlab_model::{Nanos, Pid, Stream, TaskId};
use schedlab_workload::{Label, REGISTERS};

use crate::cost::Dice;
use crate::objects::Futex;

/// Work is kept in ns on a CPU of rate 1, shifted left by this, so that rates in 1/1024 divide nothing.
pub const WORK_SHIFT: u32 = 10;

/// Life of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Created, never woken.
    New,
    /// On a runqueue, or on a wakelist on its way to one.
    Runnable,
    /// On a CPU.
    Running,
    /// Waiting.
    Sleeping,
    /// Exited.
    Dead,
}

/// What the current segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Work in user mode.
    User,
    /// Work in kernel mode.
    Kernel,
    /// User mode until the wall clock reaches `Task::until`.
    Wall,
    /// User mode until another task lets it go on.
    Spin,
}

/// What happens when the current segment ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The operation at `pc` begins.
    Fetch,
    /// The operation at `pc` takes effect.
    Effect,
}

/// What a sleeping task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Nothing: it does not sleep.
    Nothing,
    /// A timer.
    Timer,
    /// A shared object (global index).
    Object(u32),
    /// Its own futex word.
    Own,
    /// A child's exit.
    Child,
}

/// A task named for good: what is kept of a task that may be gone, and what programs hold in a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    /// Where it is, or was.
    pub task: TaskId,
    /// Who it is.
    pub pid: Pid,
}

impl Handle {
    /// As a register holds it.
    pub fn to_register(self) -> i64 {
        i64::from(self.pid) << 32 | i64::from(self.task.0)
    }

    /// From a register; any number will do.
    pub fn from_register(value: i64) -> Self {
        Handle { task: TaskId(value as u32), pid: (value >> 32) as Pid }
    }
}

/// A task. Its id is a place in the tables of engine and policy, which a later task takes over once it is gone; its pid
/// is its own.
#[derive(Clone, Debug)]
pub struct Task {
    pub id: TaskId,
    /// As traces print it: tasks are counted from 1 (0 is idle).
    pub pid: Pid,
    /// The kernel's 0..139.
    pub prio: i32,
    pub workload: u16,
    /// Global index of its program.
    pub program: u32,
    pub pc: Label,
    pub step: Step,
    pub life: Life,
    pub mode: Mode,
    /// Overhead to be spent before the segment goes on.
    pub cost_left: u64,
    /// Work left in the segment.
    pub work_left: u64,
    /// Work of the call in which it sleeps that is left for after it.
    pub after: Nanos,
    /// User-mode work of steps too short for a segment of their own; joins the next segment.
    pub carry: u64,
    pub until: Nanos,
    /// Bytes left of the channel call in progress.
    pub io_left: u32,
    /// The operation blocked and has been woken since it began.
    pub resumed: bool,
    pub wait: Wait,
    pub registers: [i64; REGISTERS],
    pub own: Futex,
    pub stack: Vec<Handle>,
    pub mail: VecDeque<i64>,
    pub parent: Option<Handle>,
    /// Shares its creator's address space.
    pub thread: bool,
    pub children: u32,
    pub zombies: u32,
    /// Address space.
    pub process: u32,
    pub timer_slack: Nanos,
    /// Draws of costs.
    pub dice: Dice,
    /// Draws of its program.
    pub stream: Stream,
    /// Identity of its streams, from which its children's are derived.
    pub key: u64,
    pub forked: u32,
    /// Steps taken since time last moved for it.
    pub idle_steps: u32,
    /// CPU whose lock it holds, with the lock object.
    pub cpu_lock: Option<(u32, usize)>,
}

impl Task {
    /// Its name for good.
    pub fn handle(&self) -> Handle {
        Handle { task: self.id, pid: self.pid }
    }

    /// Whether the segment has nothing left but what other tasks decide.
    #[inline]
    pub fn segment_done(&self, now: Nanos) -> bool {
        self.cost_left == 0
            && match self.mode {
                Mode::User | Mode::Kernel => self.work_left == 0,
                Mode::Wall => now >= self.until,
                Mode::Spin => false,
            }
    }
}
