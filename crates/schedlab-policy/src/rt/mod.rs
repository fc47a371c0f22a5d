//! The real-time class (kernel/sched/rt.c): SCHED_FIFO and SCHED_RR, above the fair class, without task groups
//! (RT_GROUP_SCHED off).
//!
//! The task at the head of the best priority's list runs; a running task keeps its place in the list. A FIFO task runs
//! until it blocks, yields or is preempted by a better priority; an RR task also moves to the tail when its time slice
//! is used up. [`limit`] prevents the class from starving the others; [`balance`] selects CPUs; [`class`] is the
//! interface to core code. Left out: priority inheritance, the watchdog.

mod array;
mod balance;
mod class;
mod explain;
mod limit;

pub use crate::core::rt_policy::{RtPolicy, MAX_RT_PRIO};
pub use crate::version::choices::RtLimit;

use crate::class::ClassId;
use crate::features::Feature;
use crate::run_times::{RunTime, RunTimes};
use crate::{Core, KernelConfig, Resched};
use array::{Link, PrioArray};
use limit::{FairServer, Period};
use schedlab_model::{CpuId, Nanos, TaskId, USEC};

/// A task's state in this class (`struct sched_rt_entity`).
#[derive(Clone, Copy, Default, Debug)]
struct RtEntity {
    policy: Option<RtPolicy>,
    on_rq: bool,
    /// Ticks left (SCHED_RR).
    time_slice: u64,
    exec_start: Nanos,
    sum_exec_runtime: Nanos,
    /// Sequence number of the last `enqueue_pushable_task`.
    pushable: u64,
}

/// A CPU's runqueue (`struct rt_rq`).
#[derive(Clone, Default, Debug)]
struct RtRq {
    active: PrioArray,
    nr_running: u32,
    curr: Option<TaskId>,
    /// Time run in this period, not yet given back.
    rt_time: Nanos,
    /// Time it may run per period.
    rt_runtime: Nanos,
    throttled: bool,
    /// The last decision recorded about its limit said that it is held back.
    shown_limited: bool,
    server: FairServer,
}

/// The class on every CPU of one kernel.
#[derive(Clone, Debug)]
pub struct Rt {
    /// Its place among the classes of its scheduler.
    class: ClassId,
    rqs: Vec<RtRq>,
    tasks: Vec<RtEntity>,
    links: Vec<Link>,
    /// Number of calls of `enqueue_pushable_task`.
    waits: u64,
    limit: RtLimit,
    share: bool,
    /// What a request within the class sets: under PREEMPT_AUTO that may be lazy.
    request: Resched,
    /// Length of a round-robin slice in ticks.
    rr_timeslice: u64,
    period: Period,
    run_times: RunTimes,
}

impl Rt {
    /// The class of a kernel, without tasks.
    #[must_use]
    pub fn new(config: &KernelConfig) -> Self {
        let (length, runtime) = (config.knobs.rt_period_us * USEC, config.knobs.rt_runtime_us * USEC);
        let rq = RtRq { rt_runtime: runtime, ..RtRq::default() };
        // msecs_to_jiffies rounds up.
        let rr_timeslice = (config.knobs.rr_timeslice_ms * u64::from(config.hz())).div_ceil(1000);
        Rt {
            class: ClassId::default(),
            rqs: vec![rq; config.nr_cpus],
            tasks: Vec::new(),
            links: Vec::new(),
            waits: 0,
            limit: config.rules.rt_limit,
            share: config.has(Feature::RtRuntimeShare),
            request: if config.preempt.is_auto_lazy() { Resched::Lazy } else { Resched::Full },
            rr_timeslice: rr_timeslice.max(1),
            period: Period { length, runtime, expires: None },
            run_times: RunTimes::default(),
        }
    }

    /// The task's policy, if it is of this class.
    #[inline]
    #[must_use]
    pub fn policy(&self, task: TaskId) -> Option<RtPolicy> {
        self.tasks.get(task.index()).and_then(|entity| entity.policy)
    }

