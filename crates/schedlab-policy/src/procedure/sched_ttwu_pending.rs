//! `sched_ttwu_pending` (kernel/sched/core.c): a CPU enqueues what other CPUs have put on its wakelist.

use schedlab_model::{CpuId, TaskId};

use super::activate::{activate_task, finish_wakeup, ttwu_runnable};
use super::{Driver, Scheduler};
use crate::WakeKind;

/// `sched_ttwu_pending`, executed on the CPU itself. Tasks that come onto the list meanwhile wait for the next call.
#[inline]
pub fn sched_ttwu_pending(driver: &mut impl Driver, cpu: CpuId) {
    let pending = driver.sched().wakelist(cpu).len();
    for nth in 0..pending {
        let (task, sync) = driver.sched().wakelist(cpu)[nth];
        enqueue_pending(driver, task, cpu, WakeKind::Wakeup { sync });
    }
    driver.sched().finish_wakelist(cpu, pending);
}

/// One of them. Nearly always there is one, so it is a function of its own: a loop that contains it begins with the addresses of
/// everything that it uses.
#[inline(never)]
fn enqueue_pending(driver: &mut impl Driver, task: TaskId, cpu: CpuId, kind: WakeKind) {
    let queued_on = ttwu_runnable(driver, task).unwrap_or_else(|| {
        activate_task(driver, task, cpu, kind);
        cpu
    });
    finish_wakeup(driver, task, queued_on, kind);
}
