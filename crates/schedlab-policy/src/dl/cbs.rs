//! The constant bandwidth server of every task: its runtime, its deadline, and when it waits for the next period
//! (kernel/sched/deadline.c 6.1 and 6.12).
//!
//! A task may run for `dl_runtime` in each `dl_period`, and is ordered by the deadline of its current instance. At a
//! wakeup it keeps runtime and deadline unless what is left of them is more than its share: then a task whose deadline
//! is its period starts a new instance, and one with an earlier deadline has its runtime reduced (the revised wakeup
//! rule). A used-up runtime throttles it until the next period begins.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::timers::Timer;
use super::{rq_clock, Dl, DlEntity, DlPolicy};
use crate::core::dl_policy::{BW_SHIFT, DL_SCALE};
use crate::jiffies::UPTIME;
use crate::run_times::RunTime;
use crate::{Core, Resched};

/// Why an entity is enqueued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    /// ENQUEUE_WAKEUP.
    Wakeup,
    /// ENQUEUE_REPLENISH.
    Replenish,
    /// ENQUEUE_RESTORE, and the first enqueue of all.
    Restore,
    /// ENQUEUE_MIGRATING.
    Migrating,
}

impl DlEntity {
    /// `replenish_dl_new_period`.
    fn replenish_dl_new_period(&mut self, dl: DlPolicy, clock: Nanos) {
        self.deadline = clock + dl.deadline;
        self.runtime = dl.runtime as i64;
    }

    /// `replenish_dl_entity`: postpones the deadline by periods until the runtime is positive.
    fn replenish_dl_entity(&mut self, dl: DlPolicy, clock: Nanos) {
        if self.dl_yielded && self.runtime > 0 {
            self.runtime = 0;
        }
        while self.runtime <= 0 {
            self.deadline += dl.period;
            self.runtime += dl.runtime as i64;
        }
        if self.deadline < clock {
            self.replenish_dl_new_period(dl, clock);
        }
        self.dl_yielded = false;
        self.dl_throttled = false;
    }

    /// `dl_entity_overflow`: runtime / (deadline - t) > dl_runtime / dl_deadline.
    fn dl_entity_overflow(&self, dl: DlPolicy, t: Nanos) -> bool {
        let left = (dl.deadline >> DL_SCALE).wrapping_mul((self.runtime >> DL_SCALE) as u64);
        let right = ((self.deadline - t) >> DL_SCALE).wrapping_mul(dl.runtime >> DL_SCALE);
        (right.wrapping_sub(left) as i64) < 0
    }

    /// `update_dl_revised_wakeup`: the runtime that the time left to the deadline allows.
    fn update_dl_revised_wakeup(&mut self, dl: DlPolicy, clock: Nanos) {
        let laxity = self.deadline - clock;
        self.runtime = ((u128::from(dl.dl_density()) * u128::from(laxity)) >> BW_SHIFT) as i64;
    }

    /// `update_dl_entity`: the wakeup rule.
    fn update_dl_entity(&mut self, dl: DlPolicy, clock: Nanos) {
        if self.deadline >= clock {
            if !self.dl_entity_overflow(dl, clock) {
                return;
            }
            if !dl.dl_is_implicit() {
                return self.update_dl_revised_wakeup(dl, clock);
            }
        }
        self.replenish_dl_new_period(dl, clock);
    }

    /// `dl_next_period`.
    pub(super) fn dl_next_period(&self, dl: DlPolicy) -> Nanos {
        self.deadline - dl.deadline.min(self.deadline) + dl.period
    }
}

