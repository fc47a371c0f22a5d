//! Counters that the kernel always maintains: switches and CPU time of each task, for runs without a trace, and the CPU
//! time of the machine.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use schedlab_model::Nanos;

use schedlab_workload::cpu_stat::CPU_STATS;

use crate::cgroups::Groups;
use crate::shared_state::SharedState;

/// Counts of one task.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct TaskCounts {
    /// CPU time.
    pub cpu_ns: u64,
    /// Time waiting on runqueues; `None` for tasks that have exited.
    pub wait_ns: Option<u64>,
    /// Voluntary switches.
    pub voluntary: u64,
    /// Involuntary switches.
    pub involuntary: u64,
}

/// CPU time of the whole machine since boot, in clock ticks of user space (10 ms).
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct MachineTime {
    /// Time in tasks.
    pub busy: u64,
    /// Idle time.
    pub idle: u64,
    /// Time in interrupts.
    pub interrupts: u64,
    /// Time stolen by a hypervisor.
    pub steal: u64,
}

/// The counters at the end of the warm-up, as the baseline for those at the end of the run.
#[derive(Debug, Default)]
pub struct Counters {
    warmup: Nanos,
    /// Whether the counters of each task are read. With a trace they are not needed.
    tasks: bool,
    begun: Option<Counts>,
}

/// All counters at one time.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// By task id.
    pub tasks: BTreeMap<u32, TaskCounts>,
    /// The machine's.
    pub machine: MachineTime,
    /// The bandwidth statistics of each control group by its path, in the order of [`schedlab_workload::cpu_stat`].
    pub groups: BTreeMap<String, [u64; CPU_STATS]>,
}

impl Counters {
    /// Creates the counters of a run with this warm-up.
    #[must_use]
    pub fn new(warmup: Nanos, tasks: bool) -> Counters {
        Counters { warmup, tasks, begun: None }
    }

    /// Reads the baseline once the warm-up is over.
    pub fn tick(&mut self, shared: &SharedState, now: Nanos) {
        if self.begun.is_none() && (now >= self.warmup && now > 0) {
            self.begun = Some(Counts::now(shared, self.tasks));
        }
    }

    /// The time of the next call, on the monotonic clock.
    #[must_use]
    pub fn next(&self, begin: Nanos) -> Nanos {
        if self.begun.is_some() {
            Nanos::MAX
        } else {
            begin + self.warmup
        }
    }

    /// The difference between the counters now and at the end of the warm-up.
    #[must_use]
    pub fn finish(&self, shared: &SharedState) -> Counts {
        let mut counts = Counts::now(shared, self.tasks);
        let Some(begun) = &self.begun else { return counts };
        for (id, now) in &mut counts.tasks {
            let before = begun.tasks.get(id).copied().unwrap_or_default();
            now.cpu_ns = now.cpu_ns.saturating_sub(before.cpu_ns);
            now.wait_ns = now.wait_ns.map(|wait| wait.saturating_sub(before.wait_ns.unwrap_or(0)));
            now.voluntary = now.voluntary.saturating_sub(before.voluntary);
            now.involuntary = now.involuntary.saturating_sub(before.involuntary);
        }
        counts.machine = counts.machine.since(begun.machine);
        for (path, now) in &mut counts.groups {
            let before = begun.groups.get(path).copied().unwrap_or_default();
            now.iter_mut().zip(before).for_each(|(now, before)| *now = now.saturating_sub(before));
        }
        counts
    }
}

impl Counts {
    fn now(shared: &SharedState, tasks: bool) -> Counts {
        let made = if tasks { shared.control.tasks.load(Acquire) } else { 0 };
        let tasks = (0..made).filter_map(|id| Some((id, task(shared, id)?))).collect();
        let groups = shared.groups.as_ref().map(Groups::cpu_stat).unwrap_or_default();
        Counts { tasks, machine: MachineTime::now(), groups }
    }
}

fn task(shared: &SharedState, id: u32) -> Option<TaskCounts> {
    let slot = &shared.slots[id as usize];
    if slot.dead.load(Acquire) != 0 {
        return Some(TaskCounts {
            cpu_ns: slot.cpu_ns.load(Relaxed),
            wait_ns: None,
            voluntary: slot.voluntary.load(Relaxed),
            involuntary: slot.involuntary.load(Relaxed),
        });
    }
    let (pid, tid) = (slot.pid.load(Relaxed), slot.tid.load(Relaxed));
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/task/{tid}/{file}")).ok();
    let mut counts = switches(&read("status")?);
    // The file does not exist without CONFIG_SCHED_INFO.
    if let Some((cpu, wait)) = read("schedstat").and_then(|text| times(&text)) {
        (counts.cpu_ns, counts.wait_ns) = (cpu, Some(wait));
    }
    Some(counts)
}

fn switches(status: &str) -> TaskCounts {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0);
    TaskCounts {
        voluntary: field("voluntary_ctxt_switches:"),
        involuntary: field("nonvoluntary_ctxt_switches:"),
        ..TaskCounts::default()
    }
}

/// The time on the CPU and the time waiting on runqueues.
fn times(schedstat: &str) -> Option<(u64, u64)> {
    let mut fields = schedstat.split_ascii_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

impl MachineTime {
    /// Reads /proc/stat.
    #[must_use]
    pub fn now() -> MachineTime {
        fs::read_to_string("/proc/stat").map_or_else(|_| MachineTime::default(), |text| MachineTime::parse(&text))
    }

    fn parse(text: &str) -> MachineTime {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or("");
        let fields: Vec<u64> = line.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        MachineTime { busy: at(0) + at(1) + at(2), idle: at(3) + at(4), interrupts: at(5) + at(6), steal: at(7) }
    }

    fn since(self, before: MachineTime) -> MachineTime {
        MachineTime {
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            steal: self.steal.saturating_sub(before.steal),
        }
    }

    /// The sum of all times.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.busy + self.idle + self.interrupts + self.steal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_read() {
        let stat = "cpu  10 20 30 400 50 6 7 8 9 0\ncpu0 1 2\n";
        let time = MachineTime { busy: 60, idle: 450, interrupts: 13, steal: 8 };
        assert_eq!((MachineTime::parse(stat), time.total()), (time, 531));
        assert_eq!(MachineTime::parse(""), MachineTime::default());
        assert_eq!(times("123 45 6\n"), Some((123, 45)));
        assert_eq!(times("x"), None);
        let counts = switches("Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n");
        assert_eq!((counts.voluntary, counts.involuntary), (150, 545));
    }
}
