//! Quotas of groups: the timers of the pools, and the task work of a throttled task on its return to user mode.

use schedlab_model::{rarely, CpuId};
use schedlab_policy::Resched;
use schedlab_trace::{Kind, Sink};

use super::numa::task_numa_work;
use super::resched::resched_curr;
use super::state::Kernel;
use crate::machine::Machine;
use crate::run::{Run, Source};

/// Arms the timer of the groups' pools, which start and stop with their use, after anything that may have moved it.
#[inline(always)]
pub fn arm_bandwidth<S: Sink>(run: &mut Run<S>, kernel: &Kernel) {
    if rarely(kernel.bandwidth) {
        arm(run, kernel);
    }
}

#[inline(never)]
fn arm<S: Sink>(run: &mut Run<S>, kernel: &Kernel) {
    match kernel.sched.fair.next_bandwidth_timer() {
        Some(due) => run.set_event(kernel.id, Source::Bandwidth, CpuId(0), due.max(run.now)),
        None => run.cancel(kernel.id, Source::Bandwidth, CpuId(0)),
    }
}

/// The timers of quotas (`sched_cfs_period_timer`, `sched_cfs_slack_timer`), which themselves cost nothing.
pub fn on_bandwidth<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel) {
    for cpu in kernel.sched.bandwidth_timers(run.now) {
        resched_curr(run, machine, kernel, cpu, Resched::Full, cpu);
    }
    for (metric, count) in kernel.cgroups.count_bandwidth(&kernel.sched.fair) {
        kernel.emit(run, CpuId(0), Kind::Count { pid: 0, metric, count });
    }
    arm_bandwidth(run, kernel);
}

/// `resume_user_mode_work`: the current task of the CPU is about to run in user mode. If no reschedule is pending, it
/// examines the caches in which its process runs (7.2 and later) and scans its memory for NUMA balancing, and if it is
/// throttled it leaves its queue, which causes a reschedule (6.18 and later).
#[inline]
pub fn resume_user_mode_work<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    if rarely(kernel.task_work) {
        task_work_run(run, machine, kernel, cpu);
    }
}

/// The scheduler's work of the task. `task_cache_work` takes no time here.
#[inline(never)]
fn task_work_run<S: Sink>(run: &mut Run<S>, machine: &mut Machine, kernel: &mut Kernel, cpu: CpuId) {
    let (c, k) = (&machine.cpus[cpu.index()], &kernel.cpus[cpu.index()]);
    let Some(task) = k.curr.filter(|_| k.leaving_for.is_none()) else { return };
    let in_user = !c.segment.mode.is_kernel();
    if !in_user || k.need_resched || k.need_resched_lazy {
        return;
    }
    if kernel.sched.fair.has_cache_work(task) {
        kernel.sched.task_cache_work(cpu, task, kernel.clock_task(cpu, run.now));
    }
    if kernel.sched.has_numa_work(task) {
        task_numa_work(run, machine, kernel, cpu, task);
    }
    if !kernel.sched.fair.has_throttle_work(task) {
        return;
    }
    machine.cpus[cpu.index()].progress(run.now);
    let now = run.now;
    kernel.competitors_changed(cpu, now);
    if kernel.sched.throttle_work(task, kernel.clock_task(cpu, now)) {
        kernel.trace_run_times(run, cpu);
        let k = &mut kernel.cpus[cpu.index()];
        (k.need_resched, k.resched_seen) = (true, true);
        arm_bandwidth(run, kernel);
    }
}
