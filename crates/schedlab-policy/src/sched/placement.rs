//! `select_task_rq_fair` for a recorded wakeup, fork or exec, with the state of the CPUs given by a caller that follows
//! a trace.
//!
//! The queues and loads are those of a [`Sched`]; the state of core code is passed with each call ([`Situation`]),
//! except for the wakeup histories (`wakee_flips`, `recent_used_cpu`), which are followed across calls. Not modelled:
//! other classes, SIS_PROP's average cost of a search.

use std::sync::Arc;

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId, Topology};

use super::{Classes, Core, Sched};
use crate::class::{ClassId, ClassList};
use crate::core::task::{Task, Wakee};
use crate::core::types::{TaskAttr, Tested, WakeKind};
use crate::fair::Fair;
use crate::features::Feature;
use crate::select::SelectRule;
use crate::KernelConfig;

/// The classes of a [`Sched`] that a trace shows tasks of.
const IDLE: ClassId = ClassId(Classes::LEN - 1);
const FAIR: ClassId = ClassId(Classes::LEN - 2);

/// Selects CPUs for tasks as one kernel does on one machine.
#[derive(Clone, Debug)]
pub struct Placement {
    pub(super) core: Core,
    /// Which task each entry of `core.tasks` describes.
    owners: Vec<Option<i32>>,
}

/// The state that a selection depends on.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The task to be placed, and its pid.
    pub task: TaskId,
    /// See `task`.
    pub pid: i32,
    /// `task_cpu`.
    pub prev: CpuId,
    /// The CPU that executes the selection.
    pub this: CpuId,
    /// The reason for the selection.
    pub kind: WakeKind,
    /// The CPUs that are idle (`available_idle_cpu`).
    pub idle: CpuMask,
    /// The CPUs that run a task of another class.
    pub others: CpuMask,
    /// The CPUs on which a task of another class waits.
    pub others_wait: CpuMask,
    /// The CPUs that the task may use.
    pub allowed: CpuMask,
    /// `nr_idle_scan` of the previous CPU's cache; under SIS_PROP how many CPUs the search may test, which is three at
    /// least.
    pub nr_idle_scan: u32,
    /// `has_idle_cores` of that cache.
    pub has_idle_cores: bool,
    /// `numa_preferred_nid` of the task.
    pub preferred_node: Option<u32>,
    /// The task that runs on the waking CPU is a kernel thread of that CPU (`is_per_cpu_kthread`).
    pub kthread: bool,
    /// That task makes the wakeup, not an interrupt (`in_task()`).
    pub in_task: bool,
    /// The clock.
    pub now: Nanos,
    /// The tick count, if the trace shows it.
    pub jiffies: Option<u64>,
}

/// The result of a selection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The CPU.
    pub cpu: CpuId,
    /// The rule that decided.
    pub rule: SelectRule,
    /// The numbers that were compared on the way.
    pub compared: Vec<(&'static str, i64)>,
}

/// The wakeup history of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeHistory {
    /// `wakee_flips`.
    pub flips: u32,
    /// `recent_used_cpu`.
    pub recent_used_cpu: CpuId,
}

impl Placement {
    /// A machine whose tasks have no history yet.
    #[must_use]
    pub fn new(config: &KernelConfig, topology: Arc<Topology>) -> Self {
        Placement { core: Core::new(config, topology, IDLE, 0), owners: Vec::new() }
    }

