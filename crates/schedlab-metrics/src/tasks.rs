//! The state of every task as its events tell it, indexed by pid without a map.

use schedlab_model::{CpuId, Nanos, Pid};

/// The largest pid a kernel can hand out (PID_MAX_LIMIT).
const PID_MAX: usize = 4 << 20;
/// No time.
pub const NEVER: Nanos = Nanos::MAX;

/// Where a task is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not seen in any event that tells.
    Unknown,
    /// Off the runqueue.
    Sleeping,
    /// Between `sched_waking` and `sched_wakeup`: on its way to a runqueue.
    Waking,
    /// On a runqueue, not running.
    Waiting,
    /// On a CPU.
    Running,
    /// Gone.
    Dead,
}

/// One task and its counters.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its pid.
    pub pid: Pid,
    /// Its state.
    pub state: State,
    /// Where it runs or waits.
    pub cpu: CpuId,
    /// Since when it is in `state`.
    pub since: Nanos,
    /// When the wakeup under way began, or [`NEVER`].
    pub waking_at: Nanos,
    /// On-CPU time.
    pub cpu_ns: Nanos,
    /// Time runnable and not running.
    pub wait_ns: Nanos,
    /// Longest single wait.
    pub wait_ns_max: Nanos,
    /// Switches away because it slept.
    pub voluntary: u64,
    /// Switches away while it was still runnable.
    pub involuntary: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Changes of CPU.
    pub migrations: u64,
}

/// All tasks. Entry 0 takes what names no task: the idle task and impossible pids.
#[derive(Clone, Debug)]
pub struct Tasks {
    slot_of_pid: Vec<u32>,
    tasks: Vec<Task>,
    names: Vec<String>,
}

impl Task {
    fn new(pid: Pid) -> Task {
        Task {
            pid,
            state: State::Unknown,
            cpu: CpuId(0),
            since: 0,
            waking_at: NEVER,
            cpu_ns: 0,
            wait_ns: 0,
            wait_ns_max: 0,
            voluntary: 0,
            involuntary: 0,
            wakeups: 0,
            migrations: 0,
        }
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Tasks { slot_of_pid: Vec::new(), tasks: vec![Task::new(0)], names: vec![String::new()] }
    }
}

impl Tasks {
    /// The slot of a pid, made on its first mention.
    #[inline]
    pub fn slot(&mut self, pid: Pid) -> usize {
        // A negative pid becomes a huge index and takes the slow path.
        match self.slot_of_pid.get(pid as usize) {
            Some(slot) if *slot != 0 => *slot as usize,
            _ => self.add(pid),
        }
    }

    /// The task in a slot that [`Tasks::slot`] gave.
    #[inline]
    pub fn at(&mut self, slot: usize) -> &mut Task {
        &mut self.tasks[slot]
    }

    /// The slots of all tasks.
    pub fn slots(&self) -> std::ops::Range<usize> {
        1..self.tasks.len()
    }

    /// A pid is handed out anew: the task that had it before keeps its own entry.
    pub fn forked(&mut self, pid: Pid) {
        let slot = self.slot(pid);
        if self.tasks[slot].state == State::Dead {
            self.slot_of_pid[pid as usize] = 0;
            let new = self.add(pid);
            self.names[new] = self.names[slot].clone();
        }
    }

    /// Sets the name of a pid.
    pub fn rename(&mut self, pid: Pid, name: &str) {
        let slot = self.slot(pid);
        if self.names[slot] != name {
            self.names[slot] = name.to_owned();
        }
    }

    /// Every task in order of appearance, with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&Task, &str)> {
        self.tasks.iter().zip(&self.names).skip(1).map(|(task, name)| (task, name.as_str()))
    }

    #[cold]
    fn add(&mut self, pid: Pid) -> usize {
        let Ok(index) = usize::try_from(pid) else { return 0 };
        if index == 0 || index > PID_MAX {
            return 0;
        }
        if self.slot_of_pid.len() <= index {
            self.slot_of_pid.resize((index + 1).next_power_of_two(), 0);
        }
        let slot = self.tasks.len();
        self.slot_of_pid[index] = slot as u32;
        self.tasks.push(Task::new(pid));
        self.names.push(String::new());
        slot
    }
}
