//! Adopts what a trace shows of the fair class of a recorded kernel, for a replay. Nothing here is a rule of the
//! scheduler.
//!
//! What the kernel does by itself the replay calls as the simulator does, as functions of [`Sched`].

use schedlab_model::{CpuId, CpuMask, Nanos, TaskId};

use crate::class::SchedClass;
use crate::core::Core;
use crate::fair::{Fair, GroupId, ProcessShown, Restore, SchedParams};
use crate::sched::Sched;
use crate::Resched;

/// A writer of the scheduler's state that is no function of the kernel.
pub struct Follow<'a> {
    fair: &'a mut Fair,
    core: &'a mut Core,
}

impl Sched {
    /// What follows is the recorded kernel's.
    pub fn follow(&mut self) -> Follow<'_> {
        Follow { fair: &mut self.classes.fair, core: &mut self.core }
    }
}

/// Decisions and charges that the trace shows.
impl Follow<'_> {
    /// Charges the running task exactly `ran` ns, on its own queue alone: the kernel charges the groups above when it
    /// next updates their queues.
    pub fn update_curr(&mut self, cpu: CpuId, ran: Nanos) {
        self.fair.update_curr_by(cpu, ran, true);
        self.sync(cpu);
    }

    /// The kernel's outcome of the wakeup check just made: buddies and the request to reschedule follow it.
    pub fn preemption(&mut self, cpu: CpuId, wakee: TaskId, preempted: bool) {
        self.fair.follow_preemption(cpu, wakee, preempted);
    }

    /// Switches from the running task of a CPU to the one that the kernel picked, which may be the same or none.
    pub fn pick(&mut self, cpu: CpuId, next: Option<TaskId>, now: Nanos) {
        self.fair.switch_to(cpu, next, now);
        self.core.set_curr(cpu, next);
        self.sync(cpu);
    }

    /// A task that sleeps in the queue leaves it now.
    pub fn finish_delayed(&mut self, task: TaskId) {
        self.fair.finish_delayed(task);
        self.sync(self.core.cpu_of(task));
    }

    /// A queued task was asleep already when the trace first showed it (DELAY_DEQUEUE).
    pub fn mark_delayed(&mut self, task: TaskId) {
        self.fair.mark_delayed(task);
        self.sync(self.core.cpu_of(task));
    }

    /// `hrtick` of a CPU whose running task belongs to the fair class.
    pub fn hrtick(&mut self, cpu: CpuId, now: Nanos) -> Resched {
        let resched = self.fair.hrtick_expired(cpu, now);
        self.sync(cpu);
        resched
    }

    fn sync(&mut self, cpu: CpuId) {
        self.fair.with(self.core).sync(cpu);
    }
}

/// Where tasks are, and their attributes.
impl Follow<'_> {
    /// `set_task_cpu` of a task that is not queued; `now`: the clock by which its load decays before it moves, if
    /// known.
    pub fn set_task_cpu(&mut self, task: TaskId, from: CpuId, to: CpuId, now: Option<Nanos>) {
        if let Some(now) = now {
            self.fair.migrate_load_avg(task, now);
        }
        self.fair.migrate_task_rq(task, from, to);
        self.core.set_task_cpu(task, to);
    }

    /// `__sched_setscheduler` within the class, which sets policy, nice value and slice together.
    pub fn sched_setscheduler(&mut self, task: TaskId, params: SchedParams, now: Nanos) {
        self.fair.__sched_setscheduler(task, params, now);
        self.sync(self.core.cpu_of(task));
    }

    /// The same of a task that is in another class.
    pub fn set_params_outside(&mut self, task: TaskId, params: SchedParams) {
        self.fair.set_params_outside(task, params);
    }

    /// `set_cpus_allowed` to a mask that the trace need not show.
    pub fn set_cpus_allowed(&mut self, task: TaskId, now: Nanos) {
        self.fair.set_cpus_allowed(self.core, task, now);
    }

    /// `sched_move_task` to the group that the task is in.
    pub fn requeue_task(&mut self, task: TaskId, now: Nanos) -> Resched {
        let resched = self.fair.requeue_task(task, now);
        self.sync(self.core.cpu_of(task));
        resched
    }

    /// `switched_from_fair` of a task that is off its queue.
    pub fn switched_from(&mut self, task: TaskId, now: Nanos) {
        SchedClass::switched_from(self.fair, self.core, task, now);
    }
}

/// Loads and caches.
impl Follow<'_> {
    /// `rq_online_fair` of all CPUs, of which these are active now; `leaves`: one of them became inactive.
    pub fn rq_online(&mut self, active: &CpuMask, leaves: bool, now: Nanos) {
        self.fair.rq_online(active, leaves, now);
    }

    /// `update_blocked_averages`, where a trace shows it.
    pub fn update_blocked_averages(&mut self, cpu: CpuId, now: Nanos) {
        self.fair.update_blocked_averages(cpu, now);
    }

    /// The part of it that concerns one group.
    pub fn update_blocked_group(&mut self, group: GroupId, cpu: CpuId, now: Nanos) {
        self.fair.update_blocked_group(group, cpu, now);
    }

    /// `update_cfs_rq_h_load`, by the tick count that a trace shows.
    pub fn update_cfs_rq_h_load(&mut self, cpu: CpuId, jiffies: Option<u64>) {
        self.fair.update_cfs_rq_h_load(cpu, jiffies);
    }

    /// `can_migrate_task` of a task, where a trace shows it in a pass: unless it is moved, the next pass considers it
    /// last.
    pub fn can_migrate_task(&mut self, task: TaskId) {
        self.fair.list_move(self.core.cpu_of(task), task);
    }

    /// What is shown of the process of a task that was charged `ran`: see [`Fair::follow_process`].
    pub fn process(&mut self, cpu: CpuId, task: TaskId, shown: &ProcessShown, ran: Nanos) -> Option<bool> {
        self.fair.follow_process(cpu, task, shown, ran)
    }

    /// `task_cache_work`, where a trace shows it.
    pub fn task_cache_work(&mut self, cpu: CpuId, task: TaskId) {
        self.fair.follow_cache_work(cpu, task);
    }

    /// Utilisation and capacity of each cache as a pass left them.
    pub fn llc_stats(&mut self, stats: &[(u64, u64)]) {
        self.fair.set_llc_stats(stats);
    }
}

/// State.
impl<'a> Follow<'a> {
    /// The state to be overwritten with a recorded one.
    pub fn restore(self) -> Restore<'a> {
        self.fair.restore()
    }
}
