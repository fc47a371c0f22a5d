//! Pools: the tasks of one name, by which metrics are compared, and how much of what they did has a known cause.

use std::collections::BTreeMap;

use schedlab_model::Nanos;
use serde::Serialize;

use crate::causes::{Ends, Waits};
use crate::measure::Metrics;
use crate::program::Program;
use crate::recording::{Cause, Task};

/// The tasks of one name.
#[derive(Clone, Debug, Serialize)]
pub struct Pool {
    /// The name that they share, without numbers at its end.
    pub name: String,
    /// What is known of them.
    #[serde(flatten)]
    pub share: Share,
    /// Their metrics in the recording.
    pub recorded: Metrics,
}

/// What is known of the tasks of a pool.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Share {
    /// The names of its tasks in the scenario.
    pub tasks: Vec<String>,
    /// Waits that ended within the recording.
    pub waits: u64,
    /// Those that a task ended.
    pub by_task: u64,
    /// Those of them outside of a cycle that makes up most of the task's program, or of a task that several others
    /// wake: how many there are may depend on the schedule.
    pub irregular: u64,
    /// Those that a periodic timer ended.
    pub by_period: u64,
    /// Those that another timer ended.
    pub by_timer: u64,
    /// Those that an arrival from outside ended.
    pub by_arrival: u64,
    /// Those without a known cause.
    pub unknown: u64,
    /// CPU time of its programs, ns.
    pub work: Nanos,
}

impl Share {
    pub(crate) fn add(&mut self, task: &Task, waits: &Waits, program: &Program, name: &str) {
        self.tasks.push(name.to_owned());
        for ends in &waits.ends {
            let count = match ends {
                Ends::Task => &mut self.by_task,
                Ends::Period(_) => &mut self.by_period,
                Ends::Timer => &mut self.by_timer,
                Ends::Arrival => &mut self.by_arrival,
                Ends::Unknown => &mut self.unknown,
                Ends::End => continue,
            };
            *count += 1;
            self.waits += 1;
        }
        // Wakeups by several tasks coalesce while the task is awake, and how many do depends on the schedule.
        self.irregular += if several_wakers(task) { program.waits.0 } else { program.waits.1 };
        self.work += task.work();
    }
}

/// The share of a task's wakeups that a single waker must have for the others not to matter.
const ONE_WAKER: f64 = 0.8;

/// Whether no task is the waker of most of its waits for tasks.
fn several_wakers(task: &Task) -> bool {
    let mut wakers: BTreeMap<usize, usize> = BTreeMap::new();
    for wait in task.waits() {
        if let Cause::Task(waker) = wait.cause {
            *wakers.entry(waker).or_default() += 1;
        }
    }
    let all: usize = wakers.values().sum();
    wakers.values().max().is_some_and(|most| (*most as f64) < ONE_WAKER * all as f64)
}

/// The name of a pool: that of a task without what numbers it (`kworker/0:1` and `kworker/u4:2` are `kworker`).
#[must_use]
pub fn stem(name: &str) -> String {
    let kernel = name.split(['/', ':']).next().unwrap_or(name);
    let stem = kernel.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['-', '_', '.', '#', ' ']);
    match (stem, kernel) {
        ("", "") => "task".to_owned(),
        ("", kernel) => kernel.to_owned(),
        (stem, _) => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn names_of_one_pool() {
        for (name, pool) in [
            ("kworker/0:1H", "kworker"),
            ("worker-12", "worker"),
            ("ksoftirqd/3", "ksoftirqd"),
            ("nginx: worker", "nginx"),
            ("42", "42"),
            ("", "task"),
        ] {
            assert_eq!(stem(name), pool, "{name}");
        }
    }
}
