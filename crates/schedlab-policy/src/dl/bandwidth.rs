//! Admission: the bandwidth reserved for the tasks of the class, and when it is released (`struct dl_bw`,
//! `sched_dl_overflow`, `task_non_contending`, kernel/sched/deadline.c 6.1 and 6.12).
//!
//! The machine is one root domain. Its tasks may reserve `sched_rt_runtime_us` of every `sched_rt_period_us` of each
//! CPU. Fair servers (6.12 and later) are not counted: 6.12.107 and 7.2.13 admitted tasks as if they were not. A
//! sleeping task keeps its bandwidth; the bandwidth of one that exits or leaves the class is released at its 0-lag
//! time, deadline - runtime * dl_period / dl_runtime.

use schedlab_model::{Nanos, TaskId, USEC};

use super::timers::Timer;
use super::{Dl, DlEntity, DlPolicy};
use crate::core::dl_policy::{to_ratio, BW_SHIFT};
use crate::jiffies::UPTIME;
use crate::KernelConfig;

/// Bandwidth of the root domain, with [`BW_SHIFT`] binary places.
#[derive(Clone, Copy, Debug)]
pub(super) struct DlBw {
    /// The bandwidth of each CPU that tasks may reserve.
    bw: u64,
    cpus: u64,
    /// What tasks have reserved.
    total_bw: u64,
}

impl DlBw {
    /// The root domain of a kernel before the first task.
    pub fn new(config: &KernelConfig) -> Self {
        let cpus = config.nr_cpus as u64;
        let bw = to_ratio(config.knobs.rt_period_us * USEC, config.knobs.rt_runtime_us * USEC);
        DlBw { bw, cpus, total_bw: 0 }
    }
}

/// Why a task is not admitted. Each is a number of CPUs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DlOverflow {
    /// The bandwidth of the task: its runtime divided by its period.
    pub wanted: f64,
    /// What the tasks have that were admitted before.
    pub tasks: f64,
    /// How much there is: CPUs * `sched_rt_runtime_us` / `sched_rt_period_us`.
    pub limit: f64,
}

impl Dl {
    /// `sched_dl_overflow`: whether a task with these parameters does not fit in addition to the others. `task`: the
    /// one that changes its parameters, whose present bandwidth does not count.
    pub fn sched_dl_overflow(&self, task: Option<TaskId>, dl: DlPolicy) -> Option<DlOverflow> {
        let DlBw { bw, cpus, total_bw } = self.dl_bw;
        let own = task.and_then(|task| self.tasks.get(task.index())).map_or(0, |se| se.dl_bw);
        let (wanted, tasks) = (dl.dl_bw(), total_bw - own);
        let in_cpus = |bandwidth: u64| bandwidth as f64 / f64::from(1 << BW_SHIFT);
        (bw * cpus < tasks + wanted).then(|| DlOverflow {
            wanted: in_cpus(wanted),
            tasks: in_cpus(tasks),
            limit: in_cpus(bw * cpus),
        })
    }

    /// The bandwidth that tasks have reserved (`total_bw`), in 2^-20 of a CPU.
    #[must_use]
    pub fn total_bw(&self) -> u64 {
        self.dl_bw.total_bw
    }

    /// `__dl_sub` and `__dl_add`: the task's bandwidth is counted from now on, instead of what it had before.
    pub(super) fn count_bandwidth(&mut self, task: TaskId, dl_bw: u64) {
        let before = std::mem::replace(&mut self.se(task).dl_bw, dl_bw);
        self.dl_bw.total_bw = self.dl_bw.total_bw - before + dl_bw;
    }

    /// `task_non_contending`: the task sleeps, exits, or leaves the class (`stays` is false for the last two). The
    /// bandwidth of one that does not stay is given back at its 0-lag time.
    pub(super) fn task_non_contending(&mut self, task: TaskId, clock: Nanos, stays: bool) {
        let se = self.tasks[task.index()];
        let Some(dl) = se.policy else { return };
        let zerolag = se.zerolag(dl);
        if zerolag < i128::from(clock) || se.inactive_timer.is_some() {
            if !stays {
                self.give_back(task);
            }
            return;
        }
        let at = (zerolag as Nanos).saturating_sub(UPTIME);
        self.se(task).inactive_timer = Some(self.timers.start(at, Timer::Inactive(task)));
    }

    /// `task_contending`: the task is awake.
    pub(super) fn task_contending(&mut self, task: TaskId) {
        let Dl { tasks, timers, .. } = self;
        timers.cancel(&mut tasks[task.index()].inactive_timer);
    }

    /// `inactive_task_timer` of a living task: the bandwidth of one that has left the class is released.
    pub(super) fn inactive_task_timer(&mut self, task: TaskId) {
        self.se(task).inactive_timer = None;
        if self.se(task).policy.is_none() {
            self.give_back(task);
        }
    }

    /// The 0-lag time of a task that has exited.
    pub(super) fn give_back_of_dead(&mut self, dl_bw: u64) {
        self.dl_bw.total_bw -= dl_bw;
    }

    /// A task that has exited, possibly in another class, or whose id is given to a new task: the bandwidth that it
    /// still holds is released by a timer of its own.
    pub(super) fn forget(&mut self, task: TaskId) {
        let Dl { tasks, timers, .. } = self;
        let Some(se) = tasks.get_mut(task.index()) else { return };
        timers.cancel(&mut se.dl_timer);
        if let Some(inactive) = se.inactive_timer {
            timers.cancel(&mut se.inactive_timer);
            timers.start(inactive.0, Timer::Gone(se.dl_bw));
            se.dl_bw = 0;
        }
        self.give_back(task);
        self.tasks[task.index()] = DlEntity::default();
    }

    /// `__dl_sub` and `__dl_clear_params`.
    pub(super) fn give_back(&mut self, task: TaskId) {
        self.count_bandwidth(task, 0);
        let se = self.se(task);
        (se.dl_throttled, se.dl_yielded) = (false, false);
    }
}

impl DlEntity {
    /// The 0-lag time.
    fn zerolag(&self, dl: DlPolicy) -> i128 {
        i128::from(self.deadline) - i128::from(self.runtime) * i128::from(dl.period) / i128::from(dl.runtime.max(1))
    }
}