    /// The machine.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.core.topology
    }

    /// Selects a CPU. The wakeup histories of the waker and of the task advance. `pids` has the pids of all tasks.
    pub fn select_task_rq_fair(&mut self, sched: &mut Sched, asked: &Situation, pids: &[i32]) -> Placed {
        let fair = &mut sched.fair;
        self.core.jiffies_shown = asked.jiffies;
        self.adopt(asked.task, asked.pid);
        for cpu in self.core.topology.all().iter().collect::<Vec<_>>() {
            self.set_cpu(fair, cpu, asked, pids);
        }
        let (topology, llc) = (self.core.topology.clone(), self.core.idle.llc_of(asked.prev));
        let shared = self.core.idle.llc_mut(llc);
        (shared.nr_idle_scan, shared.has_idle_cores) = (asked.nr_idle_scan, asked.has_idle_cores);
        if fair.config.has(Feature::SisProp) {
            self.core.set_sis_prop_budget(asked.this, asked.nr_idle_scan, asked.now);
        }
        let task = &mut self.core.tasks[asked.task.index()];
        (task.cpu, task.preferred_node) = (asked.prev, asked.preferred_node);
        task.set_affinity(Some(&asked.allowed), &topology);
        self.set_waker(asked);
        let mut tested = Tested::new(asked.this, true);
        tested.in_task = asked.in_task;
        let (cpu, rule) = fair.with(&mut self.core).select_task_rq_fair(asked.task, asked.kind, &mut tested, asked.now);
        let numbers = tested.candidates().iter().flat_map(|candidate| candidate.numbers.iter().copied());
        let waker = [("tasks on the waker's CPU", i64::from(self.core.nr_running(asked.this)))];
        Placed { cpu, rule, compared: waker.into_iter().chain(numbers).collect() }
    }

    /// A CPU loses its scheduling domains, or gets them again.
    pub fn set_cpu_active(&mut self, cpu: CpuId, active: bool, now: Nanos) {
        self.core.set_cpu_active(cpu, active, now);
    }

    /// A task's history, once it is known.
    #[must_use]
    pub fn history(&self, task: TaskId, pid: i32) -> Option<WakeHistory> {
        let known = self.owners.get(task.index()).is_some_and(|owner| *owner == Some(pid));
        known.then(|| {
            let task = &self.core.tasks[task.index()];
            WakeHistory { flips: task.wakee.flips, recent_used_cpu: task.recent_used_cpu }
        })
    }

    /// The tick at which a task's flips were halved last (`wakee_flip_decay_ts`), as the recorded kernel has it.
    pub fn set_flips_decayed(&mut self, task: TaskId, pid: i32, jiffies: u64) {
        self.adopt(task, pid);
        self.core.tasks[task.index()].wakee.decayed = jiffies;
    }

    /// Sets a task's wakeup history to that of the recorded kernel. When new flips were last halved is not known.
    pub fn set_history(&mut self, task: TaskId, pid: i32, history: WakeHistory, now: Nanos) {
        self.adopt(task, pid);
        let jiffies = self.core.jiffies(now);
        let task = &mut self.core.tasks[task.index()];
        if task.wakee.flips != history.flips {
            (task.wakee.flips, task.wakee.decayed) = (history.flips, jiffies);
        }
        task.recent_used_cpu = history.recent_used_cpu;
    }

    /// Sets `wakee_flips` of the task that runs on a CPU (of its idle task: `None`).
    pub fn set_waker_flips(&mut self, cpu: CpuId, waker: Option<(TaskId, i32)>, flips: u32, now: Nanos) {
        let decayed = self.core.jiffies(now);
        let wakee = match waker {
            Some((task, pid)) => {
                self.adopt(task, pid);
                &mut self.core.tasks[task.index()].wakee
            }
            None => &mut self.core.idle_wakees[cpu.index()],
        };
        (wakee.flips, wakee.decayed) = (flips, decayed);
    }

    /// A child has its parent's history (`dup_task_struct`), and was last on its CPU (`wake_up_new_task`).
    pub fn fork(&mut self, parent: TaskId, parent_pid: i32, child: TaskId, child_pid: i32, cpu: CpuId) {
        let wakee = self.history(parent, parent_pid).map(|_| self.core.tasks[parent.index()].wakee);
        self.adopt(child, child_pid);
        let task = &mut self.core.tasks[child.index()];
        (task.wakee, task.recent_used_cpu) = (wakee.unwrap_or_default(), cpu);
    }

    /// The CPU's idle task was switched in.
    pub fn enter_idle(&mut self, cpu: CpuId, now: Nanos) {
        self.core.rqs[cpu.index()].stamp_idle(now);
        self.core.set_idle(cpu, true);
        self.core.idle.__update_idle_core(cpu);
    }

    /// Whether searches assume that a core of the CPU's cache is idle (`test_idle_cores`).
    #[must_use]
    pub fn has_idle_cores(&self, cpu: CpuId) -> bool {
        self.core.idle.llc(self.core.idle.llc_of(cpu)).has_idle_cores
    }

    /// The entry of a task; its id may have been reused.
    pub(super) fn adopt(&mut self, task: TaskId, pid: i32) {
        let (index, topology) = (task.index(), self.core.topology.clone());
        while self.core.tasks.len() <= index {
            self.core.add(TaskId(self.core.tasks.len() as u32), Task::new(&TaskAttr::default(), &topology), FAIR);
            self.owners.push(None);
        }
        if self.owners[index] != Some(pid) {
            self.core.add(task, Task::new(&TaskAttr::default(), &topology), FAIR);
            self.core.tasks[index].wakee = Wakee::default();
            self.owners[index] = Some(pid);
        }
    }

    /// Records identify kernel threads by name, so only the waker can be recognized as one.
    fn set_waker(&mut self, asked: &Situation) {
        let topology = self.core.topology.clone();
        let Some(waker) = self.core.curr(asked.this).filter(|waker| *waker != asked.task) else { return };
        let waker = &mut self.core.tasks[waker.index()];
        waker.attr.kthread = asked.kthread;
        if asked.kthread {
            waker.set_affinity(Some(&CpuMask::from_iter([asked.this])), &topology);
        }
    }

    fn set_cpu(&mut self, fair: &Fair, cpu: CpuId, asked: &Situation, pids: &[i32]) {
        let curr = fair.curr(cpu).filter(|_| !asked.others.has(cpu) && !asked.idle.has(cpu));
        if let Some((curr, pid)) = curr.and_then(|curr| Some((curr, *pids.get(curr.index())?))) {
            self.adopt(curr, pid);
        }
        let (idle, queued) = (asked.idle.has(cpu), fair.rq(cpu).h_nr_running);
        let rq = &mut self.core.rqs[cpu.index()];
        (rq.curr, rq.idle) = (curr, idle);
        let others = u32::from(asked.others.has(cpu)) + u32::from(asked.others_wait.has(cpu));
        rq.nr_running = if idle { 0 } else { queued + others };
        rq.sched_idle = fair.rq(cpu).idle_h_nr_running;
        rq.ttwu_pending = !idle && rq.nr_running == 0;
        self.core.refresh_idle(cpu);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;
    use crate::{Version, LEAST_OF_SIS_PROP};

    /// One cache; the task was on CPU 1, and CPU 0 selects.
    fn select(placement: &mut Placement, sched: &mut Sched, task: TaskId, idle: &str, limit: u32) -> u32 {
        let asked = Situation {
            task,
            pid: 7,
            prev: CpuId(1),
            this: CpuId(0),
            kind: WakeKind::Wakeup { sync: false },
            idle: CpuMask::from_list(idle).unwrap_or_default(),
            others: CpuMask::default(),
            others_wait: CpuMask::default(),
            allowed: *placement.topology().all(),
            nr_idle_scan: limit,
            has_idle_cores: false,
            preferred_node: None,
            kthread: false,
            in_task: true,
            now: 1_000_000,
            jiffies: None,
        };
        placement.select_task_rq_fair(sched, &asked, &[7]).cpu.0
    }

    #[test]
    fn a_search_under_sis_prop_tests_as_many_cpus_as_stated() {
        for row in ["5.2", "5.7", "5.10", "5.13"] {
            let config = KernelConfig::new(Version::find(row).unwrap(), 8, 250);
            let topology = Arc::new(Topology::regular(1, 1, 8, 1, true).unwrap());
            let mut sched = Sched::new(config.clone(), topology.clone());
            let task = sched.add_task(&TaskAttr { cpu: CpuId(1), ..TaskAttr::default() });
            let mut placement = Placement::new(&config, topology);
            placement.set_history(task, 7, WakeHistory { flips: 0, recent_used_cpu: CpuId(1) }, 0);
            for limit in LEAST_OF_SIS_PROP..9 {
                for idle in 2..8 {
                    // The search begins at the previous CPU.
                    let expected = if idle <= limit { idle } else { 1 };
                    let chosen = select(&mut placement, &mut sched, task, &idle.to_string(), limit);
                    assert_eq!(chosen, expected, "{row}: idle {idle}, limit {limit}");
                }
            }
        }
    }

    #[test]
    fn a_wakeup_is_placed_by_what_is_stated() {
        for row in ["6.1", "6.12.107", "7.2"] {
            let config = KernelConfig::new(Version::find(row).unwrap(), 4, 250);
            let topology = Arc::new(Topology::regular(1, 1, 4, 1, true).unwrap());
            let mut sched = Sched::new(config.clone(), topology.clone());
            let task = sched.add_task(&TaskAttr { cpu: CpuId(1), ..TaskAttr::default() });
            let mut placement = Placement::new(&config, topology);
            placement.set_history(task, 7, WakeHistory { flips: 0, recent_used_cpu: CpuId(1) }, 0);
            for (idle, limit, cpu) in [("1-3", 4, 1), ("2-3", 4, 2), ("3", 4, 3), ("3", 0, 1), ("", 4, 1)] {
                let chosen = select(&mut placement, &mut sched, task, idle, limit);
                assert_eq!(chosen, cpu, "{row}: idle {idle:?}, limit {limit}");
            }
        }
    }

    /// The node on which CPU 0 of node 0 places a new task. There are two nodes of four CPUs under one cache each.
    fn node_of_new_task(row: &str, idle: &str, preferred_node: Option<u32>, marks: [Option<bool>; 2]) -> u32 {
        let config = KernelConfig::new(Version::find(row).unwrap(), 8, 250);
        let topology = Arc::new(Topology::regular(2, 1, 4, 1, true).unwrap());
        let mut sched = Sched::new(config.clone(), topology.clone());
        let task = sched.add_task(&TaskAttr::default());
        let mut placement = Placement::new(&config, topology);
        placement.set_marks(CpuId(0), 1, marks);
        let asked = Situation {
            task,
            pid: 7,
            prev: CpuId(0),
            this: CpuId(0),
            kind: WakeKind::Fork,
            idle: CpuMask::from_list(idle).unwrap(),
            others: CpuMask::default(),
            others_wait: CpuMask::default(),
            allowed: CpuMask::first(8),
            nr_idle_scan: 4,
            has_idle_cores: true,
            preferred_node,
            kthread: false,
            in_task: true,
            now: 1_000_000,
            jiffies: None,
        };
        placement.select_task_rq_fair(&mut sched, &asked, &[7]).cpu.0 / 4
    }

    #[test]
    fn a_new_task_goes_to_the_node_that_it_prefers_while_both_have_idle_cpus() {
        for row in ["5.10", "6.1", "6.12.107", "7.3"] {
            let cases = [("1-7", None, 0), ("1-7", Some(0), 0), ("1-7", Some(1), 1), ("1,7", Some(1), 1)];
            for (idle, preferred, node) in cases.into_iter().chain([("4-7", Some(0), 0), ("4-7", None, 1)]) {
                let found = node_of_new_task(row, idle, preferred, [None; 2]);
                assert_eq!(found, node, "{row}: idle {idle}, preferred node {preferred:?}");
            }
        }
    }

    #[test]
    fn a_new_task_leaves_a_group_that_affinity_kept_from_being_balanced() {
        for row in ["5.10", "6.1", "6.12.107", "7.3"] {
            for (own, next, node) in [(false, false, 0), (true, false, 1), (false, true, 0), (true, true, 0)] {
                let found = node_of_new_task(row, "1-7", None, [Some(own), Some(next)]);
                assert_eq!(found, node, "{row}: own group marked {own}, other {next}");
            }
        }
    }

    #[test]
    fn a_child_has_its_parents_history() {
        let config = KernelConfig::new(Version::find("6.12.107").unwrap(), 4, 250);
        let mut placement = Placement::new(&config, Arc::new(Topology::regular(1, 1, 4, 1, true).unwrap()));
        let (parent, child) = (TaskId(0), TaskId(1));
        placement.set_history(parent, 7, WakeHistory { flips: 35, recent_used_cpu: CpuId(1) }, 0);
        placement.fork(parent, 7, child, 8, CpuId(3));
        assert_eq!(placement.history(child, 8), Some(WakeHistory { flips: 35, recent_used_cpu: CpuId(3) }));
        // The id is another task's by now.
        assert_eq!(placement.history(child, 9), None);
    }
}
