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

/// Enqueues one task of the wakelist. Not inlined: the list rarely has more than one entry, and for a loop the compiler
/// would compute all addresses of the body in advance.
#[inline(never)]
fn enqueue_pending(driver: &mut impl Driver, task: TaskId, cpu: CpuId, kind: WakeKind) {
    let queued_on = ttwu_runnable(driver, task).unwrap_or_else(|| {
        activate_task(driver, task, cpu, kind);
        cpu
    });
    finish_wakeup(driver, task, queued_on, kind);
}
