//! The end of every wakeup: the task is enqueued, may preempt, and is pushed away if it would have to wait
//! (`ttwu_do_activate`, `ttwu_runnable`, the end of `wake_up_new_task`, kernel/sched/core.c).

use schedlab_model::{CpuId, TaskId};

use super::{Driver, Effect, Scheduler, Timer};
use crate::WakeKind;

/// `ttwu_runnable`: the task's CPU if the task is still queued there because its dequeue was delayed; it is runnable
/// now.
#[inline(always)]
pub(super) fn ttwu_runnable(driver: &mut impl Driver, task: TaskId) -> Option<CpuId> {
    let cpu = driver.sched().cpu_of(task);
    let now = driver.clock_task(cpu);
    let queued = driver.sched().requeue_delayed(task, now);
    if queued {
        driver.rq_lock(task, cpu);
    }
    queued.then_some(cpu)
}

/// `activate_task`.
#[inline(always)]
pub(super) fn activate_task(driver: &mut impl Driver, task: TaskId, cpu: CpuId, kind: WakeKind) {
    driver.rq_lock(task, cpu);
    let now = driver.clock_task(cpu);
    driver.sched().activate(task, cpu, kind, now);
}

/// From the enqueue on. A new task's tracepoint precedes the preemption check, a waking task's follows it.
#[inline(always)]
pub(super) fn finish_wakeup(driver: &mut impl Driver, task: TaskId, cpu: CpuId, kind: WakeKind) {
    let new = kind == WakeKind::Fork;
    if new {
        driver.effect(Effect::Wakeup { task, cpu, new });
    }
    wakeup_preempt(driver, task, cpu, kind);
    if !new {
        driver.effect(Effect::Wakeup { task, cpu, new });
    }
    if let Some(hrtick) = driver.sched().hrtick_update(cpu) {
        driver.effect(Effect::Program(Timer::Hrtick { cpu, hrtick, update: true }));
    }
    if driver.sched().is_mixed() {
        task_woken(driver, task, cpu);
    }
}

#[inline(always)]
fn wakeup_preempt(driver: &mut impl Driver, task: TaskId, cpu: CpuId, kind: WakeKind) {
    let (now, need_resched) = (driver.clock_task(cpu), driver.need_resched(cpu));
    let resched = driver.sched().wakeup_preempt(cpu, task, kind, need_resched, now);
    driver.effect(Effect::Preempt { cpu, resched });
}

#[inline(always)]
fn task_woken(driver: &mut impl Driver, task: TaskId, cpu: CpuId) {
    let (now, need_resched) = (driver.clock_task(cpu), driver.need_resched(cpu));
    let moves = driver.sched().task_woken(task, need_resched, now);
    driver.balanced(&moves);
    let timer = driver.sched().next_timer();
    driver.effect(Effect::Program(Timer::Classes(timer)));
}