    /// The running task of the CPU, if it is of this class.
    #[inline]
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.rqs[cpu.index()].curr
    }

    /// Queued and running tasks of the CPU; none while the class is throttled there.
    #[inline]
    #[must_use]
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        let rq = &self.rqs[cpu.index()];
        if rq.throttled {
            0
        } else {
            rq.nr_running
        }
    }

    /// The class has used up its time on the CPU.
    #[must_use]
    pub fn is_throttled(&self, cpu: CpuId) -> bool {
        self.rqs[cpu.index()].throttled
    }

    /// Time the task has run in this class.
    #[must_use]
    pub fn sum_exec_runtime(&self, task: TaskId) -> Nanos {
        self.tasks.get(task.index()).map_or(0, |entity| entity.sum_exec_runtime)
    }

    /// Time the task has run in this class, up to `now` if it is running.
    #[must_use]
    pub fn runtime(&self, cpu: CpuId, task: TaskId, now: Nanos) -> Nanos {
        let Some(entity) = self.tasks.get(task.index()) else { return 0 };
        let running = self.rqs[cpu.index()].curr == Some(task);
        entity.sum_exec_runtime + if running { now.saturating_sub(entity.exec_start) } else { 0 }
    }

    /// The queued tasks in the order in which they would run, the running one included.
    pub fn queued(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        self.rqs[cpu.index()].active.iter(&self.links)
    }

    /// Makes the task one of this class (`None`: of another); it must not be queued.
    fn set_policy(&mut self, task: TaskId, policy: Option<RtPolicy>) {
        if self.tasks.len() <= task.index() {
            if policy.is_none() {
                return;
            }
            self.tasks.resize(task.index() + 1, RtEntity::default());
            self.links.resize(task.index() + 1, Link::default());
        }
        let entity = &mut self.tasks[task.index()];
        if entity.policy.is_none() {
            entity.time_slice = self.rr_timeslice;
        }
        entity.policy = policy;
    }

    fn prio(&self, task: TaskId) -> u8 {
        self.policy(task).map_or(MAX_RT_PRIO, RtPolicy::prio)
    }

    /// `enqueue_rt_entity`.
    fn enqueue_rt_entity(&mut self, cpu: CpuId, task: TaskId, head: bool, now: Nanos) {
        let prio = self.prio(task);
        if self.tasks[task.index()].on_rq || prio == MAX_RT_PRIO {
            return;
        }
        self.start_period(now);
        self.tasks[task.index()].on_rq = true;
        let rq = &mut self.rqs[cpu.index()];
        rq.active.add(&mut self.links, task, prio, head);
        rq.nr_running += 1;
        self.enqueue_pushable_task(task);
    }

    /// `enqueue_pushable_task`.
    fn enqueue_pushable_task(&mut self, task: TaskId) {
        self.waits += 1;
        self.tasks[task.index()].pushable = self.waits;
    }

    /// `dequeue_rt_entity`.
    fn dequeue_rt_entity(&mut self, cpu: CpuId, task: TaskId) {
        let prio = self.prio(task);
        if !std::mem::take(&mut self.tasks[task.index()].on_rq) {
            return;
        }
        let rq = &mut self.rqs[cpu.index()];
        rq.active.remove(&mut self.links, task, prio);
        rq.nr_running -= 1;
    }

    /// `requeue_task_rt`.
    fn requeue_task_rt(&mut self, cpu: CpuId, task: TaskId, head: bool) {
        let prio = self.prio(task);
        if self.tasks[task.index()].on_rq {
            let rq = &mut self.rqs[cpu.index()];
            rq.active.remove(&mut self.links, task, prio);
            rq.active.add(&mut self.links, task, prio, head);
        }
    }

    /// `pick_task_rt`: the first task of the best priority; none while the class is throttled.
    fn pick_task_rt(&self, cpu: CpuId) -> Option<TaskId> {
        let rq = &self.rqs[cpu.index()];
        if rq.throttled {
            None
        } else {
            rq.active.first()
        }
    }

    /// `put_prev_task_rt` and `set_next_task_rt`.
    fn set_curr(&mut self, core: &mut Core, cpu: CpuId, next: Option<TaskId>, now: Nanos) {
        self.update_curr_rt(cpu, now);
        let rq = &mut self.rqs[cpu.index()];
        if rq.curr == next {
            return;
        }
        core.update_rt_rq_load_avg(cpu, next.is_some(), now);
        if let Some(prev) = std::mem::replace(&mut rq.curr, next) {
            self.enqueue_pushable_task(prev);
        }
        if let Some(task) = next {
            self.tasks[task.index()].exec_start = now;
        }
    }

    /// The run times that `update_curr_rt` has accounted.
    pub(crate) fn run_times(&mut self) -> &mut RunTimes {
        &mut self.run_times
    }

    /// `update_curr_rt`. Whether the class has now used up its time.
    fn update_curr_rt(&mut self, cpu: CpuId, now: Nanos) -> bool {
        let Some(task) = self.rqs[cpu.index()].curr else { return false };
        let entity = &mut self.tasks[task.index()];
        let delta = now.saturating_sub(entity.exec_start);
        if delta == 0 {
            return false;
        }
        entity.exec_start = now;
        entity.sum_exec_runtime += delta;
        self.run_times.record(|| Some(RunTime { task, runtime: delta, vruntime: 0 }));
        self.charge(cpu, delta)
    }

    /// `task_tick_rt` after its accounting: whether a round-robin slice is used up and others have its priority.
    fn tick_slice(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let (rr_timeslice, prio) = (self.rr_timeslice, self.prio(task));
        let entity = &mut self.tasks[task.index()];
        if !entity.policy.is_some_and(|policy| policy.round_robin) {
            return false;
        }
        entity.time_slice = entity.time_slice.saturating_sub(1);
        if entity.time_slice > 0 {
            return false;
        }
        entity.time_slice = rr_timeslice;
        let expired = entity.on_rq && !self.rqs[cpu.index()].active.alone(prio);
        if expired {
            self.requeue_task_rt(cpu, task, false);
        }
        expired
    }

    /// The best priority queued on the CPU (`rt_rq->highest_prio.curr`).
    #[inline]
    pub(crate) fn highest_prio(&self, cpu: CpuId) -> u8 {
        self.rqs[cpu.index()].active.highest()
    }
}
