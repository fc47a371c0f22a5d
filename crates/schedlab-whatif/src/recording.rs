//! What each task of a recording did, in order: amounts of work, wakeups of others, and waits with what ended them.

use schedlab_model::{Nanos, Pid};

/// The place of a task in [`Recording::tasks`]. A pid that was used again is another task.
pub type TaskIndex = usize;

/// What a recording shows of its tasks.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The tasks, in the order of their first record.
    pub tasks: Vec<Task>,
    /// Time of the first record.
    pub start: Nanos,
    /// Time of the last record.
    pub end: Nanos,
    /// What was counted on the way.
    pub counts: Counts,
}

/// A task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its pid.
    pub pid: Pid,
    /// Its last name.
    pub name: String,
    /// The task that forked it within the recording.
    pub parent: Option<TaskIndex>,
    /// When it was forked, since the start; 0 for a task that was there before.
    pub forked: Nanos,
    /// Its priority when it was first seen, as `sched_switch` prints it.
    pub prio: i32,
    /// What it did.
    pub acts: Vec<Act>,
}

/// One thing that a task did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// It used CPU time. Preemptions do not end it.
    Work {
        /// How much.
        time: Nanos,
        /// How many wakeups there were in it, by the task or by interrupts.
        wakeups: u32,
        /// How often the task was switched out in it, or at its end.
        switches: u32,
    },
    /// It woke another task.
    Wake(TaskIndex),
    /// It forked a task.
    Fork(TaskIndex),
    /// Its priority changed to this one, as `sched_switch` prints it.
    Prio(i32),
    /// It blocked.
    Wait(Wait),
    /// It exited.
    Exit,
    /// A wakeup that turned out to have no effect.
    Nothing,
}

/// A time for which a task was blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// When it was switched out.
    pub from: Nanos,
    /// When its wakeup began.
    pub to: Nanos,
    /// What woke it.
    pub cause: Cause,
}

/// What ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A task, at this place of its acts.
    Task(TaskIndex),
    /// A hardware interrupt: nearly always a high-resolution timer.
    HardInterrupt,
    /// A softirq: a timer of the timer wheel, the network or a disk.
    SoftInterrupt,
    /// An interrupt of a CPU that was idle, in a trace without the flags of interrupts.
    Idle,
    /// No record shows it.
    Unknown,
    /// It lasted until the end of the recording.
    End,
}

/// What was counted while a recording was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Records.
    pub records: u64,
    /// Switches.
    pub switches: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Wakeups that only `sched_wakeup` shows, whose waker may be another task.
    pub wakeups_only: u64,
    /// Events that the recorder lost.
    pub lost: u64,
    /// Pids that a new task got while the old one had not exited in the recording.
    pub reused: u64,
    /// `sched_stat_runtime` records.
    pub charges: u64,
    /// Stays on a CPU whose run time no record shows, so that it is the time between two switches.
    pub uncharged: u64,
    /// CPUs that records name.
    pub cpus: usize,
    /// Records with any flag of context.
    pub flagged: u64,
}

impl Recording {
    /// How long it lasted.
    #[must_use]
    pub fn span(&self) -> Nanos {
        self.end - self.start
    }
}

impl Task {
    /// Its waits.
    pub fn waits(&self) -> impl Iterator<Item = &Wait> {
        self.acts.iter().filter_map(|act| match act {
            Act::Wait(wait) => Some(wait),
            _ => None,
        })
    }

    /// Its CPU time.
    #[must_use]
    pub fn work(&self) -> Nanos {
        self.acts.iter().map(|act| if let Act::Work { time, .. } = act { *time } else { 0 }).sum()
    }

    /// Whether it exited within the recording.
    #[must_use]
    pub fn exits(&self) -> bool {
        self.acts.last() == Some(&Act::Exit)
    }
}
