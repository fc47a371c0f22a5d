//! `wake_up_new_task` (kernel/sched/core.c): a forked task becomes runnable for the first time.

use schedlab_model::{CpuId, TaskId};

use super::activate::{activate_task, finish_wakeup};
use super::{Driver, Effect, Scheduler};
use crate::WakeKind;

/// `wake_up_new_task`, executed on the parent's CPU, of a task that [`Sched::sched_fork`](crate::Sched::sched_fork) or
/// [`Sched::add_task`](crate::Sched::add_task) has made.
pub fn wake_up_new_task(driver: &mut impl Driver, task: TaskId, parent_cpu: CpuId) {
    let now = driver.clock_task(parent_cpu);
    let selection = driver.sched().select_task_rq(task, parent_cpu, WakeKind::Fork, now);
    let cpu = driver.selected(task, &selection);
    let from = driver.sched().cpu_of(task);
    if cpu != from {
        driver.effect(Effect::Migrate { task, from, to: cpu });
    }
    activate_task(driver, task, cpu, WakeKind::Fork);
    finish_wakeup(driver, task, cpu, WakeKind::Fork);
}
