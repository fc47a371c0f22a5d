//! The deadline class (kernel/sched/deadline.c): SCHED_DEADLINE, above the real-time class.
//!
//! Earliest deadline first, with a constant bandwidth server for each task: a task that has used up its runtime leaves
//! the queue until its next period begins, so it cannot use the bandwidth that others have reserved. [`cbs`] keeps
//! runtimes and deadlines, [`queue`] the queues, [`bandwidth`] decides which tasks are admitted and when bandwidth is
//! released, [`balance`] selects CPUs, [`class`] is the interface to core code. Left out: deadline inheritance, GRUB
//! (SCHED_FLAG_RECLAIM), and competition with the fair server, which is part of the real-time class here.

mod balance;
mod bandwidth;
mod cbs;
mod class;
mod cpudl;
mod explain;
mod queue;
mod timers;

pub use crate::core::dl_policy::DlPolicy;
pub use bandwidth::DlOverflow;

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::class::ClassId;
use crate::features::Feature;
use crate::jiffies::UPTIME;
use crate::run_times::RunTimes;
use crate::{Core, KernelConfig};
use bandwidth::DlBw;
use cpudl::Cpudl;
use queue::DlRq;
use timers::{Armed, Timers};

/// A task's state in this class (`struct sched_dl_entity`). Times are those of `rq->clock`, from boot on.
#[derive(Clone, Copy, Default, Debug)]
struct DlEntity {
    policy: Option<DlPolicy>,
    /// The bandwidth that is counted for it, also for a while after it has left the class.
    dl_bw: u64,
    /// It is runnable, queued or throttled (TASK_ON_RQ_QUEUED).
    on_rq: bool,
    /// It is in its CPU's tree (`on_dl_rq`).
    queued: bool,
    /// It has gone to sleep.
    asleep: bool,
    runtime: i64,
    deadline: Nanos,
    dl_throttled: bool,
    dl_yielded: bool,
    dl_timer: Option<Armed>,
    inactive_timer: Option<Armed>,
    exec_start: Nanos,
    sum_exec_runtime: Nanos,
}

/// The class on every CPU of one kernel.
#[derive(Clone, Debug)]
pub struct Dl {
    /// Its place among the classes of its scheduler.
    class: ClassId,
    rqs: Vec<DlRq>,
    tasks: Vec<DlEntity>,
    cpudl: Cpudl,
    timers: Timers,
    dl_bw: DlBw,
    /// `hrtick_enabled_dl`.
    hrtick: bool,
    run_times: RunTimes,
}

impl Dl {
    /// The class of a kernel, without tasks.
    #[must_use]
    pub fn new(config: &KernelConfig) -> Self {
        // HRTICK_DL is a feature of its own from 5.12 on; before, HRTICK is for both classes.
        let own = Feature::HrtickDl.info().default_in(config.version).is_some();
        Dl {
            class: ClassId::default(),
            rqs: vec![DlRq::default(); config.nr_cpus],
            tasks: Vec::new(),
            cpudl: Cpudl::new(config.nr_cpus),
            timers: Timers::default(),
            dl_bw: DlBw::new(config),
            hrtick: config.has(if own { Feature::HrtickDl } else { Feature::Hrtick }),
            run_times: RunTimes::default(),
        }
    }

    /// The task's parameters, if it is of this class.
    #[inline]
    #[must_use]
    pub fn policy(&self, task: TaskId) -> Option<DlPolicy> {
        self.tasks.get(task.index()).and_then(|se| se.policy)
    }

    /// The running task of the CPU, if it is of this class.
    #[inline]
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.rqs[cpu.index()].curr
    }

    /// The queued tasks in the order of their deadlines, the running one included; throttled ones are not queued.
    pub fn queued(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.rqs[cpu.index()].root.iter()
    }

    /// The absolute deadline of a task that is or was of this class, as a time of the run.
    #[must_use]
    pub fn deadline(&self, task: TaskId) -> Nanos {
        self.tasks.get(task.index()).map_or(0, |se| se.deadline.saturating_sub(UPTIME))
    }

    /// The task has used up its runtime and waits for its next period.
    #[must_use]
    pub fn is_throttled(&self, task: TaskId) -> bool {
        self.policy(task).is_some() && self.tasks[task.index()].dl_throttled
    }

    /// Time that the task has run in this class, up to `now` (`rq->clock_task`) if it is running.
    #[must_use]
    pub fn runtime(&self, cpu: CpuId, task: TaskId, now: Nanos) -> Nanos {
        let Some(se) = self.tasks.get(task.index()) else { return 0 };
        let running = self.rqs[cpu.index()].curr == Some(task) && se.queued;
        se.sum_exec_runtime + if running { now.saturating_sub(se.exec_start) } else { 0 }
    }

    /// The run times that `update_curr_dl` has accounted.
    pub(crate) fn run_times(&mut self) -> &mut RunTimes {
        &mut self.run_times
    }

    fn se(&mut self, task: TaskId) -> &mut DlEntity {
        &mut self.tasks[task.index()]
    }

    /// After anything that may have changed the CPU's queue.
    fn sync(&self, core: &mut Core, cpu: CpuId) {
        core.set_nr_running(cpu, self.class, self.rqs[cpu.index()].root.len());
    }
}

/// `rq_clock` of a CPU whose `rq->clock_task` is `now`, in ns since boot.
fn rq_clock(core: &Core, cpu: CpuId, now: Nanos) -> Nanos {
    UPTIME + core.rq_clock(cpu, now)
}
