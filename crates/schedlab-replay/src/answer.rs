//! Why a recorded task waits at a moment: question and answer as plain data.

use std::collections::BTreeMap;

use schedlab_model::{Nanos, Pid};
use schedlab_policy::decision_view::{DecisionView, TaskState};
use schedlab_policy::fair::QueueView;
use serde::Serialize;

/// Which task, at which time of the trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// A pid, or a name.
    pub task: String,
    /// In ns, on the trace's clock.
    pub at: Nanos,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The task and its queue at the time.
    Why(Box<Why>),
    /// Not exactly one task of the fair class has the name: these have it.
    Tasks(Vec<Pid>),
    /// The trace does not cover the time: its first and last record.
    Outside(Nanos, Nanos),
}

/// A task at a moment.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// Names of the tasks below, by pid.
    pub tasks: BTreeMap<Pid, String>,
    /// Names of groups; always empty, because a trace does not name them.
    pub groups: BTreeMap<u32, String>,
    /// The row.
    pub kernel: &'static str,
    /// The time.
    pub at_ns: Nanos,
    /// CPU of the queue.
    pub cpu: u32,
    /// The task.
    pub pid: Pid,
    /// Running, waiting, delayed or sleeping.
    pub state: TaskState,
    /// When this state began.
    pub since_ns: Option<Nanos>,
    /// Its last wakeup.
    pub woken_ns: Option<Nanos>,
    /// What a sleeping task waits for; always empty, because a trace does not show it.
    pub waits_for: Option<&'static str>,
    /// The running task; `None`: idle, or a task of another class.
    pub runner: Option<Pid>,
    /// The row's pick when the running task was picked, from the root group down.
    pub picked: Vec<DecisionView>,
    /// Whether the kernel picked the same task.
    pub agrees: Option<bool>,
    /// The last decisions that let it run on.
    pub kept: Vec<DecisionView>,
    /// The number of these decisions.
    pub kept_total: u64,
    /// Always empty: the records show need-resched, and none shows the next tick.
    pub need_resched: Option<&'static str>,
    /// See `need_resched`.
    pub next_tick_ns: Option<Nanos>,
    /// The queue.
    pub queue: QueueView,
    /// When the state ended.
    pub ended_ns: Option<Nanos>,
    /// The row's decisions at that time.
    pub ended_by: Vec<DecisionView>,
}

/// Whether a task is meant by `task`: its pid, its name, or both as `waits` prints them, `NAME/PID`.
pub fn is_meant(task: &str, pid: Pid, name: &str) -> bool {
    let both = task.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).and_then(|pid| pid.parse().ok());
    task == name || task.parse() == Ok(pid) || both == Some(pid)
}

#[cfg(test)]
mod tests {
    use super::is_meant;

    #[test]
    fn a_task_is_named_by_pid_by_name_or_by_both() {
        for task in ["22", "ksoftirqd/1", "ksoftirqd/1/22"] {
            assert!(is_meant(task, 22, "ksoftirqd/1"), "{task}");
        }
        for task in ["ksoftirqd/22", "ksoftirqd/1/1", "1", "ksoftirqd", "x/22", ""] {
            assert!(!is_meant(task, 22, "ksoftirqd/1"), "{task}");
        }
    }
}
