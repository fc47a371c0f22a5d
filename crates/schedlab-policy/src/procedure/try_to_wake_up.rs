//! `try_to_wake_up` (kernel/sched/core.c): a sleeping task becomes runnable, here or on another CPU.

use schedlab_model::CpuId;

use super::activate::{activate_task, finish_wakeup, ttwu_runnable};
use super::{Driver, Effect, Scheduler, Wakeup};
use crate::WakeKind;

/// `try_to_wake_up`.
///
/// In order: the tracepoint `sched_waking`; a task that is still on its way into `__schedule` is left to its CPU, or
/// waited for; one whose dequeue is delayed stays where it is; for any other `select_task_rq` chooses a CPU, which
/// enqueues it itself if it is far enough away.
#[inline(always)]
pub fn try_to_wake_up(driver: &mut impl Driver, wakeup: Wakeup) {
    let Wakeup { task, waker_cpu, .. } = wakeup;
    let cpu = driver.sched().cpu_of(task);
    driver.effect(Effect::Waking { task, cpu });
    if !driver.sched().on_cpu(task) {
        return wake_off_cpu(driver, wakeup);
    }
    let cpu = driver.sched().cpu_of(task);
    if driver.sched().ttwu_queue_cond(task, waker_cpu, cpu, true) {
        ttwu_queue_wakelist(driver, wakeup, cpu);
    } else {
        driver.effect(Effect::WaitOnCpu { wakeup, cpu });
    }
}

/// The rest of `try_to_wake_up`, from where no CPU runs the task any more.
#[inline(always)]
pub fn wake_off_cpu(driver: &mut impl Driver, wakeup: Wakeup) {
    let Wakeup { task, sync, .. } = wakeup;
    let kind = WakeKind::Wakeup { sync };
    if let Some(cpu) = ttwu_runnable(driver, task) {
        return finish_wakeup(driver, task, cpu, kind);
    }
    let cpu = select(driver, wakeup, kind);
    if !driver.search_takes_time(wakeup, cpu) {
        ttwu_queue(driver, wakeup, cpu);
    }
}

/// `ttwu_queue`: the task goes to the CPU selected, which enqueues it itself if it is far enough away.
#[inline(always)]
pub fn ttwu_queue(driver: &mut impl Driver, wakeup: Wakeup, cpu: CpuId) {
    let Wakeup { task, waker_cpu, sync, .. } = wakeup;
    if driver.sched().ttwu_queue_cond(task, waker_cpu, cpu, false) {
        return ttwu_queue_wakelist(driver, wakeup, cpu);
    }
    let kind = WakeKind::Wakeup { sync };
    activate_task(driver, task, cpu, kind);
    finish_wakeup(driver, task, cpu, kind);
}

/// `select_task_rq` and `set_task_cpu`.
#[inline(always)]
fn select(driver: &mut impl Driver, wakeup: Wakeup, kind: WakeKind) -> CpuId {
    let Wakeup { task, waker_cpu, .. } = wakeup;
    let now = driver.clock_task(waker_cpu);
    let selection = driver.sched().select_task_rq_for(wakeup, kind, now);
    let cpu = driver.selected(task, &selection);
    let from = driver.sched().cpu_of(task);
    let now = driver.clock_task(from);
    driver.sched().set_wakee_cpu(task, cpu, now);
    if cpu != from {
        driver.effect(Effect::Migrate { task, from, to: cpu });
    }
    cpu
}

/// `ttwu_queue_wakelist`.
#[inline(always)]
fn ttwu_queue_wakelist(driver: &mut impl Driver, wakeup: Wakeup, cpu: CpuId) {
    let first = driver.sched().__ttwu_queue_wakelist(wakeup.task, cpu, wakeup.sync);
    driver.effect(Effect::WakelistQueued { task: wakeup.task, cpu, first });
}