impl Dl {
    /// `enqueue_dl_entity` and what `enqueue_task_dl` does around it. A throttled task stays out of the queue.
    pub(super) fn enqueue_dl_entity(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, how: How, now: Nanos) {
        let Some(dl) = self.policy(task) else { return };
        let clock = rq_clock(core, cpu, now);
        if !self.se(task).dl_throttled && !dl.dl_is_implicit() {
            self.dl_check_constrained_dl(task, clock);
        }
        if how == How::Wakeup {
            self.task_contending(task);
        }
        let se = self.se(task);
        if se.dl_throttled && how != How::Replenish {
            return;
        }
        match how {
            How::Wakeup => se.update_dl_entity(dl, clock),
            How::Replenish => se.replenish_dl_entity(dl, clock),
            // setup_new_dl_entity.
            How::Restore if se.deadline < clock => se.replenish_dl_new_period(dl, clock),
            How::Restore | How::Migrating => {}
        }
        self.__enqueue_dl_entity(core, cpu, task);
        if core.curr(cpu) != Some(task) {
            self.enqueue_pushable_dl_task(core, cpu, task);
        }
    }

    /// `dl_check_constrained_dl`: a task that wakes after its deadline waits for its next period.
    fn dl_check_constrained_dl(&mut self, task: TaskId, clock: Nanos) {
        let se = self.tasks[task.index()];
        let Some(dl) = se.policy else { return };
        if se.deadline < clock && clock < se.dl_next_period(dl) && self.start_dl_timer(task, clock) {
            let se = self.se(task);
            se.dl_throttled = true;
            se.runtime = se.runtime.min(0);
        }
    }

    /// `start_dl_timer`: whether the next period is still to come. The timer then expires when it begins.
    fn start_dl_timer(&mut self, task: TaskId, clock: Nanos) -> bool {
        let se = self.tasks[task.index()];
        let Some(dl) = se.policy else { return false };
        let act = se.dl_next_period(dl);
        // ktime_us_delta: less than a microsecond ago is now.
        if act + 1_000 <= clock {
            return false;
        }
        if se.dl_timer.is_none() {
            self.se(task).dl_timer = Some(self.timers.start(act.saturating_sub(UPTIME), Timer::Replenish(task)));
        }
        true
    }

    /// `update_curr_dl`: charges the running task, and takes it off the queue if its runtime is used up or it has
    /// yielded.
    pub(super) fn update_curr_dl(&mut self, core: &mut Core, cpu: CpuId, now: Nanos) -> Resched {
        let Some(task) = self.curr(cpu) else { return Resched::No };
        debug_assert_eq!(core.curr(cpu), Some(task), "{cpu}: the running task was not put by its class");
        let se = self.se(task);
        if !se.queued {
            return Resched::No;
        }
        let delta_exec = now.saturating_sub(se.exec_start);
        if delta_exec > 0 {
            se.exec_start = now;
            se.sum_exec_runtime += delta_exec;
            se.runtime -= delta_exec as i64;
            self.run_times.record(|| Some(RunTime { task, runtime: delta_exec, vruntime: 0 }));
        }
        let se = self.se(task);
        let exceeded = delta_exec > 0 && se.runtime <= 0;
        if !exceeded && !se.dl_yielded {
            return Resched::No;
        }
        self.throttle(core, cpu, task, now)
    }

    /// The end of `update_curr_dl`: the task waits for its next period, or starts it if that has begun.
    fn throttle(&mut self, core: &mut Core, cpu: CpuId, task: TaskId, now: Nanos) -> Resched {
        let se = self.se(task);
        se.dl_throttled = true;
        self.__dequeue_dl_entity(core, cpu, task);
        self.dequeue_pushable_dl_task(cpu, task);
        let clock = rq_clock(core, cpu, now);
        if !self.start_dl_timer(task, clock) {
            self.enqueue_dl_entity(core, cpu, task, How::Replenish, now);
        }
        let resched = if self.is_leftmost(cpu, task) { Resched::No } else { Resched::Full };
        self.explain_throttle(core, cpu, task, resched, now);
        resched
    }

    /// `replenish_dl_entity` of a task that is not queued.
    pub(super) fn replenish(&mut self, task: TaskId, clock: Nanos) {
        let se = self.se(task);
        if let Some(dl) = se.policy {
            se.replenish_dl_entity(dl, clock);
        }
    }
}
