//! The state of every task according to its events. The first [`KEPT`] tasks keep their entry until the end of the run;
//! a later one is added to the others of its name when it exits, and its entry is reused: memory grows with living
//! tasks only.

use std::collections::BTreeMap;

use schedlab_model::{CpuId, Nanos, Pid, Table};

use crate::pids::Pids;

/// Tasks with an entry of their own whatever happens.
const KEPT: usize = 1000;
/// No time.
pub const NEVER: Nanos = Nanos::MAX;

/// Where a task is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not seen in any event that shows it.
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
    /// The number of the workload to whose metrics it has reported, see [`crate::state::Reporters`]; 0: none.
    pub reporter: u16,
}

/// All tasks. Entry 0 takes what names no task: the idle task and impossible pids.
#[derive(Clone, Debug)]
pub struct Tasks {
    slots: Pids,
    tasks: Table<Task>,
    names: Vec<String>,
    free: Vec<usize>,
    ended: BTreeMap<String, Ended>,
    /// Tasks that have ended, by the workload to whose metrics they had reported.
    ended_reporters: BTreeMap<u16, Task>,
    /// Tasks seen.
    seen: u64,
}

/// Tasks of one name that have ended, added up.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How many.
    pub tasks: u64,
    /// Their counters.
    pub sum: Task,
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
            reporter: 0,
        }
    }

    fn add(&mut self, other: &Task) {
        self.cpu_ns += other.cpu_ns;
        self.wait_ns += other.wait_ns;
        self.wait_ns_max = self.wait_ns_max.max(other.wait_ns_max);
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
        self.wakeups += other.wakeups;
        self.migrations += other.migrations;
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Tasks {
            slots: Pids::default(),
            tasks: vec![Task::new(0)].into(),
            names: vec![String::new()],
            free: Vec::new(),
            ended: BTreeMap::new(),
            ended_reporters: BTreeMap::new(),
            seen: 0,
        }
    }
}

impl Tasks {
    /// The slot of a pid, made on its first mention.
    #[inline]
    pub fn slot(&mut self, pid: Pid) -> usize {
        match self.slots.get(pid) {
            0 => self.add(pid),
            slot => slot as usize,
        }
    }

    /// The slot of a pid that was mentioned before.
    #[inline]
    pub fn seen_slot(&self, pid: Pid) -> Option<usize> {
        Some(self.slots.get(pid) as usize).filter(|slot| *slot > 0)
    }

    /// The task in a slot that [`Tasks::slot`] gave.
    #[inline]
    pub fn get(&self, slot: usize) -> &Task {
        &self.tasks[slot]
    }

    /// The same, to be changed.
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
            self.slots.forget(pid);
            let new = self.add(pid);
            self.names[new] = self.names[slot].clone();
        }
    }

    /// The task in the slot has left its CPU for the last time.
    #[cold]
    pub fn ended(&mut self, slot: usize) {
        if slot <= KEPT {
            return;
        }
        let task = std::mem::replace(&mut self.tasks[slot], Task::new(0));
        let name = std::mem::take(&mut self.names[slot]);
        self.slots.forget(task.pid);
        self.free.push(slot);
        if task.reporter > 0 {
            self.ended_reporters.entry(task.reporter).or_insert_with(|| Task::new(0)).add(&task);
        }
        let of_name = self.ended.entry(name).or_insert_with(|| Ended { tasks: 0, sum: Task::new(0) });
        of_name.tasks += 1;
        of_name.sum.add(&task);
    }

    /// Sets the name of a pid.
    pub fn rename(&mut self, pid: Pid, name: &str) {
        let slot = self.slot(pid);
        if self.names[slot] != name {
            self.names[slot] = name.to_owned();
        }
    }

    /// Every task with an entry, in order of appearance as far as that is known, with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&Task, &str)> {
        let all = self.tasks.iter().zip(&self.names).skip(1);
        all.filter(|(task, _)| task.pid != 0).map(|(task, name)| (task, name.as_str()))
    }

    /// The others, by name.
    pub fn iter_ended(&self) -> impl Iterator<Item = (&Ended, &str)> {
        self.ended.iter().map(|(name, ended)| (ended, name.as_str()))
    }

    /// The counters of all tasks that have reported to the metrics of a workload, added up.
    pub fn reporters(&self, number: u16) -> Task {
        let mut sum = Task::new(0);
        let alive = self.tasks.iter().skip(1).filter(|task| task.reporter == number);
        alive.chain(self.ended_reporters.get(&number)).for_each(|task| sum.add(task));
        sum
    }

    /// How many tasks there have been.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    #[cold]
    fn add(&mut self, pid: Pid) -> usize {
        if pid <= 0 {
            return 0;
        }
        self.seen += 1;
        let slot = self.free.pop().unwrap_or(self.tasks.len());
        self.slots.set(pid, slot as u32);
        if slot == self.tasks.len() {
            self.tasks.push(Task::new(pid));
            self.names.push(String::new());
        } else {
            self.tasks[slot] = Task::new(pid);
        }
        slot
    }
}
