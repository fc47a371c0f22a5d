//! Whether `sched_setattr` lets a task become SCHED_DEADLINE (`__sched_setscheduler`, kernel/sched/syscalls.c 6.12).

use schedlab_model::{CpuMask, TaskId};
use schedlab_policy::dl::{DlOverflow, DlPolicy};

use super::state::Kernel;

/// Why not, with the sums; `None`: it does. `task`: one that exists already, whose present bandwidth does not count.
/// `affinity`: that of a task that is about to start.
pub fn refused(kernel: &Kernel, task: Option<TaskId>, affinity: Option<&CpuMask>, dl: DlPolicy) -> Option<String> {
    let all = CpuMask::first(kernel.cpus.len());
    let narrow = affinity.is_some_and(|mask| !all.without(mask).is_empty());
    if narrow || task.is_some_and(|task| kernel.sched.is_restricted(task)) {
        return Some("the kernel refuses SCHED_DEADLINE to a task that may not use every CPU (EPERM)".into());
    }
    let DlOverflow { wanted, tasks, limit } = kernel.sched.dl.sched_dl_overflow(task, dl)?;
    let cpus = kernel.cpus.len();
    Some(format!(
        "the kernel refuses SCHED_DEADLINE (EBUSY): the task asks for {wanted:.3} CPUs, which with {tasks:.3} for other \
         deadline tasks is more than {limit:.3}, sched_rt_runtime_us / sched_rt_period_us of {cpus} CPUs"
    ))
}
